// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// indices[row] = those of the k largest of x[row]
// A block takes a row at a time: a radix selection finds the place of the k-th (threshold.cuh), then each warp counts and writes what is kept
// of its part of the row, in order. Up to 4096 pairs are sorted in shared memory, more in place.
#pragma once
#include "quern/bricks/select/threshold.cuh"
#include "quern/kit/scan.cuh"
#include "quern/ops/topk/select_row/spec.h"

namespace quern::topk {

/// Calls f(the lane's elements) for the accesses of a warp's part of the row, in order. By whole warps.
template <RowLayout L, class F> QN_DEVICE void each_of_warp(const Row<L>& row, i32 begin, i32 end, F f) {
  for (i32 at = begin; at < end; at += 32 * L.vector) f(load_elements(row, at + i32(ptx::lane_id()) * L.vector));
}

/// Writes the indices that are kept, ascending, into out; how many.
template <RowLayout L> QN_DEVICE i64 compact(const SelectMemory& m, const Row<L>& row, const Threshold& kept, i32* out) {
  constexpr int kWarps = L.threads / 32;
  const int warp = int(threadIdx.x / 32);
  const i32 part = round_up<i32>(ceil_div<i32>(row.length, kWarps), 32 * L.vector), begin = min_of(warp * part, row.length), end = min_of(begin + part, row.length);
  u32 mine = 0;
  each_of_warp(row, begin, end, [&](const Elements<L>& e) {
    each_of<Instructions::few>(e, [&](i32 i, f32 x) { mine += keeps(kept, ordered_key(x), i); });
  });
  const u32 upto = warp_prefix_sum(mine);
  ptx::sync_block();
  if (ptx::lane_id() == 31) m.bins[warp][0] = upto;
  ptx::sync_block();
  i64 at = 0, total = 0;
  for (int w = 0; w < kWarps; ++w) {
    if (w < warp) at += i64(m.bins[w][0]);
    total += i64(m.bins[w][0]);
  }
  each_of_warp(row, begin, end, [&](const Elements<L>& e) {
    u32 here = 0;
    each_of<Instructions::few>(e, [&](i32 i, f32 x) { here += keeps(kept, ordered_key(x), i); });
    const u32 last = warp_prefix_sum(here);
    i64 to = at + last - here;
    each_of<Instructions::few>(e, [&](i32 i, f32 x) {
      if (keeps(kept, ordered_key(x), i)) out[to++] = i32(i);
    });
    at += ptx::shfl(last, 31);
  });
  return total;
}

/// Sorts n things by exchange(a, b), which puts those at places a < b in order: bitonic, each pair in the same direction, so that places past
/// the end act as the largest things and never move.
template <int kThreads, class Exchange> QN_DEVICE void sort(i64 n, Exchange exchange) {
  for (i64 size = 2; size < 2 * n; size *= 2)
    for (i64 stride = size; stride > 1; stride /= 2) {
      ptx::sync_block();
      for (i64 a = threadIdx.x; a < n; a += kThreads) {
        const i64 b = stride == size ? a ^ (size - 1) : a ^ (stride / 2);
        if (a < b && b < n) exchange(a, b);
      }
    }
  ptx::sync_block();
}

/// Ascends in the order of values.
template <RowLayout L> QN_DEVICE u64 place_of(const Row<L>& row, i32 index) {
  f32 x[1];
  load_f32<dtype_t<L.dtype>, 1>(row.data + index, x);
  return u64(~ordered_key(x[0])) << 32 | u32(index);
}

template <RowLayout L> QN_DEVICE void sort_indices(const SelectMemory& m, const Row<L>& row, i32* indices, i64 n) {
  if (n <= kSortedInShared) {
    u64* places = &m.bins[0][0];
    for (i64 i = threadIdx.x; i < n; i += L.threads) places[i] = place_of(row, indices[i]);
    sort<L.threads>(n, [&](i64 a, i64 b) {
      const u64 one = places[a], other = places[b];
      if (other < one) places[a] = other, places[b] = one;
    });
    for (i64 i = threadIdx.x; i < n; i += L.threads) indices[i] = i32(u32(places[i]));
  } else {
    sort<L.threads>(n, [&](i64 a, i64 b) {
      const i32 one = indices[a], other = indices[b];
      if (place_of(row, other) < place_of(row, one)) indices[a] = other, indices[b] = one;
    });
  }
  ptx::sync_block();
}

template <SelectConfig C> QN_DEVICE void select_of(const SelectMemory& m, const SelectParams& p, i64 index) {
  constexpr RowLayout L = C.row;
  using T = dtype_t<L.dtype>;
  const i64 start = p.row_starts ? i64(ptx::ld_global<i32>(p.row_starts + index)) : 0, length = p.lengths ? i64(ptx::ld_global<i32>(p.lengths + index)) : p.length - start;
  const i64 begin = max_of<i64>(0, min_of(start, p.length));
  const Row<L> row{static_cast<const T*>(p.x) + index * p.stride + begin, i32(max_of<i64>(0, min_of(length, p.length - begin)))};
  i32* indices = p.indices + index * p.indices_stride;
  const i64 n = min_of<i64>(p.k, row.length);
  if (n > 0) {
    const Threshold kept = n < row.length ? select_prefix(m, row, [&](i32, f32) { return U128{1, 0}; }, [&](U128) { return U128{u64(n), 0}; }) : keep_all(row.length);
    compact(m, row, kept, indices);
    ptx::sync_block();
    if constexpr (C.sorted != 0) sort_indices(m, row, indices, n);
  }
  for (i64 i = n + threadIdx.x; i < p.k; i += L.threads) indices[i] = -1;
  if (p.values == nullptr) return;
  T* values = static_cast<T*>(p.values) + index * p.values_stride;
  for (i64 i = threadIdx.x; i < p.k; i += L.threads) {
    f32 x[1] = {value_of_key(kKeyOfNegativeInfinity)};
    if (i < n) load_f32<T, 1>(row.data + indices[i], x);
    store_f32<T, 1>(values + i, x);
  }
}

template <SelectConfig C> QN_DEVICE void select_row(const SelectParams& p) {
  QN_SMEM(smem);
  const SelectMemory m = select_memory(smem);
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  for (i64 row = blockIdx.x; row < p.rows; row += gridDim.x) select_of<C>(m, p, row);
}

}  // namespace quern::topk
