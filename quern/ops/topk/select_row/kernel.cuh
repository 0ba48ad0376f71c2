// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[row] = indices of the k largest of x[row], or where these tokens lie: page_table[request, index / page_size] * page_size + index %
// page_size, or index + offsets[row]. A team of blocks takes a row at a time and finds the place of the k-th (threshold.cuh). Mostly the
// team's first block then has the k in a sorted list; else each warp counts and writes what is kept of its segment, in order. A row of up
// to k elements is not read for it. What follows is the work of the first block: up to L.listed indices are sorted in shared memory, more
// in place.
#pragma once
#include "quern/bricks/select/threshold.cuh"
#include "quern/kit/scan.cuh"
#include "quern/ops/topk/select_row/spec.h"

namespace quern::topk {

/// Writes the indices that are kept, ascending, into out. By the whole team.
template <RowLayout L> QN_DEVICE void compact(Team<L>& team, const Row<L>& row, const Threshold& kept, i32* out) {
  u32 mine = 0;
  each_element(row, [&](i32 i, f32 x) { mine += keeps(kept, ordered_key(x), i); });
  const BlockSums sums = block_sums(team, {mine, 0});
  if (threadIdx.x == 0) *slots_of(team) = sums.total;
  const U128* const shown = show_slots(team);
  // Where the first element of the warp goes
  i64 at = i64(ptx::shfl(u32(sums.before.low), 0));
  QN_NO_UNROLL
  for (u32 rank = 0; rank < team.rank; ++rank) at += i64(read_of<L>(rank, &shown->low));
  each_access(row, [&](const Elements<L>& e) {
    u32 here = 0;
    each_of(e, [&](i32 i, f32 x) { here += keeps(kept, ordered_key(x), i); });
    const u32 last = warp_prefix_sum(here);
    i64 to = at + last - here;
    each_of(e, [&](i32 i, f32 x) {
      if (keeps(kept, ordered_key(x), i)) out[to++] = i32(i);
    });
    at += ptx::shfl(last, 31);
  });
}

/// Ascends in the order of values.
template <RowLayout L> QN_DEVICE u64 place_of(const Row<L>& row, i32 index) {
  f32 x[1];
  load_f32<dtype_t<L.dtype>, 1>(row.data + index, x);
  return u64(~ordered_key(x[0])) << 32 | u32(index);
}

template <RowLayout L> QN_DEVICE void sort_indices(const Team<L>& team, const Row<L>& row, i32* indices, i64 n) {
  if (n <= L.listed) {
    u64* places = list_of(team);
    for (i64 i = threadIdx.x; i < n; i += L.threads) places[i] = place_of(row, indices[i]);
    sort_numbers<L.threads>(places, n);
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
  const i64 request = p.row_to_batch ? i64(ptx::ld_global<i32>(p.row_to_batch + row)) : row,
            first = p.row_starts ? i64(ptx::ld_global<i32>(p.row_starts + row)) : 0;
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

template <SelectConfig C> QN_DEVICE Row<C.row> row_at(const Team<C.row>& team, const SelectParams& p, i64 index) {
  const i64 start = p.row_starts ? i64(ptx::ld_global<i32>(p.row_starts + index)) : 0,
            length = p.lengths ? i64(ptx::ld_global<i32>(p.lengths + index)) : p.length - start;
  const i64 begin = max_of<i64>(0, min_of(start, p.length));
  return row_of(team, static_cast<const dtype_t<C.row.dtype>*>(p.x) + index * p.stride + begin,
                max_of<i64>(0, min_of(length, p.length - begin)));
}

/// Writes the first n indices of the block's list, which is sorted by value: in that order, or ascending.
template <SelectConfig C> QN_DEVICE void take_list(const Team<C.row>& team, i32* out, i64 n) {
  u64* const list = list_of(team);
  if constexpr (C.ending != Ending::by_value) {
    for (i64 i = threadIdx.x; i < n; i += C.threads) list[i] = u32(list[i]);
    sort_numbers<C.threads>(list, n);
  }
  for (i64 i = threadIdx.x; i < n; i += C.threads) out[i] = i32(u32(list[i]));
}

/// What becomes of a row's n indices, by one block. sorted: by value.
template <SelectConfig C> QN_DEVICE void finish_row(const Team<C.row>& team, const SelectParams& p, const Row<C.row>& row, i32* out, i64 n,
                                                    i64 index, bool sorted) {
  if constexpr (C.ending == Ending::page_table) {
    write_slots<C>(p.pages, out, n, p.k, index);
  } else if constexpr (C.ending == Ending::ragged) {
    write_offsets<C>(p.offsets, out, n, p.k, index);
  } else {
    if constexpr (C.ending == Ending::by_value)
      if (!sorted) sort_indices(team, row, out, n);
    for (i64 i = n + threadIdx.x; i < p.k; i += C.threads) out[i] = -1;
    if (p.values) write_values<C>(p, row, out, n, index);
  }
}

template <SelectConfig C> QN_DEVICE void select_of(Team<C.row>& team, const SelectParams& p, i64 index) {
  const Row<C.row> row = row_at<C>(team, p, index);
  i32* out = p.out + index * p.out_stride;
  const i64 n = min_of<i64>(p.k, row.length);
  bool listed = false;
  if (n == row.length) {  // all are kept, whatever their values
    if (team.rank == 0)
      for (i64 i = threadIdx.x; i < n; i += C.threads) out[i] = i32(i);
  } else if (n > 0) {
    Largest largest;
    read_for_largest<Bad::nothing>(team, row, largest);
    const Threshold kept = select_by_rank(team, row, largest, u32(n), listed);
    if (!listed) compact(team, row, kept, out);
    else if (team.rank == 0) take_list<C>(team, out, n);
  }
  sync_team<C.row>();
  if (team.rank == 0) finish_row<C>(team, p, row, out, n, index, listed);
}

template <SelectConfig C> QN_DEVICE void select_row(const SelectParams& p) {
  QN_SMEM(smem);
  Team<C.row> team = team_of<C.row>(smem);
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  for (i64 row = team_index<C.row>(); row < p.rows; row += team_count<C.row>()) {
    select_of<C>(team, p, row);
    ptx::sync_block();
  }
}

}  // namespace quern::topk
