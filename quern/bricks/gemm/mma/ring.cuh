// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[i, j] = activation(sum_x a[i, x] b[j, x] + bias[j] + c[i, j])
// One block per [tile_m][tile_n] part of out and per split of K. Tiles of a and b pass through a ring of stages in
// shared memory, filled by cp.async stages - 1 tiles ahead, with one barrier a stage; warps multiply by mma.sync
// m16n8k16. An element is summed over its split's steps of 32 columns in ascending order, each step as kit/mma_tile.cuh
// states, whatever the tile; sums of splits are added in ascending order, by dense_sum_splits or (sum_parts_in_block) here.
#pragma once
#include "quern/bricks/gemm/mma/ring_spec.h"
#include "quern/bricks/gemm/store.cuh"
#include "quern/kit/copy_tile.cuh"
#include "quern/kit/kit.cuh"
#include "quern/kit/mma_tile.cuh"

namespace quern::gemm {

/// Copies of an operand's tiles, and where a lane finds its fragments in them.
template <Major kMajor>
struct DenseOperand {
  template <class T, int kRows, int kK, int kVector, int kThreads>
  using Copy = TileCopy<T, kRows, kK, kVector, kThreads>;
  template <class Tile, int kCount>
  using Fragments = RowK32<Tile>;  ///< of one row
  template <class T>
  QN_DEVICE const T* at(const void* x, i64 row, i64 k, i64 stride) {
    return static_cast<const T*>(x) + row * stride + k;
  }
};
template <>
struct DenseOperand<Major::mn> {
  template <class T, int kRows, int kK, int kVector, int kThreads>
  using Copy = MnTileCopy<T, kRows, kK, kVector, kThreads>;
  template <class Tile, int kCount>
  using Fragments = ColumnsK32<Tile, kCount>;  ///< of all the lane's rows
  template <class T>
  QN_DEVICE const T* at(const void* x, i64 row, i64 k, i64 stride) {
    return static_cast<const T*>(x) + k * stride + row;
  }
};

/// Sizes that follow from the Config.
template <DenseConfig C>
struct DenseShape {
  using T = dtype_t<C.dtype>;
  static constexpr int kWarpM = C.tile_m / C.warps_m, kWarpN = C.tile_n / C.warps_n;  ///< a warp's part of out
  static constexpr int kTilesM = kWarpM / 16, kTilesN = kWarpN / 8;                   ///< in instructions
  using A = DenseOperand<C.a_major>;
  using B = DenseOperand<C.b_major>;
  using CopyA = typename A::template Copy<T, C.tile_m, C.tile_k, C.vector, C.threads>;
  using CopyB = typename B::template Copy<T, C.tile_n, C.tile_k, C.vector, C.threads>;
  /// A lane's rows of its warp's part, of which an MN-major a gives neighbours.
  static constexpr int kRowStep = C.a_major == Major::k ? 8 : 1;
  static_assert(C.threads == 32 * C.warps_m * C.warps_n && kWarpM % 16 == 0 && kWarpN % 8 == 0);
};

/// What a block computes.
struct DenseWork {
  i64 row, column;  // of out, first
  i64 k_begin;
  i64 k_count;
};

/// The first of a lane's rows of its warp's part of out; the others follow at distances of kRowStep.
template <DenseConfig C>
QN_DEVICE int first_row_of_lane(int lane_row) {
  return C.a_major == Major::k ? lane_row : 2 * DenseShape<C>::kTilesM * lane_row;
}

/// Where a lane finds its fragments in a stage.
template <DenseConfig C>
struct DenseFragments {
  using S = DenseShape<C>;
  using RowA = typename S::A::template Fragments<typename S::CopyA::Tile, 2 * S::kTilesM>;
  using RowB = typename S::B::template Fragments<typename S::CopyB::Tile, S::kTilesN>;
  static constexpr int kPlacesB = C.b_major == Major::k ? S::kTilesN : 1;
  RowA a;
  RowB b[kPlacesB];

