// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Two-level sums of 8-bit operands: the tensor cores sum a stage of 128 columns of K, whose products a thread then scales and
// adds to sums of its own. The tensor cores keep about 14 bits of a sum of e4m3 (docs/emulator.md), so longer runs lose more.
#pragma once
#include "quern/kit/kit.cuh"
#include "quern/kit/wgmma_ring.cuh"
#include "quern/ops/gemm/scaled_sm90_spec.h"

namespace quern::gemm {

/// Where the scales of `row` begin (past `rows`: of the last one, for results that are not stored).
QN_DEVICE const f32* scales_of_row(const Scales& s, i32 row, i32 rows) {
  return static_cast<const f32*>(s.data) + i64(min_of(row, rows - 1) >> s.row_shift) * s.row_stride;
}
QN_DEVICE f32 scale_of_group(const f32* of_row, const Scales& s, i32 group) {
  return ptx::ld_global_nc<f32>(of_row + i64(group) * s.column_stride);
}

/// Fetches the scales of `rows` rows from `row` (of `all`) and `groups` groups from `group` into the L2: thread `thread` of `threads`
/// takes its share of their lines. A load that finds them in memory takes longer than a stage does.
QN_DEVICE void prefetch_scales(const Scales& s, i32 row, i32 rows, i32 all, i32 group, i32 groups, i32 thread, i32 threads) {
  constexpr i32 kLine = 32;  // scales of 128 bytes
  const bool along_rows = s.row_stride <= s.column_stride;
  const i32 row_step = along_rows ? kLine << s.row_shift : 1 << s.row_shift, group_step = along_rows ? 1 : kLine;
  const i32 in_rows = (rows + row_step - 1) / row_step, count = in_rows * ((groups + group_step - 1) / group_step);
  QN_NO_UNROLL
  for (i32 i = thread; i < count; i += threads)
    ptx::prefetch_l2(scales_of_row(s, row + i % in_rows * row_step, all) + i64(group + i / in_rows * group_step) * s.column_stride);
}

/// total += sums times the scales of the thread's two rows and of its columns. Of the scales of columns a lane holds those of the columns
/// lane, lane + 32 ..: each thread needs a quarter of them, and gets them from other lanes.
template <int kHeld, int count>
QN_DEVICE void add_scaled(const f32 (&of_rows)[2], const f32 (&of_columns)[kHeld], const f32 (&sums)[count], f32 (&total)[count]) {
  static_assert(kHeld == (count + 15) / 16);
  QN_UNROLL
  for (int i = 0; i < count / 4; ++i) {
    QN_UNROLL
    for (int j = 0; j < 2; ++j) {
      const f32 of_column = ptx::shfl(of_columns[i / 4], i % 4 * 8 + 2 * i32(ptx::lane_id() % 4) + j);
      total[4 * i + j] = ptx::fma(sums[4 * i + j], of_rows[0] * of_column, total[4 * i + j]);
      total[4 * i + 2 + j] = ptx::fma(sums[4 * i + 2 + j], of_rows[1] * of_column, total[4 * i + 2 + j]);
    }
  }
}

/// Reads `steps` stages; products(stage, sums) issues the instructions of one, the first of which does not add, load(step) gives a
/// thread's scales of it, and add(scales, sums) adds its products to the thread's sums. Scales come two steps ahead. While
/// one warpgroup adds, another's products are in the tensor cores; two sets of sums for one warpgroup, in turn, make ptxas serialise
/// wgmma (C7510).
template <int stages, int count, class Products, class Load, class Add>
QN_DEVICE void multiply_scaled_stages(Consumer<stages>& read, int steps, const Products& products, const Load& load, const Add& add) {
  f32 sums[count];
  zero(sums);
  auto scales = load(0), next = load(min_of(1, steps - 1));
  QN_NO_UNROLL
  for (int step = 0; step < steps; ++step) {
    begin_read(read);
    hold(sums);
    ptx::wgmma_fence();
    products(read.stage, sums);
    ptx::wgmma_commit();
    hold(sums);
    const auto later = load(min_of(step + 2, steps - 1));
    ptx::wgmma_wait<0>();
    hold(sums);
    end_read(read);
    add(scales, sums);
    scales = next;
    next = later;
  }
}

}  // namespace quern::gemm
