// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/bench/metered_device.h"

namespace quern::bench {

MeteredDevice::MeteredDevice(Device& device) : device_(device) {
  info_ = device.info();
  id_ = device.id();
  ordinal_ = device.ordinal();  // kernels that are loaded are those of the other
  wants_memory_ranges_ = device.wants_memory_ranges();
  number_ = device.number();
}

void* MeteredDevice::taken(void* pointer, size_t bytes) {
  const std::lock_guard lock(mutex_);
  blocks_[pointer] = bytes;
  held_ += bytes;
  peak_ = peak_ < held_ ? held_ : peak_;
  return pointer;
}

void MeteredDevice::given_back(void* pointer) {
  const std::lock_guard lock(mutex_);
  const auto at = blocks_.find(pointer);
  if (at == blocks_.end()) return;
  held_ -= at->second;
  blocks_.erase(at);
}

}  // namespace quern::bench
