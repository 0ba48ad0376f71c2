// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/emu/arena.h"

#include <sys/mman.h>

#include <cstring>

#include "quern/base/error.h"
#include "quern/emu/report.h"

namespace quern::emu {
namespace {

u8* reserve(u64 bytes, int protection) {
  void* memory = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<u8*>(memory);
}
u8* aligned_up(u8* address, u64 alignment) { return reinterpret_cast<u8*>(round_up<u64>(reinterpret_cast<u64>(address), alignment)); }

}  // namespace

Arena::Arena() {
  // As many threads as 64 multiprocessors hold, fewer where address space is limited.
  for (stack_count_ = 128 << 10; stack_count_ >= 2048 && !stack_mapping_; stack_count_ /= 2) {
    stack_mapping_ = reserve((stack_count_ + 2) * kStackBytes, PROT_READ | PROT_WRITE);
    if (stack_mapping_) break;
  }
  smem_mapping_ = reserve((kSmemSlots + 1) * kSmemStride, PROT_NONE);
  if (!stack_mapping_ || !smem_mapping_) throw Error(ErrorKind::device, "emulated device: cannot reserve address space for thread stacks");
  // A kernel's stack is small and scattered over slots; huge pages would back each slot with megabytes.
  madvise(stack_mapping_, (stack_count_ + 2) * kStackBytes, MADV_NOHUGEPAGE);
  stacks_ = aligned_up(stack_mapping_, kStackBytes) + kStackBytes;
  mprotect(stacks_ - kStackBytes, kStackBytes, PROT_NONE);  // below the first stack
  smem_ = aligned_up(smem_mapping_, kSmemStride);
}

Arena::~Arena() {
  munmap(stack_mapping_, (stack_count_ + 2) * kStackBytes);
  munmap(smem_mapping_, (kSmemSlots + 1) * kSmemStride);
  if (stack_shadow_) munmap(stack_shadow_, stack_count_ * kStackBytes / 8);
}

void Arena::map_shadow() {
  if (stack_shadow_) return;
  void* wanted = reinterpret_cast<void*>(kAsanShadow + reinterpret_cast<u64>(stacks_) / 8);
  const u64 bytes = stack_count_ * kStackBytes / 8;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  void* memory = mmap(wanted, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (memory != wanted) {
    if (memory != MAP_FAILED) munmap(memory, bytes);
    throw Error(ErrorKind::device, text_of("emulated device: asan needs the addresses from %p on, which are taken", wanted));
  }
  madvise(memory, bytes, MADV_NOHUGEPAGE);
  stack_shadow_ = static_cast<u8*>(memory);
}

void Arena::clear_shadow(u64 index) { std::memset(stack_shadow_ + index * kStackBytes / 8, 0, kStackBytes / 8); }

u8* Arena::smem_end(u64 index) {
  for (; smem_opened_ <= index; ++smem_opened_) {
    if (mprotect(smem_ + smem_opened_ * kSmemStride, kSmemUsable, PROT_READ | PROT_WRITE))
      throw Error(ErrorKind::device, "emulated device: cannot make shared memory accessible");
  }
  return smem_ + index * kSmemStride + kSmemUsable;
}

void Arena::trim_stacks(u64 first, u64 end) {
  if (first >= end) return;
  madvise(stack(first), (end - first) * kStackBytes, MADV_DONTNEED);
  if (stack_shadow_) madvise(stack_shadow_ + first * kStackBytes / 8, (end - first) * kStackBytes / 8, MADV_DONTNEED);
}

}  // namespace quern::emu
