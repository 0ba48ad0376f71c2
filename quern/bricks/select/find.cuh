// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Where an exact prefix sum passes a number: in a list in shared memory, and in a row of which nothing is kept.
#pragma once
#include "quern/bricks/mass/wide.cuh"
#include "quern/bricks/select/row.cuh"

namespace quern {

/// An entry of a list, the sum of those before it, and that of all. index == the list's length: no prefix sum is above the target.
struct Found {
  U128 before, entry, total;
  u32 index;
  u32 unused[3];
};

/// Shared memory of a block that selects.
struct SelectMemory {
  u64 (*bins)[2];  // [kSelectBins]
  U128* parts;     // [32]
  Found* found;
};
QN_DEVICE SelectMemory select_memory(u8* smem) {
  constexpr SelectSmem S = select_smem();
  return {reinterpret_cast<u64(*)[2]>(smem + S.bins), reinterpret_cast<U128*>(smem + S.parts), reinterpret_cast<Found*>(smem + S.found)};
}

/// A bin is the sum of numbers below 2^104: of their low 42 bits, and of the rest. So 2^20 of them fit.
constexpr int kBinSplit = 42;
QN_DEVICE void clear_bins(const SelectMemory& m, int count, int threads) {
  QN_NO_UNROLL
  for (int i = int(threadIdx.x); i < count; i += threads) m.bins[i][0] = 0, m.bins[i][1] = 0;
}
QN_DEVICE void add_to_bin(const SelectMemory& m, u32 bin, U128 more) {
  const u64 low = more.low & ((u64(1) << kBinSplit) - 1), rest = shifted_right(more, kBinSplit).low;
  if (low != 0) ptx::atomic_add(&m.bins[bin][0], low);
  if (rest != 0) ptx::atomic_add(&m.bins[bin][1], rest);
}
QN_DEVICE U128 bin_sum(const SelectMemory& m, u32 bin) { return U128{m.bins[bin][0], 0} + shifted_left({m.bins[bin][1], 0}, kBinSplit); }

/// The first of `count` entries whose inclusive prefix sum is above target(sum of all). By the whole block, which gets one result; entries in
/// shared memory may be written until the call and again after it.
template <class Entry, class Target> QN_DEVICE Found find_above(const SelectMemory& m, u32 count, Entry entry, Target target) {
  ptx::sync_block();
  if (threadIdx.x < 32) {
    const u32 lane = threadIdx.x, share = ceil_div<u32>(count, 32), begin = min_of(lane * share, count), end = min_of(begin + share, count);
    U128 mine{0, 0};
    QN_NO_UNROLL
    for (u32 i = begin; i < end; ++i) mine = mine + entry(i);
    m.parts[lane] = mine;
    ptx::sync_warp();
    U128 before{0, 0}, total{0, 0};
    QN_NO_UNROLL
    for (u32 i = 0; i < 32; ++i) {
      if (i == lane) before = total;
      total = total + m.parts[i];
    }
    const U128 wanted = target(total);
    if (!(wanted < total)) {
      if (lane == 0) *m.found = {total, {0, 0}, total, count, {}};
    } else if (before <= wanted && wanted < before + mine) {
      QN_NO_UNROLL
      for (u32 i = begin; i < end; ++i) {
        const U128 e = entry(i);
        if (wanted < before + e) {
          *m.found = {before, e, total, i, {}};
          break;
        }
        before = before + e;
      }
    }
  }
  ptx::sync_block();
  return *m.found;
}

/// The first element of a row at which the prefix sum of measure(index, value) passes target(sum of all), in order of the index.
/// index == row.length: none. The row is read once, and one step of it again.
template <RowLayout L, class Measure, class Target> QN_DEVICE Found find_in_row(const SelectMemory& m, const Row<L>& row, Measure measure, Target target) {
  const int steps = steps_of(row);
  ptx::sync_block();
  clear_bins(m, steps, L.threads);
  ptx::sync_block();
  QN_NO_UNROLL
  for (int step = 0; step < steps; ++step) {
    U128 sum{0, 0};
    each_of<Instructions::many>(load_elements(row, first_of<L>(step)), [&](i32 index, f32 x) { sum = sum + measure(index, x); });
    add_to_bin(m, u32(step), sum);
  }
  const Found of_step = find_above(m, u32(steps), [&](u32 i) { return bin_sum(m, i); }, target);
  if (of_step.index == u32(steps)) return {of_step.before, {0, 0}, of_step.total, u32(row.length), {}};
  const U128 wanted = target(of_step.total) - of_step.before;

  const Elements<L> mine = load_elements(row, first_of<L>(int(of_step.index)));
  U128 sum{0, 0};
  each_of<Instructions::many>(mine, [&](i32 index, f32 x) { sum = sum + measure(index, x); });
  ptx::sync_block();
  m.bins[threadIdx.x][0] = sum.low, m.bins[threadIdx.x][1] = sum.high;
  const Found of_thread = find_above(m, L.threads, [&](u32 i) { return U128{m.bins[i][0], m.bins[i][1]}; }, [&](U128) { return wanted; });
  ptx::sync_block();
  if (threadIdx.x == of_thread.index) {
    U128 before = of_thread.before;
    each_of<Instructions::many>(mine, [&](i32 index, f32 x) {
      const U128 e = measure(index, x), upto = before + e;
      if (before <= wanted && wanted < upto) *m.found = {of_step.before + before, e, of_step.total, u32(index), {}};
      before = upto;
    });
  }
  ptx::sync_block();
  return *m.found;
}

/// The largest of the threads' numbers; every thread gets it.
template <int kThreads> QN_DEVICE u64 block_max(const SelectMemory& m, u64 mine) {
  ptx::sync_block();
  m.bins[threadIdx.x][0] = mine;
  ptx::sync_block();
  if (threadIdx.x < 32) {
    QN_NO_UNROLL
    for (int i = int(threadIdx.x) + 32; i < kThreads; i += 32) mine = max_of(mine, m.bins[i][0]);
    m.parts[threadIdx.x].low = mine;
  }
  ptx::sync_block();
  u64 all = m.parts[0].low;
  QN_NO_UNROLL
  for (int lane = 1; lane < 32; ++lane) all = max_of(all, m.parts[lane].low);
  return all;
}

/// The sum of the threads' numbers, each below 2^104; every thread gets it.
template <int kThreads> QN_DEVICE U128 block_total(const SelectMemory& m, U128 mine) {
  ptx::sync_block();
  m.bins[threadIdx.x][0] = mine.low, m.bins[threadIdx.x][1] = mine.high;
  ptx::sync_block();
  if (threadIdx.x < 32) {
    QN_NO_UNROLL
    for (int i = int(threadIdx.x) + 32; i < kThreads; i += 32) mine = mine + U128{m.bins[i][0], m.bins[i][1]};
    m.parts[threadIdx.x] = mine;
  }
  ptx::sync_block();
  U128 all = m.parts[0];
  QN_NO_UNROLL
  for (int lane = 1; lane < 32; ++lane) all = all + m.parts[lane];
  return all;
}

}  // namespace quern
