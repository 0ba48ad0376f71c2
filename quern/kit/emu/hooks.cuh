// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Checked builds: the compiler (-fsanitize=thread) calls these functions at each load and store of the kernel. They are
// hidden and lie in the kernel's own shared object, which is never linked with libtsan; the runtime judges the access.
// Calls of memcpy, memset, memmove, which clang does not instrument, are redirected by the linker (hooks_copy.cuh).
#pragma once
#include "quern/kit/emu/entry.cuh"

namespace quern::emu {

/// What the canary accesses, and how often the hooks saw it. Volatile: the compiler does not know that an access calls
/// a hook.
static const void* volatile canary_address __attribute__((unused)) = nullptr;
static volatile int canary_hits __attribute__((unused)) = 0;

/// Marks words of the stack as accessed; whether a wgmma in flight uses one of them.
QN_UNWATCHED __attribute__((always_inline)) inline bool touch_registers(RegisterWatch& watch, u64 address, u64 bytes) {
  bool in_flight = false;
  const u64 first = (address & (kStackBytes - 1)) / 4, last = ((address + bytes - 1) & (kStackBytes - 1)) / 4;
  for (u64 word = first; word <= last; ++word) {
    const u64 bit = u64(1) << word % 64;
    watch.touched[word / 64] |= bit;
    in_flight |= (watch.in_flight[word / 64] & bit) != 0;
  }
  return in_flight;
}

QN_UNWATCHED __attribute__((always_inline)) inline void on_access(const void* address, u64 bytes, bool write) {
  // A thread's own stack is private unless it hands out a pointer; most accesses end here. Registers that wgmma uses lie
  // there too.
  const u64 frame = reinterpret_cast<u64>(__builtin_frame_address(0));
  if ((reinterpret_cast<u64>(address) ^ frame) < kStackBytes) {
    if (!bound_runtime) return;
    RegisterWatch* watch = current()->watch;
    if (__builtin_expect(!watch, 1) || !touch_registers(*watch, reinterpret_cast<u64>(address), bytes)) return;
  }
  void* pc = __builtin_return_address(0);
  if (__builtin_expect(address == canary_address, 0)) {
    canary_hits = canary_hits + 1;
    return;
  }
  // Before the module is bound, initialisers of the object itself run on an ordinary stack.
  if (!bound_runtime) return;
  // Each instruction looks up its function in the table.
  if (reinterpret_cast<u64>(address) - reinterpret_cast<u64>(bound_runtime) < sizeof(Runtime)) return;
  bound_runtime->plain_access(address, bytes, write, pc);
}

#if defined(__clang__)
/// Of every load and store, also those that -fsanitize=thread passes over (of a local array, elements of constant index):
/// whether it is of a register of a wgmma. All else is the other hooks'.
QN_UNWATCHED __attribute__((always_inline)) inline void on_register_access(const void* address, u64 bytes, bool write) {
  if (__builtin_expect(address == canary_address, 0)) canary_hits = canary_hits + 1;
  const u64 frame = reinterpret_cast<u64>(__builtin_frame_address(0));
  if ((reinterpret_cast<u64>(address) ^ frame) >= kStackBytes || !bound_runtime) return;
  RegisterWatch* watch = current()->watch;
  if (__builtin_expect(!watch, 1) || !touch_registers(*watch, reinterpret_cast<u64>(address), bytes)) return;
  bound_runtime->plain_access(address, bytes, write, __builtin_return_address(0));
}
#endif

}  // namespace quern::emu

#define QN_HOOK(NAME, BYTES, WRITE) \
  extern "C" QN_UNWATCHED void NAME(void* address) { ::quern::emu::on_access(address, BYTES, WRITE); }
#define QN_HOOKS(BYTES) \
  QN_HOOK(__tsan_read##BYTES, BYTES, false) \
  QN_HOOK(__tsan_write##BYTES, BYTES, true) \
  QN_HOOK(__tsan_unaligned_read##BYTES, BYTES, false) \
  QN_HOOK(__tsan_unaligned_write##BYTES, BYTES, true) \
  QN_HOOK(__tsan_volatile_read##BYTES, BYTES, false) \
  QN_HOOK(__tsan_volatile_write##BYTES, BYTES, true)
QN_HOOKS(1)
QN_HOOKS(2)
QN_HOOKS(4)
QN_HOOKS(8)
QN_HOOKS(16)
#undef QN_HOOKS
#undef QN_HOOK

#if defined(__clang__)
#define QN_HOOKS(BYTES) \
  extern "C" QN_UNWATCHED void __sanitizer_cov_load##BYTES(void* address) { ::quern::emu::on_register_access(address, BYTES, false); } \
  extern "C" QN_UNWATCHED void __sanitizer_cov_store##BYTES(void* address) { ::quern::emu::on_register_access(address, BYTES, true); }
QN_HOOKS(1)
QN_HOOKS(2)
QN_HOOKS(4)
QN_HOOKS(8)
QN_HOOKS(16)
#undef QN_HOOKS
#endif

#include "quern/kit/emu/hooks_copy.cuh"

extern "C" {
QN_UNWATCHED void __tsan_read_range(void* address, unsigned long bytes) { ::quern::emu::on_access(address, bytes, false); }
QN_UNWATCHED void __tsan_write_range(void* address, unsigned long bytes) { ::quern::emu::on_access(address, bytes, true); }
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}

void* __tsan_memcpy(void* to, const void* from, unsigned long bytes) { return __wrap_memcpy(to, from, bytes); }
void* __tsan_memset(void* to, int value, unsigned long bytes) { return __wrap_memset(to, value, bytes); }
void* __tsan_memmove(void* to, const void* from, unsigned long bytes) { return __wrap_memmove(to, from, bytes); }
}

namespace quern::emu {
/// Lies outside every stack, so that on_access does not take it for private memory.
static u32 canary_cell[8];
/// Ordinary accesses and library calls, as a kernel makes them; not inlined, so that they stay what they are.
__attribute__((noinline)) static void canary_accesses(u32* cell, unsigned long bytes) {
  *const_cast<volatile u32*>(cell) = 1;
  (void)*const_cast<volatile u32*>(cell);
  __builtin_memset(cell, 0, bytes);
}
}  // namespace quern::emu

/// Number of the canary's accesses that the hooks missed: 0 in a module that may be trusted.
extern "C" __attribute__((visibility("default"))) QN_UNWATCHED int quern_canary() {
  using namespace quern::emu;
  canary_hits = 0;
  canary_address = canary_cell;
  volatile unsigned long bytes = sizeof(canary_cell);  // not known to the compiler: memset stays a call
  canary_accesses(canary_cell, bytes);
  canary_address = nullptr;
#if defined(__clang__)
  return 5 - canary_hits;  // the store and the load reach both kinds of hooks
#else
  return 3 - canary_hits;
#endif
}