  QN_DEVICE DenseFragments of_thread() {
    const int warp = int(threadIdx.x) / 32, lane_row = int(ptx::lane_id()) / 4;
    DenseFragments f;
    f.a = RowA::of(warp / C.warps_n * S::kWarpM + first_row_of_lane<C>(lane_row));
    QN_UNROLL
    for (int j = 0; j < kPlacesB; ++j)
      f.b[j] = RowB::of(warp % C.warps_n * S::kWarpN +
                        (C.b_major == Major::k ? fragment_column<S::kTilesN>(j, lane_row) : S::kTilesN * lane_row));
    return f;
  }
};

/// Multiplies one stage into the accumulators.
template <DenseConfig C, int kM, int kN>
QN_DEVICE void multiply_stage(const u8* stage, const DenseFragments<C>& at, f32 (&sums)[kM][kN][4]) {
  using F = DenseFragments<C>;
  constexpr auto L = dense_smem(C);
  QN_UNROLL
  for (int step = 0; step < C.tile_k / 32; ++step) {
    u32x4 a[2 * kM], b[kN];
    if constexpr (C.b_major == Major::mn) {
      F::RowB::load(at.b[0], stage + L.b, step, b);
    } else {
      QN_UNROLL
      for (int j = 0; j < kN; ++j) b[j] = F::RowB::load(at.b[j], stage + L.b, step);
    }
    if constexpr (C.a_major == Major::mn) F::RowA::load(at.a, stage + L.a, step, a);
    QN_UNROLL
    for (int i = 0; i < kM; ++i) {
      if constexpr (C.a_major == Major::k) {
        a[2 * i] = F::RowA::load(at.a, stage + L.a, step, 16 * i);
        a[2 * i + 1] = F::RowA::load(at.a, stage + L.a, step, 16 * i + 8);
      }
      QN_UNROLL
      for (int j = 0; j < kN; ++j) mma_k32<typename F::S::T>(sums[i][j], a[2 * i], a[2 * i + 1], b[j]);
    }
  }
}

/// totals += sums, and sums become zero.
template <int kM, int kN>
QN_DEVICE void fold_sums(f32 (&totals)[kM][kN][4], f32 (&sums)[kM][kN][4]) {
  QN_UNROLL
  for (int i = 0; i < kM; ++i) {
    QN_UNROLL
    for (int j = 0; j < kN; ++j) {
      QN_UNROLL
      for (int x = 0; x < 4; ++x) {
        totals[i][j][x] = totals[i][j][x] + sums[i][j][x];
        sums[i][j][x] = 0.f;
      }
    }
  }
}

/// Sums the block's part of K into `totals` (sum_parts_in_block) or `sums`; both start as zeros.
template <DenseConfig C, int kM, int kN>
QN_DEVICE void sum_over_k(const DenseParams& p, const DenseWork& work, u8* smem, f32 (&totals)[kM][kN][4], f32 (&sums)[kM][kN][4]) {
  using S = DenseShape<C>;
  using T = typename S::T;
  constexpr auto L = dense_smem(C);
  const auto at = DenseFragments<C>::of_thread();
  const auto a = S::CopyA::start(S::A::template at<T>(p.a, work.row, work.k_begin, p.a_stride), p.a_stride, p.m - work.row);
  const auto b = S::CopyB::start(S::B::template at<T>(p.b, work.column, work.k_begin, p.b_stride), p.b_stride, p.n - work.column);
  const int steps = int((work.k_count + C.tile_k - 1) / C.tile_k);
  QN_NO_UNROLL
  for (int slot = 0; slot < min_of(steps, C.stages); ++slot) {
    S::CopyA::zero_rows(a, smem + slot * L.stage + L.a);
    S::CopyB::zero_rows(b, smem + slot * L.stage + L.b);
  }
  // Copies run kAhead steps before the multiplications; one loop does both, so that the code of a copy stands once
  constexpr int kAhead = C.stages - 1;
  int slot = 0, next_slot = 0, in_split = 0;
  const int split_steps = int(p.split_k / C.tile_k);
  QN_NO_UNROLL
  for (int next = 0; next < steps + kAhead; ++next) {
    if (next >= kAhead) {
      // The tiles of step next - kAhead have landed for all, and nobody reads those of the step before any more
      ptx::cp_async_wait<kAhead - 1>();
      ptx::sync_block();
    }
    if (next < steps) {
      const i64 k = i64(next) * C.tile_k;
      const int columns = int(min_of<i64>(C.tile_k, work.k_count - k));
      S::CopyA::issue(a, smem + next_slot * L.stage + L.a, k, columns);
      S::CopyB::issue(b, smem + next_slot * L.stage + L.b, k, columns);
      next_slot = next_slot + 1 == C.stages ? 0 : next_slot + 1;
    }
    ptx::cp_async_commit();  // also an empty group, so that the count of groups is that of steps
    if (next >= kAhead) {
      multiply_stage<C>(smem + slot * L.stage, at, sums);
      if constexpr (C.sum_parts_in_block != 0)
        if (++in_split == split_steps || next + 1 == steps + kAhead) fold_sums(totals, sums), in_split = 0;
      slot = slot + 1 == C.stages ? 0 : slot + 1;
    }
  }
}

/// A thread's place in out: the rows first_row + kRowStep i, of each the 2 kN columns from `column`, `columns` of which exist.
struct DensePlace {
  i64 first_row, column;
  int columns;
};

/// The results of row i of a thread's rows, in the order of the columns for which b's fragments were loaded.
template <DenseConfig C, int kM, int kN>
QN_DEVICE void row_of_sums(const f32 (&sums)[kM][kN][4], int i, f32 (&values)[2 * kN]) {
  constexpr bool kPairs = C.b_major == Major::k;
  QN_UNROLL
  for (int j = 0; j < kN; ++j) {
    values[kPairs ? 2 * j : j] = sums[i / 2][j][i % 2 * 2];
    values[kPairs ? 2 * j + 1 : j + kN] = sums[i / 2][j][i % 2 * 2 + 1];
  }
}

/// Writes accumulators as they are, by wide stores, to the split's partial sums.
template <DenseConfig C, int kM, int kN>
QN_DEVICE void write_partials(const DenseParams& p, const DensePlace& at, const f32 (&sums)[kM][kN][4]) {
  f32* const partials = static_cast<f32*>(p.partials) + i64(blockIdx.y) * p.m * p.partial_stride + at.column;
  QN_UNROLL
  for (int i = 0; i < 2 * kM; ++i) {
    f32 values[2 * kN];
    row_of_sums<C>(sums, i, values);
    const i64 row = at.first_row + DenseShape<C>::kRowStep * i;
    if (row < p.m) store_aligned<f32>(partials + row * p.partial_stride, values);
  }
}

/// Writes what becomes of accumulators by wide accesses.
template <DenseConfig C, int kM, int kN>
QN_DEVICE void write_wide(const DenseParams& p, const DensePlace& at, const f32 (&bias)[2 * kN], const f32 (&sums)[kM][kN][4]) {
  using Out = dtype_t<C.out_dtype>;
  Out* const out = static_cast<Out*>(p.out) + at.column;
  QN_UNROLL
  for (int i = 0; i < 2 * kM; ++i) {
    f32 values[2 * kN];
    row_of_sums<C>(sums, i, values);
    QN_UNROLL
    for (int j = 0; j < 2 * kN; ++j) values[j] = values[j] + bias[j];
    const i64 row = at.first_row + DenseShape<C>::kRowStep * i;
    if constexpr (C.has_c != 0)
      if (row < p.m) add_c<dtype_t<C.dtype>>(p.c, row, at.column, values);
    activate<C.activation>(values);
    if (row < p.m) store_aligned<Out>(out + row * p.out_stride, values);
  }
}

/// The same one by one: ragged ends and odd strides. Through the thread's own words of shared memory, so that a plain
/// loop can walk over the results: unrolled, this rare path would be half of the kernel's code and of its compile time.
template <DenseConfig C, int kM, int kN>
QN_DEVICE void write_single(const DenseParams& p, const DensePlace& at, u8* smem, const f32 (&bias)[2 * kN], const f32 (&sums)[kM][kN][4]) {
  using Out = dtype_t<C.out_dtype>;
  constexpr int kRowStep = DenseShape<C>::kRowStep;
  u8* const mine = smem + threadIdx.x * 4;
  QN_UNROLL
  for (int i = 0; i < 2 * kM; ++i) {
    f32 values[2 * kN];
    row_of_sums<C>(sums, i, values);
    QN_UNROLL
    for (int j = 0; j < 2 * kN; ++j) ptx::st_shared<f32>(mine + (i * 2 * kN + j) * C.threads * 4, values[j] + bias[j]);
  }
  Out* const out = static_cast<Out*>(p.out) + at.first_row * p.out_stride + at.column;
  const int rows = int(min_of<i64>(2 * kM, (p.m - at.first_row + kRowStep - 1) / kRowStep));
  QN_NO_UNROLL
  for (int i = 0; i < rows; ++i) QN_NO_UNROLL
  for (int j = 0; j < at.columns; ++j) {
    f32 value[1] = {ptx::ld_shared<f32>(mine + (i * 2 * kN + j) * C.threads * 4)};
    if constexpr (C.has_c != 0) add_c<dtype_t<C.dtype>>(p.c, at.first_row + kRowStep * i, at.column + j, value);
    activate<C.activation>(value);
    store_one<Out>(out + i * kRowStep * p.out_stride + j, value[0]);
  }
}

template <DenseConfig C, int kM, int kN>
QN_DEVICE void write_sums(const DenseParams& p, const DenseWork& work, u8* smem, const f32 (&sums)[kM][kN][4]) {
  using S = DenseShape<C>;
  using Out = dtype_t<C.out_dtype>;
  static_assert(C.threads * kM * kN * 16 <= dense_smem(C).bytes);
  const int warp = int(threadIdx.x) / 32, lane = int(ptx::lane_id());
  DensePlace at;
  at.first_row = work.row + warp / C.warps_n * S::kWarpM + first_row_of_lane<C>(lane / 4);
  at.column = work.column + warp % C.warps_n * S::kWarpN + fragment_column<kN>(0, 2 * (lane % 4));
  at.columns = int(min_of<i64>(2 * kN, p.n - at.column));
  ptx::sync_block();  // nobody reads the ring any more
  if (at.columns <= 0 || at.first_row >= p.m) return;
  if (p.partials != nullptr) return write_partials<C>(p, at, sums);
  f32 bias[2 * kN];
  load_bias<typename S::T>(p.bias, p.bias_dtype, at.column, at.columns, bias);
  bool wide = at.columns == 2 * kN && p.out_alignment >= kWidestBytes<Out, 2 * kN>;
  if constexpr (C.has_c != 0) wide = wide && is_wide<typename S::T, 2 * kN>(p.c);
  if (wide) write_wide<C>(p, at, bias, sums);
  else write_single<C>(p, at, smem, bias, sums);
}

/// A part of out by the whole block, whose shared memory nobody else uses.
template <DenseConfig C>
QN_DEVICE void make_part(const DenseParams& p, const DenseWork& work, u8* smem) {
  using S = DenseShape<C>;
  f32 sums[S::kTilesM][S::kTilesN][4], totals[S::kTilesM][S::kTilesN][4];
  QN_UNROLL
  for (int i = 0; i < S::kTilesM; ++i) {
    QN_UNROLL
    for (int j = 0; j < S::kTilesN; ++j) {
      QN_UNROLL
      for (int x = 0; x < 4; ++x) sums[i][j][x] = totals[i][j][x] = 0.f;
    }
  }
  sum_over_k<C>(p, work, smem, totals, sums);
  if constexpr (C.sum_parts_in_block != 0) write_sums<C>(p, work, smem, totals);
  else write_sums<C>(p, work, smem, sums);
}

}  // namespace quern::gemm
