// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Atomics, and loads and stores that order memory. Executed by the runtime, where release and acquire also order the
// accesses that the race detector sees.
#pragma once
#include "quern/kit/emu/memory.cuh"

namespace quern::emu {

template <class T>
QN_DEVICE T atomic(AtomicOp op, const void* address, T operand, Order order = Order::relaxed, T compare = {}) {
  require_aligned<T>(address);
  using Word = __UINT64_TYPE__;
  AtomicCall call{op, order, sizeof(T), const_cast<void*>(address), Word(operand), Word(compare), nullptr};
  return T(current()->runtime->atomic(call));
}
QN_DEVICE u32 add_f32_words(u32 stored, u32 operand) { return ptx::bits_of(ptx::f32_of_bits(stored) + ptx::f32_of_bits(operand)); }

}  // namespace quern::emu

namespace quern::ptx {

// Relaxed, gpu scope; each returns the value before.
QN_DEVICE u32 atomic_add(u32* address, u32 value) { return emu::atomic(emu::AtomicOp::add, address, value); }
QN_DEVICE i32 atomic_add(i32* address, i32 value) { return i32(emu::atomic(emu::AtomicOp::add, address, u32(value))); }
QN_DEVICE u64 atomic_add(u64* address, u64 value) { return emu::atomic(emu::AtomicOp::add, address, value); }
QN_DEVICE u32 atomic_add_shared(u32* address, u32 value) {
  return emu::atomic(emu::AtomicOp::add, emu::shared_pointer(smem_address(address), 4, "atom.shared"), value);
}
QN_DEVICE void red_add_shared(u32* address, u32 value) { atomic_add_shared(address, value); }
QN_DEVICE f32 atomic_add(f32* address, f32 value) {
  emu::require_aligned<u32>(address);
  const emu::AtomicCall call{emu::AtomicOp::combine, emu::Order::relaxed, 4, address, bits_of(value), 0, emu::add_f32_words};
  return f32_of_bits(u32(emu::current()->runtime->atomic(call)));
}
QN_DEVICE u32 atomic_max(u32* address, u32 value) { return emu::atomic(emu::AtomicOp::max_u32, address, value); }
QN_DEVICE u32 atomic_min(u32* address, u32 value) { return emu::atomic(emu::AtomicOp::min_u32, address, value); }
QN_DEVICE i32 atomic_max(i32* address, i32 value) { return i32(emu::atomic(emu::AtomicOp::max_i32, address, u32(value))); }
QN_DEVICE i32 atomic_min(i32* address, i32 value) { return i32(emu::atomic(emu::AtomicOp::min_i32, address, u32(value))); }
QN_DEVICE u32 atomic_exch(u32* address, u32 value) { return emu::atomic(emu::AtomicOp::exch, address, value); }
QN_DEVICE u32 atomic_cas(u32* address, u32 compare, u32 value) {
  return emu::atomic(emu::AtomicOp::cas, address, value, emu::Order::relaxed, compare);
}

// Ordered, gpu scope. A loop that waits must poll with ld_acquire_gpu: it lets other threads run.
QN_DEVICE u32 ld_acquire_gpu(const u32* address) { return emu::atomic(emu::AtomicOp::load, address, u32(0), emu::Order::acquire); }
QN_DEVICE u32 ld_relaxed_gpu(const u32* address) { return emu::atomic(emu::AtomicOp::load, address, u32(0)); }
QN_DEVICE void st_release_gpu(u32* address, u32 value) { emu::atomic(emu::AtomicOp::store, address, value, emu::Order::release); }
QN_DEVICE void st_relaxed_gpu(u32* address, u32 value) { emu::atomic(emu::AtomicOp::store, address, value); }
QN_DEVICE void red_add_release_gpu(u32* address, u32 value) { emu::atomic(emu::AtomicOp::add, address, value, emu::Order::release); }
QN_DEVICE void red_add(u32* address, u32 value) { emu::atomic(emu::AtomicOp::add, address, value); }
QN_DEVICE void red_add(f32* address, f32 value) { atomic_add(address, value); }
QN_DEVICE u32 atomic_add_acquire_gpu(u32* address, u32 value) {
  return emu::atomic(emu::AtomicOp::add, address, value, emu::Order::acquire);
}
QN_DEVICE u32 atomic_add_release_gpu(u32* address, u32 value) {
  return emu::atomic(emu::AtomicOp::add, address, value, emu::Order::release);
}
QN_DEVICE u32 atomic_add_acq_rel_gpu(u32* address, u32 value) {
  return emu::atomic(emu::AtomicOp::add, address, value, emu::Order::acq_rel);
}
QN_DEVICE u32 atomic_exch_acq_rel_gpu(u32* address, u32 value) {
  return emu::atomic(emu::AtomicOp::exch, address, value, emu::Order::acq_rel);
}
QN_DEVICE u32 atomic_cas_acq_rel_gpu(u32* address, u32 compare, u32 value) {
  return emu::atomic(emu::AtomicOp::cas, address, value, emu::Order::acq_rel, compare);
}

}  // namespace quern::ptx
