// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Units of 16 bytes, of which the threads of a row own some: unit u belongs to thread u % row_threads. C is the Config of a kernel:
// `dtype`, `vector` (elements of one access), `row_threads`, `threads`.
#pragma once
#include "quern/kit/kit.cuh"

namespace quern::norm {

/// Elements of a unit, and accesses that move it.
template <auto C> constexpr int kUnit = 16 / size_of(C.dtype);
template <auto C> constexpr int kAccesses = kUnit<C> / C.vector;

/// A unit as it lies in memory.
template <auto C> struct Unit {
  Packed<dtype_t<C.dtype>, C.vector> access[kAccesses<C>];
};

/// Loads the unit at element h; what lies past the end of the row stays as it was.
template <auto C> QN_DEVICE void load_unit(const dtype_t<C.dtype>* row, i64 h, i64 hidden, Unit<C>& unit) {
  QN_UNROLL
  for (int a = 0; a < kAccesses<C>; ++a)
    if (h + a * C.vector < hidden) unit.access[a] = load_packed<dtype_t<C.dtype>, C.vector>(row + h + a * C.vector);
}

/// Values of a unit; 0 past the end of the row.
template <auto C> QN_DEVICE void unit_values(const Unit<C>& unit, i64 h, i64 hidden, f32 (&v)[kUnit<C>]) {
  QN_UNROLL
  for (int a = 0; a < kAccesses<C>; ++a) {
    f32 part[C.vector];
    if (h + a * C.vector < hidden) unpack(unit.access[a], part);
    QN_UNROLL
    for (int j = 0; j < C.vector; ++j) v[a * C.vector + j] = h + a * C.vector < hidden ? part[j] : f32(0.f);
  }
}

template <auto C> QN_DEVICE void store_unit(dtype_t<C.dtype>* row, i64 h, i64 hidden, const f32 (&v)[kUnit<C>]) {
  QN_UNROLL
  for (int a = 0; a < kAccesses<C>; ++a) {
    f32 part[C.vector];
    QN_UNROLL
    for (int j = 0; j < C.vector; ++j) part[j] = v[a * C.vector + j];
    if (h + a * C.vector < hidden) store_f32<dtype_t<C.dtype>, C.vector>(row + h + a * C.vector, part);
  }
}

/// Calls f with each access of the thread's units, in order. Not unrolled: the 8 element accesses of an unaligned unit would
/// spill at 64 registers.
template <auto C, class F> QN_DEVICE void each_access(i64 hidden, F f) {
  for (i64 unit = i64(threadIdx.x) * kUnit<C>; unit < hidden; unit += C.threads * kUnit<C>) {
    QN_NO_UNROLL
    for (i64 h = unit; h < unit + kUnit<C>; h += C.vector)
      if (h < hidden) f(h);
  }
}

}  // namespace quern::norm
