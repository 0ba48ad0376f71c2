// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/emu/runtime.h"

namespace quern::emu {

/// Stacks and shared memory of the blocks that one worker keeps resident: two reservations of address space, touched as
/// they are used. One mapping holds all stacks, so that thousands of threads do not exhaust vm.max_map_count.
class Arena {
 public:
  Arena();
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Stack slot `index`; its lowest address, aligned to kStackBytes.
  u8* stack(u64 index) const { return stacks_ + index * kStackBytes; }
  u64 stack_count() const { return stack_count_; }
  bool holds_stack(const void* address) const { return contains(stacks_, stack_count_ * kStackBytes, address); }

  /// End of the shared memory of slot `index`; what lies behind it faults.
  u8* smem_end(u64 index);
  u64 smem_count() const { return kSmemSlots; }
  bool holds_smem(const void* address) const { return contains(smem_, kSmemSlots * kSmemStride, address); }

  /// Asan builds: makes the shadow of the stacks usable. Error{device} when its addresses are taken.
  void map_shadow();
  /// Nothing of stack slot `index` counts as out of scope or between local variables any more.
  void clear_shadow(u64 index);
  /// Gives the memory of stacks from `first` on, and of their shadow, back to the system.
  void trim_stacks(u64 first, u64 end);

 private:
  static constexpr u64 kSmemSlots = 1024;
  static constexpr u64 kSmemUsable = 256 << 10;
  static bool contains(const u8* base, u64 bytes, const void* address) {
    return static_cast<const u8*>(address) >= base && static_cast<const u8*>(address) < base + bytes;
  }

  u8* stack_mapping_ = nullptr;
  u8* stacks_ = nullptr;
  u64 stack_count_ = 0;
  u8* stack_shadow_ = nullptr;
  u8* smem_mapping_ = nullptr;
  u8* smem_ = nullptr;
  u64 smem_opened_ = 0;  ///< slots [0, smem_opened_) are accessible
};

}  // namespace quern::emu
