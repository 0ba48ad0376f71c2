// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/testing/null_device.h"

#include <cstdlib>
#include <cstring>

#include "quern/base/error.h"

namespace quern::testing {

NullDevice::NullDevice(const DeviceInfo& info) {
  static std::atomic<u32> next = 1u << 30;  // apart from the ordinals of real and emulated devices
  info_ = info;
  info_.emulated = 1;
  id_ = {DeviceType::cpu, 0};
  ordinal_ = next++;
}

void* NullDevice::allocate(size_t bytes, const char*) { return std::aligned_alloc(256, round_up<size_t>(bytes, 256)); }
void NullDevice::release(void* pointer) { std::free(pointer); }

void* NullDevice::allocate_async(size_t bytes, Stream) {
  if (bytes > pool_bytes_) {
    if (capturing_) throw Error(ErrorKind::frozen, "the workspace pool cannot grow while the stream is capturing");
    pool_bytes_ = round_up<size_t>(bytes, 4096);
    pool_ = {static_cast<char*>(std::aligned_alloc(256, pool_bytes_)), std::free};
  }
  return pool_.get();
}
void NullDevice::release_async(void*, Stream) {}

void NullDevice::copy(void* destination, const void* source, size_t bytes, Stream) { std::memmove(destination, source, bytes); }
void NullDevice::fill(void* destination, u8 byte, size_t bytes, Stream) { std::memset(destination, byte, bytes); }

void* NullDevice::end_capture(Stream) {
  capturing_ = false;
  return this;
}

Function NullDevice::load(ImageKind, std::span<const char>, const std::string&, const std::string&, int) { return {this}; }

}  // namespace quern::testing
