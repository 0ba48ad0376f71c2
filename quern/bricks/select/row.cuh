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
  i32 length;  // at most kLongestRow
};
template <RowLayout L> constexpr int kStep = L.threads * L.vector;
template <RowLayout L> QN_DEVICE int steps_of(const Row<L>& row) { return ceil_div<i32>(row.length, kStep<L>); }

/// A thread's elements of a step: `count` from index `first` on.
template <RowLayout L> struct Elements {
  using T = dtype_t<L.dtype>;
  Packed<T, L.vector> raw;
  i32 first;
  i32 count;
};

/// Moves the elements of an access down by one place; what the last holds then is not said.
template <class T, int N> QN_DEVICE void move_down(Packed<T, N>& v) {
  if constexpr (N * sizeof(T) >= 4) {
    constexpr int kWords = N * int(sizeof(T)) / 4;
    QN_UNROLL
    for (int i = 0; i < kWords; ++i) {
      const u32 next = i + 1 < kWords ? word(v.raw, i + 1 < kWords ? i + 1 : i) : 0;
      if constexpr (sizeof(T) == 4) word(v.raw, i) = next;
      else word(v.raw, i) = word(v.raw, i) >> 16 | next << 16;
    }
  }
}
/// The lowest element; those above it move down. A loop that takes its elements is one body of code, and needs no array, which an index that is known
/// only when it runs would put into local memory.
template <class T, int N> QN_DEVICE f32 take(Packed<T, N>& v) {
  f32 x[1];
  if constexpr (N * sizeof(T) < 4) unpack<T, 1>({v.raw}, x);
  else if constexpr (sizeof(T) == 4) x[0] = ptx::f32_of_bits(word(v.raw, 0));
  else unpack<T, 1>({u16(word(v.raw, 0))}, x);
  move_down(v);
  return x[0];
}
/// Moves the elements down and puts x at the last place: after N of them the first lies lowest.
template <class T, int N> QN_DEVICE void push(Packed<T, N>& v, Packed<T, 1> x) {
  if constexpr (N == 1) {
    v = x;
  } else {
    constexpr int kLast = N * int(sizeof(T)) / 4 - 1;
    move_down(v);
    if constexpr (sizeof(T) == 4) word(v.raw, kLast) = x.raw;
    else word(v.raw, kLast) = (word(v.raw, kLast) & 0xffffu) | u32(x.raw) << 16;
  }
}

/// How many elements there are from index `first` on, at most L.vector.
template <RowLayout L> QN_DEVICE i32 count_from(const Row<L>& row, i32 first) { return max_of(0, min_of(L.vector, row.length - first)); }
template <RowLayout L> QN_DEVICE Packed<dtype_t<L.dtype>, L.vector> load_raw(const Row<L>& row, i32 first) {
  using T = dtype_t<L.dtype>;
  const i32 count = count_from(row, first);
  if (count == L.vector) return load_packed<T, L.vector>(row.data + first);
  Packed<T, L.vector> raw{};
  if (count > 0) {
    QN_NO_UNROLL
    for (int i = 0; i < L.vector; ++i) push(raw, i < count ? load_packed<T, 1>(row.data + first + i) : Packed<T, 1>{});
  }
  return raw;
}
/// L.vector elements from index `first` on, or fewer at the end of the row.
template <RowLayout L> QN_DEVICE Elements<L> load_elements(const Row<L>& row, i32 first) { return {load_raw(row, first), first, count_from(row, first)}; }
/// Index of the thread's first element of a step.
template <RowLayout L> QN_DEVICE i32 first_of(int step) { return step * kStep<L> + i32(threadIdx.x) * L.vector; }

/// How a loop over the elements of an access is compiled. few: to code for each of them, which a body of a few instructions wants.
/// many: to one body of code: a kernel with several bodies of a hundred instructions took 17 s to compile without it.
enum class Instructions { few, many };

/// Calls f(index, value) with each of the elements, ascending.
template <Instructions kSize, RowLayout L, class F> QN_DEVICE void each_of(Elements<L> e, F f) {
  if constexpr (kSize == Instructions::few) {
    f32 x[L.vector];
    unpack(e.raw, x);
    QN_UNROLL
    for (int i = 0; i < L.vector; ++i)
      if (i < e.count) f(e.first + i, x[i]);
  } else {
    QN_NO_UNROLL
    for (int i = 0; i < e.count; ++i) f(e.first + i, take(e.raw));
  }
}

/// Calls f(index, value) with each of the thread's elements of the row, ascending. The next access is in flight.
template <Instructions kSize, RowLayout L, class F> QN_DEVICE void each_element(const Row<L>& row, F f) {
  const int steps = steps_of(row);
  auto next = load_raw(row, first_of<L>(0));
  QN_NO_UNROLL
  for (int step = 0; step < steps; ++step) {
    const i32 first = first_of<L>(step);
    const auto here = next;
    next = load_raw(row, first_of<L>(step + 1));
    each_of<kSize>(Elements<L>{here, first, count_from(row, first)}, f);
  }
}

/// out[index] = f(index, value) of every element, kStore of them by one access. `out` may be the row itself.
template <class To, int kStore, RowLayout L, class F> QN_DEVICE void write_row(const Row<L>& row, To* out, F f) {
  static_assert(L.vector % kStore == 0);
  const int steps = steps_of(row);
  QN_NO_UNROLL
  for (int step = 0; step < steps; ++step) {
    Elements<L> e = load_elements(row, first_of<L>(step));
    Packed<To, kStore> part{};
    QN_NO_UNROLL
    for (int i = 0; i < e.count; ++i) {
      const f32 y[1] = {f(e.first + i, take(e.raw))};
      const Packed<To, 1> one = pack<To, 1>(y);
      push(part, one);
      if (i - i % kStore + kStore > e.count) store_packed(out + e.first + i, one);
      else if (i % kStore == kStore - 1) store_packed(out + e.first + i + 1 - kStore, part);
    }
  }
}

}  // namespace quern
