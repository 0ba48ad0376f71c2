// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/base/guarded_memory.h"

#include <sys/mman.h>

#include <utility>

namespace quern {

GuardedMemory::GuardedMemory(size_t bytes) {
  if (bytes > size_t(1) << 44) return;
  const size_t pages = (bytes + kPage - 1) / kPage * kPage, guard = (size_t(64) << 20) + pages;
  void* const all = ::mmap(nullptr, pages + 2 * guard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) return;
  all_ = static_cast<char*>(all), all_bytes_ = pages + 2 * guard;
  if (pages == 0 || ::mprotect(all_ + guard, pages, PROT_READ | PROT_WRITE) == 0) memory_ = all_ + guard;
}

GuardedMemory::~GuardedMemory() {
  if (all_) ::munmap(all_, all_bytes_);
}

GuardedMemory::GuardedMemory(GuardedMemory&& other) noexcept { *this = std::move(other); }
GuardedMemory& GuardedMemory::operator=(GuardedMemory&& other) noexcept {
  std::swap(memory_, other.memory_), std::swap(all_, other.all_), std::swap(all_bytes_, other.all_bytes_);
  return *this;
}

}  // namespace quern
