// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <cstddef>

#include "quern/base/api.h"

namespace quern {

/// Zeros, between address space that nobody may touch: an access up to 64 MiB and the memory's own size beyond either end is a SIGSEGV, so
/// a stray store ends what made it and breaks nothing of somebody else's. The end is exact where `bytes` are whole pages.
class QN_API GuardedMemory {
 public:
  GuardedMemory() = default;
  /// get() is null where there is no room.
  explicit GuardedMemory(size_t bytes);
  ~GuardedMemory();
  GuardedMemory(GuardedMemory&& other) noexcept;
  GuardedMemory& operator=(GuardedMemory&& other) noexcept;

  char* get() const { return memory_; }
  explicit operator bool() const { return memory_ != nullptr; }
  static constexpr size_t kPage = 4096;

 private:
  char* memory_ = nullptr;
  char* all_ = nullptr;
  size_t all_bytes_ = 0;
};

}  // namespace quern
