// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// 9.7.13.5 atom, 9.7.13.6 red, and loads and stores that order memory (9.7.9.8 ld, 9.7.9.12 st).
#pragma once
#include "quern/kit/ptx/number.cuh"

namespace quern::ptx {

// Relaxed, gpu scope; each returns the value before.
QN_DEVICE u32 atomic_add(u32* address, u32 value) {
  u32 before;
  asm volatile("atom.relaxed.gpu.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(address), "r"(value) : "memory");
  return before;
}
QN_DEVICE i32 atomic_add(i32* address, i32 value) {
  i32 before;
  asm volatile("atom.relaxed.gpu.add.s32 %0, [%1], %2;" : "=r"(before) : "l"(address), "r"(value) : "memory");
  return before;
}
QN_DEVICE u64 atomic_add(u64* address, u64 value) {
  u64 before;
  asm volatile("atom.relaxed.gpu.add.u64 %0, [%1], %2;" : "=l"(before) : "l"(address), "l"(value) : "memory");
  return before;
}
/// The same in the block's own shared memory, by an instruction that need not find out where the address is; block scope.
QN_DEVICE u32 atomic_add_shared(u32* address, u32 value) {
  u32 before;
  asm volatile("atom.relaxed.cta.shared::cta.add.u32 %0, [%1], %2;"
               : "=r"(before)
               : "r"(u32(__cvta_generic_to_shared(address))), "r"(value)
               : "memory");
  return before;
}
QN_DEVICE void red_add_shared(u32* address, u32 value) {
  asm volatile("red.relaxed.cta.shared::cta.add.u32 [%0], %1;" ::"r"(u32(__cvta_generic_to_shared(address))), "r"(value) : "memory");
}
QN_DEVICE f32 atomic_add(f32* address, f32 value) {
  f32 before;
  asm volatile("atom.relaxed.gpu.add.f32 %0, [%1], %2;" : "=f"(before) : "l"(address), "f"(value) : "memory");
  return before;
}
QN_DEVICE u32 atomic_max(u32* address, u32 value) {
  u32 before;
  asm volatile("atom.relaxed.gpu.max.u32 %0, [%1], %2;" : "=r"(before) : "l"(address), "r"(value) : "memory");
  return before;
}
QN_DEVICE u32 atomic_min(u32* address, u32 value) {
  u32 before;
  asm volatile("atom.relaxed.gpu.min.u32 %0, [%1], %2;" : "=r"(before) : "l"(address), "r"(value) : "memory");
  return before;
}
QN_DEVICE i32 atomic_max(i32* address, i32 value) {
  i32 before;
  asm volatile("atom.relaxed.gpu.max.s32 %0, [%1], %2;" : "=r"(before) : "l"(address), "r"(value) : "memory");
  return before;
}
QN_DEVICE i32 atomic_min(i32* address, i32 value) {
  i32 before;
  asm volatile("atom.relaxed.gpu.min.s32 %0, [%1], %2;" : "=r"(before) : "l"(address), "r"(value) : "memory");
  return before;
}
QN_DEVICE u32 atomic_exch(u32* address, u32 value) {
  u32 before;
  asm volatile("atom.relaxed.gpu.exch.b32 %0, [%1], %2;" : "=r"(before) : "l"(address), "r"(value) : "memory");
  return before;
}
QN_DEVICE u32 atomic_cas(u32* address, u32 compare, u32 value) {
  u32 before;
  asm volatile("atom.relaxed.gpu.cas.b32 %0, [%1], %2, %3;" : "=r"(before) : "l"(address), "r"(compare), "r"(value) : "memory");
  return before;
}

// Ordered, gpu scope. A loop that waits must poll with ld_acquire_gpu: emulated, it lets other threads run.
QN_DEVICE u32 ld_acquire_gpu(const u32* address) {
  u32 value;
  asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
  return value;
}
QN_DEVICE u32 ld_relaxed_gpu(const u32* address) {
  u32 value;
  asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
  return value;
}
QN_DEVICE void st_release_gpu(u32* address, u32 value) {
  asm volatile("st.release.gpu.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}
QN_DEVICE void st_relaxed_gpu(u32* address, u32 value) {
  asm volatile("st.relaxed.gpu.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}
QN_DEVICE void red_add_release_gpu(u32* address, u32 value) {
  asm volatile("red.release.gpu.add.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}
QN_DEVICE void red_add(u32* address, u32 value) { asm volatile("red.relaxed.gpu.add.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory"); }
QN_DEVICE void red_add(f32* address, f32 value) { asm volatile("red.relaxed.gpu.add.f32 [%0], %1;" ::"l"(address), "f"(value) : "memory"); }
QN_DEVICE u32 atomic_add_acquire_gpu(u32* address, u32 value) {
  u32 before;
  asm volatile("atom.acquire.gpu.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(address), "r"(value) : "memory");
  return before;
}
QN_DEVICE u32 atomic_add_release_gpu(u32* address, u32 value) {
  u32 before;
  asm volatile("atom.release.gpu.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(address), "r"(value) : "memory");
  return before;
}
QN_DEVICE u32 atomic_add_acq_rel_gpu(u32* address, u32 value) {
  u32 before;
  asm volatile("atom.acq_rel.gpu.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(address), "r"(value) : "memory");
  return before;
}
QN_DEVICE u32 atomic_exch_acq_rel_gpu(u32* address, u32 value) {
  u32 before;
  asm volatile("atom.acq_rel.gpu.exch.b32 %0, [%1], %2;" : "=r"(before) : "l"(address), "r"(value) : "memory");
  return before;
}
QN_DEVICE u32 atomic_cas_acq_rel_gpu(u32* address, u32 compare, u32 value) {
  u32 before;
  asm volatile("atom.acq_rel.gpu.cas.b32 %0, [%1], %2, %3;" : "=r"(before) : "l"(address), "r"(compare), "r"(value) : "memory");
  return before;
}

}  // namespace quern::ptx
