// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[i, j] = activation(sum_x a[i, x] b[j, x] + bias[j] + c[i, j]), for sm_90a
// A block stays on its SM and takes every gridDim.x-th tile [tile_m][tile_n] of out. One warp of its first warpgroup loads:
// TMA fills a ring of stages with 64 columns of a and b, as far ahead as the ring is long, over the end of a tile too. Two
// warpgroups multiply by wgmma, whose operands both come from the stage: half of a tile's rows each, or whole tiles in turn, so
// that one stores its results while the other multiplies. An element is the sum over k in ascending order, 16 columns an
// instruction, whatever the tile.
#pragma once
#include "quern/kit/kit.cuh"
#include "quern/kit/wgmma_ring.cuh"
#include "quern/ops/gemm/dense_sm90_spec.h"
#include "quern/ops/gemm/dense_store.cuh"

namespace quern::gemm {

/// A tile's place in out.
struct DenseTile {
  i32 row, column;
};

/// Tiles in the order in which blocks take them: groups of 8 along m, then along n, so that blocks that run together share
/// rows of a and b in the L2.
template <DenseSm90Config C>
struct DenseTiles {
  static constexpr u32 kGroup = 8;
  u32 tiles_m, tiles_n;

  QN_DEVICE DenseTiles of(const DenseSm90Params& p) {
    return {u32(p.m + C.tile_m - 1) / C.tile_m, u32(p.n + C.tile_n - 1) / C.tile_n};
  }
  QN_DEVICE u32 count(const DenseTiles& t) { return t.tiles_m * t.tiles_n; }
  QN_DEVICE DenseTile at(const DenseTiles& t, u32 index) {
    const u32 group = index / (kGroup * t.tiles_n), inside = index - group * kGroup * t.tiles_n;
    const u32 rows = min_of(kGroup, t.tiles_m - group * kGroup), column = inside / rows;
    return {i32((group * kGroup + inside - column * rows) * C.tile_m), i32(column * C.tile_n)};
  }
};

/// By one thread.
template <DenseSm90Config C>
QN_DEVICE void load_tiles(const DenseSm90Params& p, u32 smem) {
  constexpr auto L = dense_sm90_smem(C);
  const auto tiles = DenseTiles<C>::of(p);
  const int steps = (p.k + kDenseSm90TileK - 1) / kDenseSm90TileK;
  Producer<C.stages> fill{smem + L.barriers};
  for (u32 index = blockIdx.x; index < DenseTiles<C>::count(tiles); index += gridDim.x) {
    const DenseTile tile = DenseTiles<C>::at(tiles, index);
    QN_NO_UNROLL
    for (int step = 0; step < steps; ++step) {
      const u32 full = begin_fill(fill, L.stage), stage = smem + fill.stage * L.stage;
      ptx::tma_load(stage + L.a, &p.a, full, CachePolicy::evict_normal, step * kDenseSm90TileK, tile.row);
      ptx::tma_load(stage + L.b, &p.b, full, CachePolicy::evict_normal, step * kDenseSm90TileK, tile.column);
      end_fill(fill);
    }
  }
}

/// The rows of the warpgroup, 64 an instruction, times the tile of b.
template <DenseSm90Config C, int kM, int kRegisters>
QN_DEVICE void multiply_stage(u32 stage, u32 first_row, f32 (&sums)[kM][kRegisters]) {
  constexpr auto L = dense_sm90_smem(C);
  const auto a = k_major_descriptor(stage + L.a + first_row * 128, Swizzle::b128);
  const auto b = k_major_descriptor(stage + L.b, Swizzle::b128);
  QN_UNROLL
  for (int k = 0; k < kDenseSm90TileK / 16; ++k) {
    QN_UNROLL
    for (int m = 0; m < kM; ++m) ptx::wgmma<dtype_t<C.dtype>>(sums[m], a.advanced(m * 64 * 128 + 32 * k), b.advanced(32 * k), true);
  }
}

/// In each quad of lanes, words[i] of lane q becomes words[q] of lane i.
QN_DEVICE void transpose_quad(u32 (&words)[4]) {
  const u32 lane = ptx::lane_id();
  QN_UNROLL
  for (int bit = 1; bit <= 2; bit *= 2) {
    const bool upper = (lane & u32(bit)) != 0;
    QN_UNROLL
    for (int i = 0; i < 4; ++i) {
      if (i & bit) continue;
      const u32 given = upper ? words[i] : words[i + bit];
      const u32 taken = ptx::shfl_xor(given, bit);
      if (upper) words[i] = taken;
      else words[i + bit] = taken;
    }
  }
}

/// The first of the two columns that a thread has of each 8 of the tile.
QN_DEVICE i32 pair_column(i32 column, int pair) { return column + 8 * pair + 2 * i32(ptx::lane_id() % 4); }

/// One row's results of a thread, which has columns 8 i + 2 q and the next of the tile: rounded, and stored in whole 16 bytes.
template <DenseSm90Config C, int kPairs>
QN_DEVICE void write_row(const DenseSm90Params& p, i32 row, i32 column, const f32 (&values)[2 * kPairs]) {
  using Out = dtype_t<C.out_dtype>;
  const i32 quad = i32(ptx::lane_id() % 4);
  Out* const out = static_cast<Out*>(p.out) + i64(row) * p.out_stride;
  const bool here = row < p.m;
  if constexpr (sizeof(Out) == 2) {
    QN_UNROLL
    for (int g = 0; g < kPairs; g += 4) {
      u32 words[4] = {};
      QN_UNROLL
      for (int i = 0; i < 4 && g + i < kPairs; ++i) words[i] = pack_word(values[2 * (g + i)], values[2 * (g + i) + 1], Out{});
      transpose_quad(words);
      const i32 at = column + 8 * (g + quad);
      if (here && at < p.n && g + quad < kPairs) ptx::st_global(out + at, u32x4{words[0], words[1], words[2], words[3]});
    }
  } else {
    QN_UNROLL
    for (int i = 0; i < kPairs; ++i) {
      const i32 at = pair_column(column, i);
      const f32 pair[2] = {values[2 * i], values[2 * i + 1]};
      if (here && at < p.n) store_f32<Out, 2>(out + at, pair);
    }
  }
}

template <class E, int kRegisters>
QN_DEVICE void add_bias(const E* from, i32 columns, i32 column, f32 (&sums)[kRegisters]) {
  QN_UNROLL
  for (int i = 0; i < kRegisters / 4; ++i) {
    const i32 at = pair_column(column, i);
    if (at >= columns) continue;
    f32 bias[2];
    load_single(from + at, 2, bias);
    QN_UNROLL
    for (int j = 0; j < 2; ++j) {
      sums[4 * i + j] = sums[4 * i + j] + bias[j];
      sums[4 * i + 2 + j] = sums[4 * i + 2 + j] + bias[j];
    }
  }
}

/// values += a thread's part of a row of c, of which the first `columns` exist.
template <class E, int kPairs>
QN_DEVICE void add_pairs(const E* row, i32 columns, i32 column, f32 (&values)[2 * kPairs]) {
  QN_UNROLL
  for (int i = 0; i < kPairs; ++i) {
    const i32 at = pair_column(column, i);
    f32 pair[2] = {values[2 * i], values[2 * i + 1]};
    if (at < columns) add_aligned(row + at, pair);
    values[2 * i] = pair[0], values[2 * i + 1] = pair[1];
  }
}

template <DenseSm90Config C, int kPairs>
QN_DEVICE void add_row_of_c(const DenseSm90Params& p, i32 row, i32 column, f32 (&values)[2 * kPairs]) {
  using T = dtype_t<C.dtype>;
  const i32 columns = row < p.m ? p.n : 0;
  const i64 at = i64(row) * p.c.stride;
  if (p.c.dtype == DType::f32) add_pairs<f32, kPairs>(static_cast<const f32*>(p.c.data) + at, columns, column, values);
  else add_pairs<T, kPairs>(static_cast<const T*>(p.c.data) + at, columns, column, values);
  ptx::sync_warp();  // c may be out, where lanes of a quad store each other's columns
}

/// 64 rows of out from `first_row`.
template <DenseSm90Config C, int kRegisters>
QN_DEVICE void write_rows(const DenseSm90Params& p, i32 first_row, i32 column, f32 (&sums)[kRegisters]) {
  constexpr int kPairs = C.tile_n / 8;
  if (p.bias != nullptr) {
    if (p.bias_dtype == DType::f32) add_bias(static_cast<const f32*>(p.bias), p.n, column, sums);
    else add_bias(static_cast<const dtype_t<C.dtype>*>(p.bias), p.n, column, sums);
  }
  const i32 row = first_row + i32(16 * warp_of_warpgroup() + ptx::lane_id() / 4);
  QN_UNROLL
  for (int half = 0; half < 2; ++half) {
    f32 values[2 * kPairs];
    QN_UNROLL
    for (int i = 0; i < kPairs; ++i) values[2 * i] = sums[4 * i + 2 * half], values[2 * i + 1] = sums[4 * i + 2 * half + 1];
    if constexpr (C.has_c != 0) add_row_of_c<C, kPairs>(p, row + 8 * half, column, values);
    activate<C.activation>(values);
    write_row<C, kPairs>(p, row + 8 * half, column, values);
  }
}

/// sums = the sum of the parts of K, in ascending order.
template <DenseSm90Config C, int kM, int kRegisters, class Multiply, class Free>
QN_DEVICE void sum_parts(const DenseSm90Params& p, Consumer<C.stages>& read, u32 steps, f32 (&sums)[kM][kRegisters], const Multiply& multiply,
                         const Free& free) {
  f32 total[kM][kRegisters];
  zero(total);
  QN_NO_UNROLL
  for (u32 part = 0; part < u32(p.parts); ++part) {
    const int count = int(dense_sm90_part_begin(steps, part + 1, u32(p.parts)) - dense_sm90_part_begin(steps, part, u32(p.parts)));
    zero(sums);
    const u32 last = multiply_stages(read, count, sums, multiply, free);
    finish_stages(count, last, sums, free);
    QN_UNROLL
    for (int m = 0; m < kM; ++m) {
      QN_UNROLL
      for (int i = 0; i < kRegisters; ++i) total[m][i] = total[m][i] + sums[m][i];
    }
  }
  QN_UNROLL
  for (int m = 0; m < kM; ++m) {
    QN_UNROLL
    for (int i = 0; i < kRegisters; ++i) sums[m][i] = total[m][i];
  }
}

template <DenseSm90Config C>
QN_DEVICE void multiply_tiles(const DenseSm90Params& p, u32 smem, u32 warpgroup) {
  constexpr u32 kTurns = C.alternate ? 2 : 1;
  constexpr int kM = C.tile_m / 64 * kTurns / 2, kStage = dense_sm90_smem(C).stage;
  const u32 turn = C.alternate ? warpgroup : 0, first_row = C.alternate ? 0 : warpgroup * 64;
  const auto tiles = DenseTiles<C>::of(p);
  const u32 count = DenseTiles<C>::count(tiles), steps = u32(p.k + kDenseSm90TileK - 1) / kDenseSm90TileK;
  Consumer<C.stages> read{smem + dense_sm90_smem(C).barriers};
  const auto free = [&](u32 stage) { release(read, stage); };
  if constexpr (C.alternate) skip_reads(read, turn * steps);
  for (u32 index = blockIdx.x + turn * gridDim.x; index < count; index += kTurns * gridDim.x) {
    f32 sums[kM][C.tile_n / 2];
    // Without its turn a warpgroup would wait for a stage that is still to be filled for the other: parities tell only two
    // fillings apart, so that wait would not hold it back.
    if (C.alternate && index != blockIdx.x) ptx::bar_sync(kDenseSm90TurnBarrier + int(turn), 2 * kWarpgroupSize);
    const auto multiply = [&](u32 stage) { multiply_stage<C>(smem + stage * kStage, first_row, sums); };
    if constexpr (C.fold == 0) {
      zero(sums);
      const u32 last = multiply_stages(read, int(steps), sums, multiply, free);
      if (C.alternate && index + gridDim.x < count) ptx::bar_arrive(kDenseSm90TurnBarrier + 1 - int(turn), 2 * kWarpgroupSize);
      finish_stages(int(steps), last, sums, free);
    } else {
      sum_parts<C>(p, read, steps, sums, multiply, free);
    }
    if constexpr (C.alternate) skip_reads(read, steps);
    if (index + kTurns * gridDim.x >= count) ptx::grid_launch_dependents();
    const DenseTile tile = DenseTiles<C>::at(tiles, index);
    QN_UNROLL
    for (int m = 0; m < kM; ++m) write_rows<C>(p, tile.row + i32(first_row) + 64 * m, tile.column, sums[m]);
  }
}

template <DenseSm90Config C>
QN_DEVICE void dense_warp_specialised_sm90(const DenseSm90Params& p) {
  static_assert(C.threads == 3 * kWarpgroupSize && C.tile_m == 128 && C.tile_n % 16 == 0 && !(C.alternate && C.fold));
  QN_SMEM(memory);
  const u32 smem = ptx::smem_address(memory);
  if (threadIdx.x == 0) {
    ptx::prefetch_tensormap(&p.a);
    ptx::prefetch_tensormap(&p.b);
    pipeline_init<C.stages>(smem + dense_sm90_smem(C).barriers, C.alternate ? 4 : 8);  // warps that multiply a stage
  }
  ptx::sync_block();
  ptx::grid_dependency_wait();
  const u32 warpgroup = ptx::shfl(warpgroup_id(), 0);
  if (warpgroup == 0) {
    ptx::decrease_registers<40>();
    if (threadIdx.x == 0) load_tiles<C>(p, smem);
  } else {
    ptx::increase_registers<232>();
    multiply_tiles<C>(p, smem, warpgroup - 1);
  }
}

}  // namespace quern::gemm
