// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// A row read by a block, and the order of its values: larger values first, equal ones by ascending index.
#pragma once
#include "quern/bricks/select/spec.h"
#include "quern/kit/kit.cuh"

namespace quern {

/// Ascends with the value; -0 is +0. NaN has the lowest key, 0, below that of -inf.
QN_DEVICE u32 ordered_key(f32 x) {
  const u32 bits = ptx::bits_of(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0;
  if (bits == 0x80000000u) return 0x80000000u;
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}
constexpr u32 kKeyOfNegativeInfinity = 0x007fffffu;
/// The value of a key; of 0 a NaN.
QN_DEVICE f32 value_of_key(u32 key) {
  if (key == 0) return ptx::f32_of_bits(0x7fffffffu);
  return ptx::f32_of_bits(key >> 31 ? key & 0x7fffffffu : ~key);
}

/// A row of `length` elements. A step is what the block reads at once: threads * vector elements, in order of the threads.
template <RowLayout L> struct Row {
  const dtype_t<L.dtype>* data;
  i64 length;
};
template <RowLayout L> constexpr int kStep = L.threads * L.vector;
template <RowLayout L> QN_DEVICE int steps_of(const Row<L>& row) { return int(ceil_div<i64>(row.length, kStep<L>)); }

/// The thread's elements of a step: how many, and the index of the first.
template <RowLayout L> QN_DEVICE int load_step(const Row<L>& row, int step, f32 (&x)[L.vector], i64& first) {
  using T = dtype_t<L.dtype>;
  first = i64(step) * kStep<L> + i64(threadIdx.x) * L.vector;
  if (first + L.vector <= row.length) {
    load_f32<T, L.vector>(row.data + first, x);
    return L.vector;
  }
  const int count = first < row.length ? int(row.length - first) : 0;
  for (int i = 0; i < count; ++i) {
    f32 one[1];
    load_f32<T, 1>(row.data + first + i, one);
    x[i] = one[0];
  }
  return count;
}

/// Calls f(index, value) with each of the thread's elements, ascending. Four accesses are in flight.
template <RowLayout L, class F> QN_DEVICE void each_element(const Row<L>& row, F f) {
  using T = dtype_t<L.dtype>;
  const int whole = int(row.length / kStep<L>), steps = steps_of(row);
  int step = 0;
  for (; step + 4 <= whole; step += 4) {
    Packed<T, L.vector> raw[4];
    const i64 begin = i64(step) * kStep<L> + i64(threadIdx.x) * L.vector;
    QN_UNROLL
    for (int u = 0; u < 4; ++u) raw[u] = load_packed<T, L.vector>(row.data + begin + u * kStep<L>);
    QN_UNROLL
    for (int u = 0; u < 4; ++u) {
      f32 x[L.vector];
      unpack(raw[u], x);
      QN_UNROLL
      for (int i = 0; i < L.vector; ++i) f(begin + u * kStep<L> + i, x[i]);
    }
  }
  for (; step < steps; ++step) {
    f32 x[L.vector];
    i64 first;
    const int count = load_step(row, step, x, first);
    for (int i = 0; i < count; ++i) f(first + i, x[i]);
  }
}

/// out[index] = f(index, value) of every element, kStore of them by one access. `out` may be the row itself.
template <class To, int kStore, RowLayout L, class F> QN_DEVICE void write_row(const Row<L>& row, To* out, F f) {
  static_assert(L.vector % kStore == 0);
  const int steps = steps_of(row);
  for (int step = 0; step < steps; ++step) {
    f32 x[L.vector];
    i64 first;
    const int count = load_step(row, step, x, first);
    for (int i = 0; i < count; ++i) x[i] = f(first + i, x[i]);
    QN_UNROLL
    for (int i = 0; i < L.vector; i += kStore) {
      f32 part[kStore];
      if (i + kStore <= count) {
        QN_UNROLL
        for (int j = 0; j < kStore; ++j) part[j] = x[i + j];
        store_f32<To, kStore>(out + first + i, part);
      } else {
        for (int j = i; j < count; ++j) {
          const f32 one[1] = {x[j]};
          store_f32<To, 1>(out + first + j, one);
        }
      }
    }
  }
}

}  // namespace quern
