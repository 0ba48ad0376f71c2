// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/jit/kernel_table.h"

#include <atomic>
#include <mutex>
#include <set>
#include <string>

#include "quern/base/env.h"
#include "quern/base/error.h"
#include "quern/base/hash.h"
#include "quern/base/log.h"
#include "quern/jit/build.h"
#include "quern/jit/freeze.h"

namespace quern::jit {

namespace {

struct Entry {
  KernelSpec spec;
  u32 device;
  Function function;
  Entry* next;
};

constexpr size_t kBuckets = 4096;
// Entries are only ever added, so readers walk the chains without a lock.
std::atomic<Entry*> g_buckets[kBuckets];
std::mutex g_insert;
std::atomic<i64> g_compiled, g_from_disk;

size_t bucket_of(const KernelSpec& spec, u32 device) {
  const u64 words[3] = {hash64(spec.config, spec.kernel->config_bytes), u64(reinterpret_cast<uintptr_t>(spec.kernel)),
                        u64(reinterpret_cast<uintptr_t>(spec.hooks)) ^ (u64(device) << 48)};
  return ((words[0] ^ words[1] * 0x9E3779B97F4A7C15ull ^ words[2] * 0xC2B2AE3D27D4EB4Full) >> 17) % kBuckets;
}

Entry* find(const KernelSpec& spec, u32 device, size_t bucket) {
  for (Entry* e = g_buckets[bucket].load(std::memory_order_acquire); e; e = e->next)
    if (e->device == device && e->spec == spec) return e;
  return nullptr;
}

Function load_image(Device& device, const Compiled& c) {
  const ImageKind kind = device.info().emulated ? ImageKind::shared_object : ImageKind::cubin;
  return device.load(kind, c.image, c.image_path, c.entry, device.info().smem_block);
}

/// A whole entry may still not load: made on a machine with a newer libc, or removed since it was checked.
Function load_or_rebuild(const KernelSpec& spec, Device& device, Compiled compiled) {
  for (std::set<std::string> bad; compiled.from_cache; compiled = rebuild(spec, target_of(device), bad)) {
    try {
      const Function function = load_image(device, compiled);
      g_from_disk++;
      return function;
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::unsupported) throw;  // the entry is not to blame that the device is full or has failed
      log(LogLevel::warning, "cache entry " + compiled.folder + " is not used (it does not load: " + e.what() + ")");
    }
    bad.insert(hash128_hex({compiled.image.data(), compiled.image.size()}));
  }
  g_compiled++;
  return load_image(device, compiled);
}

Function load(const KernelSpec& spec, Device& device, Stream stream, size_t bucket) {
  if (device.capturing(stream))
    throw Error(ErrorKind::frozen, print(spec) + " is not loaded yet and cannot be while the stream is capturing");
  check_environment();
  const Function function = load_or_rebuild(spec, device, build(spec, target_of(device)));
  std::lock_guard lock(g_insert);
  if (Entry* e = find(spec, device.ordinal(), bucket)) {  // another thread was first
    device.unload(function);
    return e->function;
  }
  g_buckets[bucket].store(new Entry{spec, device.ordinal(), function, g_buckets[bucket].load()}, std::memory_order_release);
  return function;
}

}  // namespace

Function get(const KernelSpec& spec, Device& device, Stream stream) {
  const size_t bucket = bucket_of(spec, device.ordinal());
  if (const Entry* e = find(spec, device.ordinal(), bucket)) return e->function;
  return load(spec, device, stream, bucket);
}

Counters counters() { return {g_compiled.load(), g_from_disk.load()}; }

}  // namespace quern::jit
