// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/op/kept.h"

#include <compare>
#include <map>
#include <mutex>
#include <string_view>

#include "quern/base/error.h"

namespace quern {

namespace {

struct Key {
  const Op* op;
  std::string_view name;  ///< of a literal
  i64 bytes;
  u32 device;
  void* stream;
  friend auto operator<=>(const Key&, const Key&) = default;
};

struct Pool {
  std::mutex mutex;
  std::map<Key, char*> memory;
};

/// Never destroyed: captured graphs hold addresses in it.
Pool& pool() {
  static Pool* const all = new Pool;
  return *all;
}

}  // namespace

char* kept_memory(const Op& op, const RegionFacts& region, Device& device, Stream stream) {
  Pool& all = pool();
  const std::lock_guard lock(all.mutex);
  const Key key{&op, region.name, region.bytes, device.ordinal(), stream.handle};
  if (const auto found = all.memory.find(key); found != all.memory.end()) return found->second;
  if (device.capturing(stream))
    throw Error(ErrorKind::frozen, op.id, "",
                "the kept region `" + std::string(region.name) + "` of " + std::to_string(region.bytes) +
                    " bytes would be made while the stream is capturing",
                "the op to be called once before the capture, with this size and on this stream");
  char* const memory = static_cast<char*>(device.allocate(size_t(region.bytes), region.name));
  device.fill(memory, 0, size_t(region.bytes), stream);
  all.memory.emplace(key, memory);
  return memory;
}

}  // namespace quern
