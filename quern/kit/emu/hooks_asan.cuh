// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Asan builds: the compiler calls these functions at each load and store (AddressSanitizer with outlined checks: address
// for clang, kernel-address for g++, which alone takes an offset of the shadow there) and at each undefined operation
// (UndefinedBehaviorSanitizer). They are hidden and lie in the kernel's own shared object, which is never linked with
// libasan or libubsan. Only stacks have a shadow, which the compiler's code writes as functions begin and end; all else
// is judged by the runtime, which knows shared memory and the tensors of the call to the byte.
#pragma once
#include "quern/kit/emu/entry.cuh"

namespace quern::emu {

static_assert(QN_EMU_ASAN == kAsanShadow, "the compiler's option and the runtime disagree on the offset of the shadow");

/// Whether a thread may use all of [address, address + bytes) of its stack.
QN_UNWATCHED __attribute__((always_inline)) inline bool usable_stack(u64 address, u64 bytes) {
  const u64 last = address + bytes - 1;
  for (u64 eight = address / 8; eight <= last / 8; ++eight) {
    const i32 usable = *reinterpret_cast<const i8*>(kAsanShadow + eight);
    if (usable != 0 && (eight != last / 8 || i32(last % 8) >= usable)) return false;
  }
  return true;
}

QN_UNWATCHED __attribute__((always_inline)) inline void on_access(const void* pointer, u64 bytes, bool write) {
  // Before the module is bound, initialisers of the object itself run on an ordinary stack.
  if (!bound_runtime || bytes == 0) return;
  const u64 address = reinterpret_cast<u64>(pointer), frame = reinterpret_cast<u64>(__builtin_frame_address(0));
  if ((address ^ frame) < kStackBytes && usable_stack(address, bytes)) return;
  // Most accesses that are left.
  const ThreadContext& me = *current();
  const u64 offset = address - reinterpret_cast<u64>(me.smem);
  if (offset < me.smem_bytes && bytes <= me.smem_bytes - offset) return;
  // Each instruction looks up its function in the table.
  if (address - reinterpret_cast<u64>(bound_runtime) < sizeof(Runtime)) return;
  bound_runtime->plain_access(pointer, bytes, write, __builtin_return_address(0));
}

/// Marks bytes of a stack as in use or, for the value of a compiler's mark, as not. The compilers call it for variables
/// that begin at a multiple of 8.
QN_UNWATCHED __attribute__((always_inline)) inline void mark_stack(u64 address, u64 bytes, u8 mark) {
  u8* shadow = reinterpret_cast<u8*>(kAsanShadow + address / 8);
  u64 left = bytes;
  for (; left >= 8; left -= 8) *const_cast<volatile u8*>(shadow++) = mark;
  if (left) *const_cast<volatile u8*>(shadow) = mark ? mark : u8(left);
}

}  // namespace quern::emu

// With and without _noabort: how g++ (kernel-address) and clang (address) call the same.
#define QN_HOOKS(BYTES) \
  extern "C" QN_UNWATCHED void __asan_load##BYTES(void* at) { ::quern::emu::on_access(at, BYTES, false); } \
  extern "C" QN_UNWATCHED void __asan_store##BYTES(void* at) { ::quern::emu::on_access(at, BYTES, true); } \
  extern "C" QN_UNWATCHED void __asan_load##BYTES##_noabort(void* at) { ::quern::emu::on_access(at, BYTES, false); } \
  extern "C" QN_UNWATCHED void __asan_store##BYTES##_noabort(void* at) { ::quern::emu::on_access(at, BYTES, true); }
QN_HOOKS(1)
QN_HOOKS(2)
QN_HOOKS(4)
QN_HOOKS(8)
QN_HOOKS(16)
#undef QN_HOOKS

#include "quern/kit/emu/hooks_copy.cuh"

extern "C" {
QN_UNWATCHED void __asan_loadN(void* at, unsigned long bytes) { ::quern::emu::on_access(at, bytes, false); }
QN_UNWATCHED void __asan_storeN(void* at, unsigned long bytes) { ::quern::emu::on_access(at, bytes, true); }
QN_UNWATCHED void __asan_loadN_noabort(void* at, unsigned long bytes) { ::quern::emu::on_access(at, bytes, false); }
QN_UNWATCHED void __asan_storeN_noabort(void* at, unsigned long bytes) { ::quern::emu::on_access(at, bytes, true); }
void* __asan_memcpy(void* to, const void* from, unsigned long bytes) { return __wrap_memcpy(to, from, bytes); }
void* __asan_memset(void* to, int value, unsigned long bytes) { return __wrap_memset(to, value, bytes); }
void* __asan_memmove(void* to, const void* from, unsigned long bytes) { return __wrap_memmove(to, from, bytes); }

void __asan_init() {}
void __asan_version_mismatch_check_v8() {}
/// Before a call that does not return, where a function leaves its marks behind: the runtime clears them all after a launch
/// that was stopped.
void __asan_handle_no_return() {}

/// Large variables: marks set and cleared by address in the shadow, and as their scope ends and begins.
#define QN_SET_SHADOW(NAME, MARK) \
  QN_UNWATCHED void __asan_set_shadow_##NAME(unsigned long shadow, unsigned long bytes) { \
    for (unsigned long i = 0; i < bytes; ++i) *reinterpret_cast<volatile unsigned char*>(shadow + i) = static_cast<unsigned char>(MARK); \
  }
