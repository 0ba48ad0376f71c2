// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[i, j] = sum_x scales_a(i, x) scales_b(j, x) a[i, x] b[j, x] + bias[j] + c[i, j]
// One block per [tile_m][tile_n] part of out. Groups of 128 columns of a and b and their scales pass through a ring of stages
// in shared memory, filled by cp.async stages - 1 groups ahead, with one barrier a stage. Bytes become f16, which has every
// value of e4m3 and e5m2, and warps multiply by mma.sync m16n8k16. A group is summed from zero, in two steps of 64 columns, of
// which instruction h = 0..3 sums k = 16t + 4h .. 16t + 4h + 3, t = 0..3; then total = fma(sum, scale of a * scale of b, total).
#pragma once
#include "quern/bricks/gemm/mma/scaled_ring_spec.h"
#include "quern/bricks/gemm/store.cuh"
#include "quern/kit/copy_tile.cuh"
#include "quern/kit/kit.cuh"
#include "quern/kit/mma_tile.cuh"

namespace quern::gemm {

/// Sizes that follow from the Config.
template <ScaledConfig C>
struct ScaledShape {
  using TA = dtype_t<C.a_dtype>;
  using TB = dtype_t<C.b_dtype>;
  using Out = dtype_t<C.out_dtype>;
  static constexpr int kWarpM = C.tile_m / C.warps_m, kWarpN = C.tile_n / C.warps_n;  ///< a warp's part of out
  static constexpr int kTilesM = kWarpM / 16, kTilesN = kWarpN / 8;                   ///< in instructions
  using CopyA = TileCopy<TA, C.tile_m, kScaledGroup, C.vector, C.threads>;
  using CopyB = TileCopy<TB, C.tile_n, kScaledGroup, C.vector, C.threads>;
  static_assert(C.threads == 32 * C.warps_m * C.warps_n && kWarpM % 16 == 0 && kWarpN % 8 == 0);
};

/// First row and column of out that a block computes.
struct ScaledWork {
  i64 row, column;
};

/// A thread's part of copying a group's scales: of the tile's rows of a, then of its rows of b.
template <ScaledConfig C>
struct ScaleCopy {
  static constexpr int kRows = C.tile_m + C.tile_n, kEach = (kRows + C.threads - 1) / C.threads;
  const f32* from[kEach];  ///< of the first group; null where there is no such row
  i64 step[kEach];         ///< from group to group

  QN_DEVICE ScaleCopy start(const ScaledParams& p, const ScaledWork& work) {
    ScaleCopy s;
    QN_UNROLL
    for (int i = 0; i < kEach; ++i) {
      const int entry = int(threadIdx.x) + i * C.threads;
      const bool of_a = entry < C.tile_m;
      const i64 row = of_a ? work.row + entry : work.column + entry - C.tile_m;
      const bool exists = entry < kRows && row < (of_a ? p.m : p.n);
      // Member by member: a reference to one of the two keeps parameters in local memory where they are a thread's own
      const void* const data = of_a ? p.scales_a.data : p.scales_b.data;
      const i64 row_stride = of_a ? p.scales_a.row_stride : p.scales_b.row_stride;
      const i32 row_shift = of_a ? p.scales_a.row_shift : p.scales_b.row_shift;
      s.from[i] = exists ? static_cast<const f32*>(data) + (row >> row_shift) * row_stride : nullptr;
      s.step[i] = of_a ? p.scales_a.column_stride : p.scales_b.column_stride;
    }
    return s;
  }
  QN_DEVICE void issue(const ScaleCopy& self, u8* scales, int group) {
    QN_UNROLL
    for (int i = 0; i < kEach; ++i)
      if (self.from[i] != nullptr) ptx::cp_async<4>(ptx::smem_address(place(scales, i)), self.from[i] + group * self.step[i]);
  }
  /// Rows that `issue` leaves out: their results are never stored, but must not be of uninitialised memory.
  QN_DEVICE void zero_rows(const ScaleCopy& self, u8* scales) {
    QN_UNROLL
    for (int i = 0; i < kEach; ++i)
      if (self.from[i] == nullptr && int(threadIdx.x) + i * C.threads < kRows) ptx::st_shared<f32>(place(scales, i), 0.f);
  }

