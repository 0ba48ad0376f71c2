// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// A row read by a team, and the order of its values: larger values first, equal ones by ascending index.
// Each block has a part of the row, each warp a segment of the part, one behind the other. A warp reads whole accesses of its lanes, in
// order.
#pragma once
#include "quern/bricks/select/team.cuh"
#include "quern/kit/float_class.cuh"

namespace quern {

/// Ascends with the value; -0 is +0. NaN has the lowest key, 0, below that of -inf.
QN_DEVICE u32 ordered_key(f32 x) {
  const u32 bits = ptx::bits_of(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0;
  if (bits == 0x80000000u) return 0x80000000u;
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}
constexpr u32 kKeyOfNegativeInfinity = 0x007fffffu, kKeyOfZero = 0x80000000u;
/// The value of a key; of 0 a NaN.
QN_DEVICE f32 value_of_key(u32 key) {
  if (key == 0) return ptx::f32_of_bits(0x7fffffffu);
  return ptx::f32_of_bits(key >> 31 ? key & 0x7fffffffu : ~key);
}

/// A row of `length` elements, at most kLongestRow.
template <RowLayout L> struct Row {
  using T = dtype_t<L.dtype>;
  const T* data;
  i32 length;
  i32 begin, end;  ///< of this block's part
  i32 segment;     ///< elements of a warp
  T* held;         ///< the part, where L.held: read_row() fills it
};
template <RowLayout L> QN_DEVICE Row<L> row_of(const Team<L>& team, const void* data, i64 length) {
  const i32 part = i32(part_length(L, length)), begin = min_of(i32(team.rank) * part, i32(length)), end = min_of(begin + part, i32(length));
  const i32 segment = round_up<i32>(ceil_div<i32>(end - begin, L.threads / 32), 32 * L.vector);
  return {static_cast<const dtype_t<L.dtype>*>(data),
          i32(length),
          begin,
          end,
          segment,
          reinterpret_cast<dtype_t<L.dtype>*>(team.smem + select_smem(L).held)};
}
/// What a warp reads at once.
template <RowLayout L> constexpr i32 kWarpStep = 32 * L.vector;
/// Of the segment of a warp.
struct Span {
  i32 begin, end;
};
template <RowLayout L> QN_DEVICE Span segment_of(const Row<L>& row, i32 warp) {
  const i32 begin = min_of(row.begin + warp * row.segment, row.end);
  return {begin, min_of(begin + row.segment, row.end)};
}

/// A thread's elements of an access: `count` from index `first` on.
template <RowLayout L> struct Elements {
  using T = dtype_t<L.dtype>;
  Packed<T, L.vector> raw;
  i32 first;
  i32 count;
  bool whole;  ///< count == L.vector. ptxas 13.0 takes that comparison for true where the count was cut from below 0 (VIMNMX.RELU)
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
/// The lowest element; those above it move down. A loop that takes its elements is one body of code, and needs no array, which an index
/// that is known only when it runs would put into local memory.
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

/// An access that begins at `first`: its elements below `end`, none of them loaded.
template <RowLayout L> QN_DEVICE Elements<L> access_at(i32 first, i32 end) {
  return {{}, first, max_of(0, min_of(L.vector, end - first)), end - first >= L.vector};
}
/// The elements of an access of which some are beyond the end, one by one. Address: of the first.
template <bool kHeld, class T, int N> QN_DEVICE Packed<T, N> load_part(const T* from, i32 count) {
  Packed<T, N> raw{};
  QN_NO_UNROLL
  for (int i = 0; i < N; ++i) {
    Packed<T, 1> one{};
    if (i < count) {
      if constexpr (kHeld) one = {ptx::ld_shared<typename Packed<T, 1>::Raw>(from + i)};
      else one = load_packed<T, 1>(from + i);
    }
    push(raw, one);
  }
  return raw;
}
/// L.vector elements from index `first` on, or those of them below `end`.
template <RowLayout L> QN_DEVICE Elements<L> load_elements(const Row<L>& row, i32 first, i32 end) {
  using T = dtype_t<L.dtype>;
  constexpr bool kHeld = L.held != 0;
  Elements<L> e = access_at<L>(first, end);
  const T* const from = kHeld ? row.held + (first - row.begin) : row.data + first;
  if (e.whole) {
    if constexpr (kHeld) e.raw = {ptx::ld_shared<typename Packed<T, L.vector>::Raw>(from)};
    else e.raw = load_packed<T, L.vector>(from);
  } else if (e.count > 0) {
    e.raw = load_part<kHeld, T, L.vector>(from, e.count);
  }
  return e;
}

/// At most four elements of an access: the lowest, which the others follow when they are moved down.
template <RowLayout L> constexpr int kGroup = L.vector < 4 ? L.vector : 4;
template <class T, int N> QN_DEVICE void unpack_group(const Packed<T, N>& v, f32 (&x)[N < 4 ? N : 4]) {
  if constexpr (N <= 4) unpack(v, x);
  else unpack<T, 4>({{v.raw.x, v.raw.y}}, x);
}
template <class T, int N> QN_DEVICE void next_group(Packed<T, N>& v) {
  if constexpr (N == 8) v.raw = {v.raw.z, v.raw.w, 0, 0};
}

/// Calls f(index, value) with each of the elements, ascending: of a whole access to code for four at a time, which need not wait for each
/// other; of a part one by one.
template <RowLayout L, class F> QN_DEVICE void each_of(Elements<L> e, F f) {
  if (e.whole) {
    QN_NO_UNROLL
    for (int group = 0; group < L.vector; group += kGroup<L>) {
      f32 x[kGroup<L>];
      unpack_group(e.raw, x);
      QN_UNROLL
      for (int i = 0; i < kGroup<L>; ++i) f(e.first + group + i, x[i]);
      next_group(e.raw);
    }
  } else {
    QN_NO_UNROLL
    for (int i = 0; i < e.count; ++i) f(e.first + i, take(e.raw));
  }
}
/// The same to one body of code: for bodies of a hundred instructions that are seldom run.
template <RowLayout L, class F> QN_DEVICE void each_of_slowly(Elements<L> e, F f) {
  QN_NO_UNROLL
  for (int i = 0; i < e.count; ++i) f(e.first + i, take(e.raw));
}

/// Calls f(elements) for the accesses of the warp's segment, in order. By whole warps; all lanes of a warp are called alike.
template <RowLayout L, class F> QN_DEVICE void each_access(const Row<L>& row, F f) {
  const Span s = segment_of(row, i32(threadIdx.x / 32));
  QN_NO_UNROLL
  for (i32 at = s.begin; at < s.end; at += kWarpStep<L>) f(load_elements(row, at + i32(ptx::lane_id()) * L.vector, s.end));
}
/// Calls f(index, value) with each of the thread's elements of the row, ascending.
template <RowLayout L, class F> QN_DEVICE void each_element(const Row<L>& row, F f) {
  each_access(row, [&](const Elements<L>& e) { each_of(e, f); });
}

/// What makes a row bad: nothing, as NaN ranks below all numbers; NaN; or NaN and numbers below 0.
enum class Bad { nothing, nan, nan_and_negative };
/// What a thread has seen of its elements.
struct Seen {
  f32 largest;   ///< Bad::nothing: NaN where all are; else -inf where there is none, NaN where one is
  f32 smallest;  ///< Bad::nan_and_negative: at most 0
  i32 first;     ///< of the access that has the largest first: its first element; -1: none is above -inf
};
template <Bad kBad> QN_DEVICE f32 larger_of(f32 a, f32 b) {
  if constexpr (kBad == Bad::nothing) return ptx::fmax(a, b);
  else return ptx::fmax_nan(a, b);
}
/// That of no element.
template <Bad kBad> QN_DEVICE f32 least_largest() { return value_of_key(kBad == Bad::nothing ? 0 : kKeyOfNegativeInfinity); }
template <Bad kBad, RowLayout L> QN_DEVICE void see(Seen& s, const Elements<L>& e) {
  f32 x[L.vector];
  unpack(e.raw, x);
  f32 best = least_largest<kBad>();
  QN_UNROLL
  for (int i = 0; i < L.vector; ++i) {
    best = larger_of<kBad>(best, x[i]);
    if constexpr (kBad == Bad::nan_and_negative) s.smallest = e.count > 0 ? ptx::fmin(s.smallest, x[i]) : s.smallest;
  }
  const f32 largest = larger_of<kBad>(s.largest, e.count > 0 ? best : least_largest<kBad>());
  if (e.count > 0 && !(largest == s.largest)) s.largest = largest, s.first = e.first;  // NaN equals nothing
}
template <Bad kBad> QN_DEVICE bool is_bad(const Seen& s) { return kBad != Bad::nothing && (is_nan(s.largest) || s.smallest < f32(0.f)); }

template <RowLayout L> QN_DEVICE void hold_part(const Row<L>& row, Elements<L> e) {
  using T = dtype_t<L.dtype>;
  QN_NO_UNROLL
  for (int i = 0; i < e.count; ++i) {
    const f32 x[1] = {take(e.raw)};
    ptx::st_shared(row.held + (e.first - row.begin) + i, pack<T, 1>(x).raw);
  }
}
/// Reads the warp's segment from memory, eight accesses of a thread in flight: the first time that the team reads the row. Fills `held`. A
/// barrier of the block must follow where others read what a warp has filled; the warp itself may go on.
template <Bad kBad, RowLayout L> QN_DEVICE Seen read_row(const Row<L>& row) {
  using T = dtype_t<L.dtype>;
  constexpr int kAhead = 8;
  Seen seen{least_largest<kBad>(), f32(0.f), -1};
  const Span s = segment_of(row, i32(threadIdx.x / 32));
  const i32 lane = i32(ptx::lane_id()) * L.vector, whole = s.begin + (s.end - s.begin) / L.vector * L.vector;  // the end of whole accesses
  QN_NO_UNROLL
  for (i32 at = s.begin; at < whole; at += kAhead * kWarpStep<L>) {
    Elements<L> e[kAhead];
    QN_UNROLL
    for (int i = 0; i < kAhead; ++i) {
      // Without a branch: what is beyond the end reads the last whole access instead
      const i32 first = at + i * kWarpStep<L> + lane;
      e[i] = {load_packed<T, L.vector>(row.data + min_of(first, whole - L.vector)), first, first < whole ? L.vector : 0, first < whole};
    }
    QN_UNROLL
    for (int i = 0; i < kAhead; ++i) {
      if constexpr (L.held)
        if (e[i].whole) ptx::st_shared(row.held + (e[i].first - row.begin), e[i].raw.raw);
      see<kBad>(seen, e[i]);
    }
  }
  if (L.vector > 1 && whole < s.end && lane == 0) {  // the row's last elements
    Elements<L> e{load_part<false, T, L.vector>(row.data + whole, s.end - whole), whole, s.end - whole, false};
    if constexpr (L.held) hold_part(row, e);
    // In the places behind them stands the last one again
    auto raw = e.raw;
    Packed<T, 1> one{};
    QN_NO_UNROLL
    for (int i = 0; i < L.vector; ++i) {
      const f32 x[1] = {take(raw)};
      if (i < e.count) one = pack<T, 1>(x);
      push(e.raw, one);
    }
    see<kBad>(seen, e);
  }
  return seen;
}
/// The index of the largest element that was seen, the lowest of equal ones.
template <RowLayout L> QN_DEVICE i32 first_of(const Row<L>& row, const Seen& s) {
  if (s.first < 0) return 0x7fffffff;
  i32 index = 0x7fffffff;
  each_of_slowly(load_elements(row, s.first, row.end), [&](i32 i, f32 x) {
    if (x == s.largest) index = min_of(index, i);
  });
  return index;
}
/// out[index] = f(index, value) of every element of the block's part, kStore of them by one access. `out` may be the row itself.
template <class To, int kStore, RowLayout L, class F> QN_DEVICE void write_row(const Row<L>& row, To* out, F f) {
  static_assert(L.vector % kStore == 0);
  each_access(row, [&](Elements<L> e) {
    if (e.whole) {
      Packed<To, kStore> part{};
      QN_NO_UNROLL
      for (int group = 0; group < L.vector; group += kGroup<L>) {
        f32 x[kGroup<L>];
        unpack_group(e.raw, x);
        QN_UNROLL
        for (int i = 0; i < kGroup<L>; ++i) x[i] = f(e.first + group + i, x[i]);
        if constexpr (kStore <= kGroup<L>) {
          QN_UNROLL
          for (int i = 0; i < kGroup<L>; i += kStore) {
            f32 y[kStore];
            QN_UNROLL
            for (int j = 0; j < kStore; ++j) y[j] = x[i + j];
            store_packed(out + e.first + group + i, pack<To, kStore>(y));
          }
        } else {  // eight by one access, in two groups
          const Packed<To, 4> half = pack<To, 4>(x);
          part.raw = {part.raw.z, part.raw.w, half.raw.x, half.raw.y};
          if (group > 0) store_packed(out + e.first, part);
        }
        next_group(e.raw);
      }
    } else {
      QN_NO_UNROLL
      for (int i = 0; i < e.count; ++i) {
        const f32 y[1] = {f(e.first + i, take(e.raw))};
        store_packed(out + e.first + i, pack<To, 1>(y));
      }
    }
  });
}

}  // namespace quern