QN_SET_SHADOW(00, 0x00)
QN_SET_SHADOW(f1, 0xf1)
QN_SET_SHADOW(f2, 0xf2)
QN_SET_SHADOW(f3, 0xf3)
QN_SET_SHADOW(f5, 0xf5)
QN_SET_SHADOW(f8, 0xf8)
#undef QN_SET_SHADOW
QN_UNWATCHED void __asan_poison_stack_memory(unsigned long at, unsigned long bytes) { ::quern::emu::mark_stack(at, bytes, 0xf8); }
QN_UNWATCHED void __asan_unpoison_stack_memory(unsigned long at, unsigned long bytes) { ::quern::emu::mark_stack(at, bytes, 0); }
}

#define QN_FOUND(WHAT, A, B) ::quern::emu::bound_runtime->undefined(::quern::emu::Undefined::WHAT, data, A, B, __builtin_return_address(0))
#define QN_HANDLER0(NAME, WHAT) \
  extern "C" QN_UNWATCHED void __ubsan_handle_##NAME(void* data) { QN_FOUND(WHAT, 0, 0); }
#define QN_HANDLER1(NAME, WHAT) \
  extern "C" QN_UNWATCHED void __ubsan_handle_##NAME(void* data, unsigned long a) { QN_FOUND(WHAT, a, 0); }
#define QN_HANDLER2(NAME, WHAT) \
  extern "C" QN_UNWATCHED void __ubsan_handle_##NAME(void* data, unsigned long a, unsigned long b) { QN_FOUND(WHAT, a, b); }
QN_HANDLER1(type_mismatch_v1, type_mismatch)
QN_HANDLER2(add_overflow, add)
QN_HANDLER2(sub_overflow, subtract)
QN_HANDLER2(mul_overflow, multiply)
QN_HANDLER1(negate_overflow, negate)
QN_HANDLER2(divrem_overflow, divide)
QN_HANDLER2(shift_out_of_bounds, shift)
QN_HANDLER1(out_of_bounds, index)
QN_HANDLER0(builtin_unreachable, unreachable)
QN_HANDLER0(missing_return, missing_return)
QN_HANDLER1(vla_bound_not_positive, array_size)
QN_HANDLER1(float_cast_overflow, float_cast)
QN_HANDLER1(load_invalid_value, invalid_value)
QN_HANDLER0(invalid_builtin, invalid_builtin)
QN_HANDLER0(nonnull_arg, null_argument)
QN_HANDLER1(nonnull_return_v1, null_return)
QN_HANDLER2(pointer_overflow, pointer_overflow)
QN_HANDLER2(alignment_assumption, alignment_assumption)
#undef QN_HANDLER2
#undef QN_HANDLER1
#undef QN_HANDLER0
#undef QN_FOUND

namespace quern::emu {
/// Faults as a kernel makes them, each kind that needs another part of the instrumentation; not inlined and through
/// volatile values, so that they stay what they are.
__attribute__((noinline)) static void canary_local(u32 index) {
  u32 cells[4] = {};
  u32* volatile escaped = cells;
  *const_cast<volatile u32*>(escaped + index) = 1;
}
__attribute__((noinline)) static void canary_store(u32* cell) { *const_cast<volatile u32*>(cell) = 1; }
__attribute__((noinline)) static void canary_fill(u32* cells, unsigned long bytes) { __builtin_memset(cells, 0, bytes); }
__attribute__((noinline)) static i32 canary_shift(i32 places) { return 1 << places; }
__attribute__((noinline)) static i32 canary_cast(float value) { return i32(value); }
}  // namespace quern::emu

/// Runs as a kernel of one thread when the module is loaded.
extern "C" __attribute__((visibility("default"))) QN_UNWATCHED void quern_asan_canary(const void* params) {
  using namespace quern::emu;
  const AsanCanary& canary = *static_cast<const AsanCanary*>(params);
  volatile quern::u32 four = 4;  // not known to the compiler
  volatile quern::i32 result = 0;
  switch (canary.fault) {
    case AsanCanary::Fault::none: return canary_local(four - 1);
    case AsanCanary::Fault::local: return canary_local(four);
    case AsanCanary::Fault::global: return canary_store(canary.outside);
    case AsanCanary::Fault::fill: return canary_fill(canary.outside, four);
    case AsanCanary::Fault::shared: return canary_store(reinterpret_cast<quern::u32*>(current()->smem + current()->smem_bytes));
    case AsanCanary::Fault::shift: result = canary_shift(quern::i32(four) * 8); break;
    case AsanCanary::Fault::float_cast: result = canary_cast(float(four) * 1e9f); break;
  }
}