 private:
  QN_DEVICE u8* place(u8* scales, int i) { return scales + 4 * (int(threadIdx.x) + i * C.threads); }
};

/// Where a lane finds its fragments and scales in a stage, and its results in the tile.
template <ScaledConfig C>
struct ScaledFragments {
  using S = ScaledShape<C>;
  using RowA = RowK32<typename S::CopyA::Tile>;
  using RowB = RowK32<typename S::CopyB::Tile>;
  RowA a;
  RowB b[S::kTilesN];
  int row;     ///< of the results: row + 8 i
  int column;  ///< 2 kTilesN of them from here

  QN_DEVICE ScaledFragments of_thread() {
    const int warp = int(threadIdx.x) / 32, lane = int(ptx::lane_id());
    const int first_column = warp % C.warps_n * S::kWarpN;
    ScaledFragments f;
    f.row = warp / C.warps_n * S::kWarpM + lane / 4;
    f.column = first_column + fragment_column<S::kTilesN>(0, 2 * (lane % 4));
    f.a = RowA::of(f.row);
    QN_UNROLL
    for (int j = 0; j < S::kTilesN; ++j) f.b[j] = RowB::of(first_column + fragment_column<S::kTilesN>(j, lane / 4));
    return f;
  }
};

QN_DEVICE u32 f16_pair(u32 bytes, e4m3) { return ptx::f16x2_of_e4m3x2(u16(bytes)); }
QN_DEVICE u32 f16_pair(u32 bytes, e5m2) { return ptx::f16x2_of_e5m2x2(u16(bytes)); }
/// Eight bytes of T as f16: words 0, 1 (half 0) or 2, 3 (half 1).
template <class T>
QN_DEVICE u32x4 widened(const u32x4& bytes, int half) {
  const u32 first = half == 0 ? bytes.x : bytes.z, second = half == 0 ? bytes.y : bytes.w;
  return {f16_pair(first, T{}), f16_pair(first >> 16, T{}), f16_pair(second, T{}), f16_pair(second >> 16, T{})};
}

/// Multiplies one stage into the accumulators.
template <ScaledConfig C, int kM, int kN>
QN_DEVICE void multiply_group(const u8* stage, const ScaledFragments<C>& at, f32 (&sums)[kM][kN][4]) {
  using F = ScaledFragments<C>;
  using S = ScaledShape<C>;
  constexpr auto L = scaled_smem(C);
  QN_UNROLL
  for (int step = 0; step < kScaledGroup / 64; ++step) {
    u32x4 a[2][2 * kM];  // of each half, widened
    QN_UNROLL
    for (int i = 0; i < 2 * kM; ++i) {
      const u32x4 bytes = F::RowA::load(at.a, stage + L.a, step, 8 * i);
      QN_UNROLL
      for (int half = 0; half < 2; ++half) a[half][i] = widened<typename S::TA>(bytes, half);
    }
    QN_UNROLL
    for (int j = 0; j < kN; ++j) {
      const u32x4 bytes = F::RowB::load(at.b[j], stage + L.b, step);
      QN_UNROLL
      for (int half = 0; half < 2; ++half) {
        const u32x4 b = widened<typename S::TB>(bytes, half);
        QN_UNROLL
        for (int i = 0; i < kM; ++i) mma_k32<f16>(sums[i][j], a[half][2 * i], a[half][2 * i + 1], b);
      }
    }
  }
}

/// totals += scaled sums, and sums become zero.
template <ScaledConfig C, int kM, int kN>
QN_DEVICE void add_group(const u8* scales, const ScaledFragments<C>& at, f32 (&sums)[kM][kN][4], f32 (&totals)[kM][kN][4]) {
  f32 of_b[2 * kN];
  QN_UNROLL
  for (int j = 0; j < 2 * kN; j += 4) {
    u32x4 four = ptx::ld_shared<u32x4>(scales + 4 * (C.tile_m + at.column + j));
    QN_UNROLL
    for (int x = 0; x < 4; ++x) of_b[j + x] = ptx::f32_of_bits(word(four, x));
  }
  QN_UNROLL
  for (int i = 0; i < 2 * kM; ++i) {
    const f32 of_a = ptx::ld_shared<f32>(scales + 4 * (at.row + 8 * i));
    QN_UNROLL
    for (int j = 0; j < 2 * kN; ++j) {
      f32& sum = sums[i / 2][j / 2][i % 2 * 2 + j % 2];
      f32& total = totals[i / 2][j / 2][i % 2 * 2 + j % 2];
      total = ptx::fma(sum, of_a * of_b[j], total);
      sum = 0.f;
    }
  }
}

/// Sums all of K into `totals`; both start as zeros.
template <ScaledConfig C, int kM, int kN>
QN_DEVICE void sum_groups(const ScaledParams& p, const ScaledWork& work, u8* smem, f32 (&sums)[kM][kN][4], f32 (&totals)[kM][kN][4]) {
  using S = ScaledShape<C>;
  constexpr auto L = scaled_smem(C);
  const auto at = ScaledFragments<C>::of_thread();
  const auto a = S::CopyA::start(static_cast<const typename S::TA*>(p.a) + work.row * p.a_stride, p.a_stride, p.m - work.row);
  const auto b = S::CopyB::start(static_cast<const typename S::TB*>(p.b) + work.column * p.b_stride, p.b_stride, p.n - work.column);
  const auto scales = ScaleCopy<C>::start(p, work);
  const int groups = scaled_steps(p.k);
  QN_NO_UNROLL
  for (int slot = 0; slot < min_of(groups, C.stages); ++slot) {
    u8* const stage = smem + slot * L.stage;
    S::CopyA::zero_rows(a, stage + L.a);
    S::CopyB::zero_rows(b, stage + L.b);
    ScaleCopy<C>::zero_rows(scales, stage + L.scales);
  }
  // Copies run kAhead groups before the multiplications; one loop does both, so that the code of a copy stands once
  constexpr int kAhead = C.stages - 1;
  int slot = 0, next_slot = 0;
  QN_NO_UNROLL
  for (int next = 0; next < groups + kAhead; ++next) {
    if (next >= kAhead) {
      // The group next - kAhead has landed for all, and nobody reads the one before any more
      ptx::cp_async_wait<kAhead - 1>();
      ptx::sync_block();
    }
    if (next < groups) {
      u8* const stage = smem + next_slot * L.stage;
      const i64 k = i64(next) * kScaledGroup;
      const int columns = int(min_of<i64>(kScaledGroup, p.k - k));
      S::CopyA::issue(a, stage + L.a, k, columns);
      S::CopyB::issue(b, stage + L.b, k, columns);
      ScaleCopy<C>::issue(scales, stage + L.scales, next);
      next_slot = next_slot + 1 == C.stages ? 0 : next_slot + 1;
    }
    ptx::cp_async_commit();  // also an empty group of copies, so that their count is that of steps
    if (next >= kAhead) {
      const u8* const stage = smem + slot * L.stage;
      multiply_group<C>(stage, at, sums);
      add_group<C>(stage + L.scales, at, sums, totals);
      slot = slot + 1 == C.stages ? 0 : slot + 1;
    }
  }
}

/// N neighbouring values from `from`, of bf16 or f32, one by one; zeros past the first `count` of them and where there are none.
/// c may be out: no read-only loads.
template <int N>
QN_DEVICE void load_addend(const void* data, DType dtype, i64 first, int count, f32 (&values)[N]) {
  QN_UNROLL
  for (int i = 0; i < N; ++i) {
    f32 value[1] = {0.f};
    if (data != nullptr && i < count) {
      if (dtype == DType::f32) load_f32<f32, 1>(static_cast<const f32*>(data) + first + i, value);
      else load_f32<bf16, 1>(static_cast<const bf16*>(data) + first + i, value);
    }
    values[i] = value[0];
  }
}

/// sums += N neighbouring elements of E, in memory aligned for the widest access.
template <class E, int N>
QN_DEVICE void add_wide(const void* data, i64 first, f32 (&sums)[N]) {
  constexpr int kWide = kWidest<E, N>;
  QN_UNROLL
  for (int i = 0; i < N; i += kWide) {
    f32 part[kWide];
    load_f32<E, kWide>(static_cast<const E*>(data) + first + i, part);
    QN_UNROLL
    for (int j = 0; j < kWide; ++j) sums[i + j] = sums[i + j] + part[j];
  }
}

/// Whether rows of c, if it is there, take the widest access to N neighbouring elements.
template <int N>
QN_DEVICE bool c_is_wide(const DenseAddend& c) {
  return c.data == nullptr || c.alignment >= (c.dtype == DType::f32 ? kWidestBytes<f32, N> : kWidestBytes<bf16, N>);
}

/// A thread's place in out: the rows first_row + 8 i, of each the 2 kN columns from `column`, `columns` of which exist.
struct ScaledPlace {
  i64 first_row, column;
  int columns;
};

/// The results of row i of a thread's rows, with the bias.
template <int kM, int kN>
QN_DEVICE void biased_row(const f32 (&totals)[kM][kN][4], const f32 (&bias)[2 * kN], int i, f32 (&values)[2 * kN]) {
  QN_UNROLL
  for (int j = 0; j < 2 * kN; ++j) values[j] = totals[i / 2][j / 2][i % 2 * 2 + j % 2] + bias[j];
}

/// Writes results by wide stores.
template <class Out, int kM, int kN>
QN_DEVICE void write_totals_wide(const ScaledParams& p, const ScaledPlace& at, const f32 (&bias)[2 * kN], const f32 (&totals)[kM][kN][4]) {
  QN_UNROLL
  for (int i = 0; i < 2 * kM; ++i) {
    f32 values[2 * kN];
    biased_row(totals, bias, i, values);
    const i64 row = at.first_row + 8 * i;
    if (row >= p.m) continue;
    if (p.c.data != nullptr) {
      const i64 first = row * p.c.stride + at.column;
      if (p.c.dtype == DType::f32) add_wide<f32>(p.c.data, first, values);
      else add_wide<bf16>(p.c.data, first, values);
    }
    store_aligned<Out>(static_cast<Out*>(p.out) + row * p.out_stride + at.column, values);
  }
}

/// The same one by one: ragged ends and odd strides. Through the thread's own words of shared memory, so that a plain loop can
/// walk over the results.
template <class Out, int kThreads, int kM, int kN>
QN_DEVICE void write_totals_single(const ScaledParams& p, const ScaledPlace& at, u8* smem, const f32 (&bias)[2 * kN],
                                   const f32 (&totals)[kM][kN][4]) {
  u8* const mine = smem + threadIdx.x * 4;
  QN_UNROLL
  for (int i = 0; i < 2 * kM; ++i) {
    f32 values[2 * kN];
    biased_row(totals, bias, i, values);
    QN_UNROLL
    for (int j = 0; j < 2 * kN; ++j) ptx::st_shared<f32>(mine + (i * 2 * kN + j) * kThreads * 4, values[j]);
  }
  const int rows = int(min_of<i64>(2 * kM, (p.m - at.first_row + 7) / 8));
  QN_NO_UNROLL
  for (int i = 0; i < rows; ++i) QN_NO_UNROLL
  for (int j = 0; j < at.columns; ++j) {
    const i64 row = at.first_row + 8 * i;
    f32 old[1];
    load_addend(p.c.data, p.c.dtype, row * p.c.stride + at.column + j, 1, old);
    store_one<Out>(static_cast<Out*>(p.out) + row * p.out_stride + at.column + j,
                   ptx::ld_shared<f32>(mine + (i * 2 * kN + j) * kThreads * 4) + old[0]);
  }
}

template <ScaledConfig C, int kM, int kN>
QN_DEVICE void write_totals(const ScaledParams& p, const ScaledWork& work, u8* smem, const f32 (&totals)[kM][kN][4]) {
  using Out = typename ScaledShape<C>::Out;
  static_assert(C.threads * kM * kN * 16 <= scaled_smem(C).bytes);
  const auto tile = ScaledFragments<C>::of_thread();
  ScaledPlace at;
  at.first_row = work.row + tile.row;
  at.column = work.column + tile.column;
  at.columns = int(min_of<i64>(2 * kN, p.n - at.column));
  ptx::sync_block();  // nobody reads the ring any more
  if (at.columns <= 0 || at.first_row >= p.m) return;
  f32 bias[2 * kN];
  load_addend(p.bias, p.bias_dtype, at.column, at.columns, bias);
  if (at.columns == 2 * kN && p.out_alignment >= kWidestBytes<Out, 2 * kN> && c_is_wide<2 * kN>(p.c))
    write_totals_wide<Out>(p, at, bias, totals);
  else write_totals_single<Out, C.threads>(p, at, smem, bias, totals);
}

/// A part of out by the whole block, whose shared memory nobody else uses.
template <ScaledConfig C>
QN_DEVICE void make_scaled_part(const ScaledParams& p, const ScaledWork& work, u8* smem) {
  using S = ScaledShape<C>;
  f32 sums[S::kTilesM][S::kTilesN][4], totals[S::kTilesM][S::kTilesN][4];
  QN_UNROLL
  for (int i = 0; i < S::kTilesM; ++i) {
    QN_UNROLL
    for (int j = 0; j < S::kTilesN; ++j) {
      QN_UNROLL
      for (int x = 0; x < 4; ++x) sums[i][j][x] = totals[i][j][x] = 0.f;
    }
  }
  sum_groups<C>(p, work, smem, sums, totals);
  ptx::grid_launch_dependents();
  write_totals<C>(p, work, smem, totals);
}

}  // namespace quern::gemm
