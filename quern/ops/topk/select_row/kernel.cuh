// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[row] = indices of the k largest of x[row], or where these tokens lie: page_table[request, index / page_size] * page_size + index % page_size,
// or index + offsets[row].
// A block takes a row at a time: a radix selection finds the place of the k-th (threshold.cuh), then each warp counts and writes what is kept
// of its part of the row, in order. A row of up to k elements is not read for it. Up to 4096 pairs are sorted in shared memory, more in place.
#pragma once
#include "quern/bricks/select/threshold.cuh"
#include "quern/kit/scan.cuh"
#include "quern/ops/topk/select_row/spec.h"

namespace quern::topk {

/// Calls f(the lane's elements) for the accesses of a warp's part of the row, in order. By whole warps.
template <RowLayout L, class F> QN_DEVICE void each_of_warp(const Row<L>& row, i32 begin, i32 end, F f) {
  for (i32 at = begin; at < end; at += 32 * L.vector) f(load_elements(row, at + i32(ptx::lane_id()) * L.vector));
}

/// Writes the indices that are kept, ascending, into out.
template <RowLayout L> QN_DEVICE void compact(const SelectMemory& m, const Row<L>& row, const Threshold& kept, i32* out) {
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
  i64 at = 0;
  for (int w = 0; w < kWarps; ++w)
    if (w < warp) at += i64(m.bins[w][0]);
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

/// Slots that i32 does not hold, and offsets beyond it, are no places.
QN_DEVICE i32 place_or_none(i64 place) { return place >= 0 && place <= 2147483647 ? i32(place) : -1; }

/// A request's pages, from the row's first on.
struct PagesOfRow {
  const i32* pages;  ///< [count]
  i64 count;         ///< 0 where there is no such request, or no such column of the table
  i32 page_size;
};
QN_DEVICE PagesOfRow pages_of(const PageTableParams& p, i64 row) {
  const i64 request = p.row_to_batch ? i64(ptx::ld_global<i32>(p.row_to_batch + row)) : row, first = p.row_starts ? i64(ptx::ld_global<i32>(p.row_starts + row)) : 0;
  if (request < 0 || request >= p.batch || first < 0 || first >= p.max_pages) return {nullptr, 0, p.page_size};
  return {p.table + request * p.stride + first, p.max_pages - first, p.page_size};
}
QN_DEVICE i32 slot_of(const PagesOfRow& p, i32 index) {
  const i32 entry = index / p.page_size;
  if (entry >= p.count) return -1;
  const i64 page = ptx::ld_global<i32>(p.pages + entry);
  return page < 0 ? -1 : place_or_none(page * p.page_size + (index - entry * p.page_size));
}

// The last step of a row: `out` holds its n indices, and behind them nothing yet. Each thread writes what it alone has read.
template <SelectConfig C> QN_DEVICE void write_slots(const PageTableParams& p, i32* out, i64 n, i64 k, i64 row) {
  const PagesOfRow pages = pages_of(p, row);
  i32* indices = p.indices ? p.indices + row * p.indices_stride : nullptr;
  for (i64 i = threadIdx.x; i < k; i += C.threads) {
    const i32 index = i < n ? out[i] : -1;
    if (indices) indices[i] = index;
    out[i] = index < 0 ? -1 : slot_of(pages, index);
  }
}
template <SelectConfig C> QN_DEVICE void write_offsets(const i32* offsets, i32* out, i64 n, i64 k, i64 row) {
  const i64 offset = ptx::ld_global<i32>(offsets + row);
  for (i64 i = threadIdx.x; i < k; i += C.threads) out[i] = i < n ? place_or_none(offset + out[i]) : -1;
}
template <SelectConfig C> QN_DEVICE void write_values(const SelectParams& p, const Row<C.row>& row, const i32* indices, i64 n, i64 index) {
  using T = dtype_t<C.row.dtype>;
  T* values = static_cast<T*>(p.values) + index * p.values_stride;
  for (i64 i = threadIdx.x; i < p.k; i += C.threads) {
    f32 x[1] = {value_of_key(kKeyOfNegativeInfinity)};
    if (i < n) load_f32<T, 1>(row.data + indices[i], x);
    store_f32<T, 1>(values + i, x);
  }
}

template <SelectConfig C> QN_DEVICE Row<C.row> row_of(const SelectParams& p, i64 index) {
  const i64 start = p.row_starts ? i64(ptx::ld_global<i32>(p.row_starts + index)) : 0, length = p.lengths ? i64(ptx::ld_global<i32>(p.lengths + index)) : p.length - start;
  const i64 begin = max_of<i64>(0, min_of(start, p.length));
  return {static_cast<const dtype_t<C.row.dtype>*>(p.x) + index * p.stride + begin, i32(max_of<i64>(0, min_of(length, p.length - begin)))};
}

template <SelectConfig C> QN_DEVICE void select_of(const SelectMemory& m, const SelectParams& p, i64 index) {
  const Row<C.row> row = row_of<C>(p, index);
  i32* out = p.out + index * p.out_stride;
  const i64 n = min_of<i64>(p.k, row.length);
  if (n == row.length) {  // all are kept, whatever their values
    for (i64 i = threadIdx.x; i < n; i += C.threads) out[i] = i32(i);
  } else if (n > 0) {
    compact(m, row, select_prefix(m, row, [&](i32, f32) { return U128{1, 0}; }, [&](U128) { return U128{u64(n), 0}; }), out);
  }
  ptx::sync_block();
  if constexpr (C.ending == Ending::page_table) {
    write_slots<C>(p.pages, out, n, p.k, index);
  } else if constexpr (C.ending == Ending::ragged) {
    write_offsets<C>(p.offsets, out, n, p.k, index);
  } else {
    if constexpr (C.ending == Ending::by_value) sort_indices(m, row, out, n);
    for (i64 i = n + threadIdx.x; i < p.k; i += C.threads) out[i] = -1;
    if (p.values) write_values<C>(p, row, out, n, index);
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
