// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What the kernels for few rows of a share on sm_90a. wgmma takes rows of b, 64 a warpgroup, where its operand has at least 64, and
// rows of a where it may have 8: out is made transposed. A block makes a tile [tile_m][tile_n] of out over a part of K, streamed
// through a ring of stages, of 128 or 256 bytes of each row, by TMA. The blocks of a cluster split K, and add their sums through each
// other's shared memory, in the order of the parts.
#pragma once
#include "quern/bricks/gemm/sm90/operand.cuh"
#include "quern/bricks/gemm/sm90/spec.h"
#include "quern/bricks/gemm/store.cuh"
#include "quern/kit/kit.cuh"
#include "quern/kit/wgmma_ring.cuh"

namespace quern::gemm {

/// A block's part of the work.
struct DenseSwapPart {
  i32 row, column;        // of the tile in out
  i32 earlier;            // rows before the tile's first one, which the tile before stores
  i32 first_step, steps;  // of K
  u32 split, splits;
  i32 rows;  // that the tile has at most
};

template <SwapAbBlock C, i32 kColumns>
QN_DEVICE DenseSwapPart part_of_block(const DenseSm90Params& p) {
  const u32 splits = ptx::cluster_blocks(), split = ptx::cluster_rank(), tile = blockIdx.x / splits;
  const u32 tiles_m = p.m <= p.rows ? 1 : u32(p.m + p.rows - 1) / u32(p.rows);
  const u32 first = dense_sm90_part_begin(p.k, kColumns, split, splits), last = dense_sm90_part_begin(p.k, kColumns, split + 1, splits);
  // Tiles of the same rows of b follow each other, so that these are read from memory once
  const i32 row = i32(tile % tiles_m) * p.rows, earlier = rows_earlier(row, p.m, p.rows);
  return {row - earlier, i32(tile / tiles_m * C.tiles.tile_n), earlier, i32(first), i32(last - first), split, splits, p.rows};
}

template <SwapAbBlock C, i32 kColumns>
QN_DEVICE void load_b(const DenseSm90Params& p, const DenseSwapPart& part, u32 stage, u32 full, int step) {
  const u32 to = stage + dense_swap_smem(C.tiles).b;
  const i32 step_of_k = part.first_step + step;
  if constexpr (C.tiles.chunks > 1) load_in_turn(to, &p.b, full, CachePolicy::evict_first, step_of_k * C.tiles.chunks, part.column);
  else load_operand<C.tiles.b_major, C.tiles.tile_n>(to, &p.b, full, CachePolicy::evict_first, step_of_k * kColumns, part.column);
}
/// Bytes of a stage that come.
template <SwapAbBlock C>
QN_DEVICE u32 bytes_of_stage(const DenseSm90Params& p) {
  return u32(dense_swap_smem(C.tiles).stage -
             (C.tiles.tile_m - rows_of_box<C.tiles.a_major, C.tiles.tile_m>(p.rows)) * 128 * C.tiles.chunks);
}
template <SwapAbBlock C, i32 kColumns>
QN_DEVICE void load_a(const DenseSm90Params& p, const DenseSwapPart& part, u32 stage, u32 full, int step) {
  QN_UNROLL
  for (i32 chunk = 0; chunk < C.tiles.chunks; ++chunk)
    load_operand<C.tiles.a_major, C.tiles.tile_m>(stage + dense_swap_smem(C.tiles).a + u32(chunk) * C.tiles.tile_m * 128, &p.a, full,
                                                  CachePolicy::evict_last,
                                                  (part.first_step + step) * kColumns + chunk * (kColumns / C.tiles.chunks), part.row);
}

/// By one thread: while the kernel before ends, the ring fills with b, which are weights that it does not write. Where there is
/// none before, a comes with b: behind a ring of b it would leave the memory idle for a microsecond.
template <SwapAbBlock C, i32 kColumns>
QN_DEVICE void load_part(const DenseSm90Params& p, const DenseSwapPart& part, u32 smem) {
  constexpr auto L = dense_swap_smem(C.tiles);
  const int ahead = p.pdl ? min_of(part.steps, C.tiles.stages) : 0;
  const u32 bytes = bytes_of_stage<C>(p);
  Producer<C.tiles.stages> fill{smem + L.barriers};
  QN_NO_UNROLL
  for (int step = 0; step < ahead; ++step) {
    const u32 full = begin_fill(fill, bytes);
    load_b<C, kColumns>(p, part, smem + fill.stage * L.stage, full, step);
    end_fill(fill);
  }
  ptx::grid_dependency_wait();
  QN_NO_UNROLL
  for (int step = 0; step < ahead; ++step)
    load_a<C, kColumns>(p, part, smem + u32(step) * L.stage, full_barrier<C.tiles.stages>(fill.barriers, u32(step)), step);
  QN_NO_UNROLL
  for (int step = ahead; step < part.steps; ++step) {
    const u32 full = begin_fill(fill, bytes), stage = smem + fill.stage * L.stage;
    load_b<C, kColumns>(p, part, stage, full, step);
    load_a<C, kColumns>(p, part, stage, full, step);
    end_fill(fill);
  }
}

/// The sums as [tile_m][tile_n], over the ring that nobody reads any more. Rows are 4 words longer than the tile, which puts
/// the 32 lanes of a store into different banks.
template <SwapAbBlock C>
QN_DEVICE void write_sums(u8* memory, u32 warpgroup, const f32 (&sums)[C.tiles.tile_m / 2]) {
  constexpr int kPitch = dense_swap_smem(C.tiles).pitch;
  const int lane = int(ptx::lane_id()), column = int(64 * warpgroup + 16 * warp_of_warpgroup()) + lane / 4, row = 2 * (lane % 4);
  QN_UNROLL
  for (int i = 0; i < C.tiles.tile_m / 2; ++i)
    ptx::st_shared<f32>(memory + 4 * ((row + i / 4 * 8 + i % 2) * kPitch + column + i % 4 / 2 * 8), sums[i]);
}

/// N neighbouring sums of the block itself.
template <int N>
QN_DEVICE void load_sums(const u8* memory, f32 (&sum)[N]) {
  QN_UNROLL
  for (int i = 0; i < N; i += 4) {
    f32 four[4];
    unpack<f32, 4>({ptx::ld_shared<u32x4>(memory + 4 * i)}, four);
    QN_UNROLL
    for (int j = 0; j < 4; ++j) sum[i + j] = four[j];
  }
}

/// The same of all blocks that split K, added in ascending order of its parts.
template <int N>
QN_DEVICE void add_splits(const DenseSwapPart& part, const u8* memory, u32 address, f32 (&sum)[N]) {
  f32 sums[kDenseSwapMaxSplits][N];
  // All loads go before the first addition: one from another block takes about 200 ns
  QN_UNROLL
  for (u32 i = 0; i < kDenseSwapMaxSplits; ++i) {
    if (i >= part.splits) continue;
    if (i == part.split) {
      load_sums(memory, sums[i]);
      continue;
    }
    const u32 there = ptx::cluster_address(address, i);
    QN_UNROLL
    for (int j = 0; j < N; j += 4) {
      f32 four[4];
      unpack<f32, 4>({ptx::ld_shared_cluster<u32x4>(there + u32(4 * j))}, four);
      QN_UNROLL
      for (int x = 0; x < 4; ++x) sums[i][j + x] = four[x];
    }
  }
  QN_UNROLL
  for (int j = 0; j < N; ++j) sum[j] = sums[0][j];
  QN_UNROLL
  for (u32 i = 1; i < kDenseSwapMaxSplits; ++i) {
    if (i >= part.splits) continue;
    QN_UNROLL
    for (int j = 0; j < N; ++j) sum[j] = sum[j] + sums[i][j];
  }
}

/// N neighbouring results of row `row` from `column` on: the bias, which was loaded ahead of the sums, c and the activation, then stored by
/// the widest accesses. P as below.
template <Ending C, class P, int N>
QN_DEVICE void finish_and_store(const P& p, i32 row, i32 column, const f32 (&bias)[N], f32 (&sums)[N]) {
  using Out = dtype_t<C.out_dtype>;
  QN_UNROLL
  for (int i = 0; p.bias != nullptr && i < N; ++i)
    sums[i] = sums[i] + bias[i];  // of no bias the zeros would make -0 a 0, which it stays elsewhere
  if constexpr (C.has_c != 0) add_c<dtype_t<C.dtype>>(p.c, row, column, sums);
  activate<C.activation>(sums);
  store_aligned<Out>(static_cast<Out*>(p.out) + i64(row) * p.out_stride + column, sums);
}

/// Each block adds up and stores an even share of the tile, 16 bytes of bf16 a thread at a time. Of P, the parameters of a kernel or of one
/// group of rows, it reads out, out_stride, m, n and, where there are some, the bias and c.
template <SwapAbBlock C, i32 kThreads, class P>
QN_DEVICE void add_and_store(const P& p, const DenseSwapPart& part, u8* memory, u32 smem) {
  constexpr int kVector = 8, kVectors = C.tiles.tile_n / kVector, kPitch = dense_swap_smem(C.tiles).pitch;
  const int vectors = min_of(part.rows, p.m - part.row) * kVectors;
  QN_NO_UNROLL
  for (int v = part.earlier * kVectors + int(part.split) * kThreads + int(threadIdx.x); v < vectors; v += int(part.splits) * kThreads) {
    const int row = v / kVectors, column = v % kVectors * kVector, word = row * kPitch + column;
    if (part.column + column >= p.n) continue;
    f32 sum[kVector], bias[kVector];
    load_bias<dtype_t<C.ending.dtype>>(p.bias, p.bias_dtype, part.column + column, kVector, bias);
    if (part.splits == 1) load_sums(memory + 4 * word, sum);
    else add_splits(part, memory + 4 * word, smem + u32(4 * word), sum);
    finish_and_store<C.ending>(p, part.row + row, part.column + column, bias, sum);
  }
}

/// The block. multiply(part, smem, warpgroup, sums) makes the sums of 64 rows of b by the tile of a, fill(part, smem) is for the
/// `fill_warps` warps behind the one that loads, behind the kernel before; they arrive `fills` times at a stage.
template <SwapAbBlock C, i32 kColumns, u32 fills, u32 fill_warps, class Multiply, class Fill>
QN_DEVICE void run_swapped(const DenseSm90Params& p, const Multiply& multiply, const Fill& fill) {
  constexpr int kConsumers = 2 * C.tiles.tile_n;  // threads that multiply: a warpgroup for 64 columns of out
  constexpr i32 kThreads = swap_ab_threads(C.tiles, i32(fill_warps));
  static_assert(C.tiles.tile_n % 64 == 0);
  QN_SMEM(memory);
  const u32 smem = ptx::smem_address(memory), barriers = smem + dense_swap_smem(C.tiles).barriers;
  const DenseSwapPart part = part_of_block<C, kColumns>(p);
  const u32 warp = ptx::shfl(ptx::warp_id(), 0);
  if (threadIdx.x == kConsumers) {
    ptx::prefetch_tensormap(&p.b);
    ptx::prefetch_tensormap(&p.a);
    pipeline_init<C.tiles.stages>(barriers, kConsumers / 32, 1 + fills);
  }
  ptx::sync_block();
  ptx::grid_launch_dependents();
  if (warp < kConsumers / 32) {  // tested first, laid out last: bricks/gemm/sm90/narrow.cuh
    constexpr auto L = dense_swap_smem(C.tiles);
    zero_other_rows<C.tiles.a_major, C.tiles.tile_m, C.tiles.chunks, C.tiles.stages, L.stage>(memory + L.a, p.rows, i32(threadIdx.x),
                                                                                              kConsumers);
    f32 sums[C.tiles.tile_m / 2];
    multiply(part, smem, warp / 4, sums);
    ptx::bar_sync(kMultiplyBarrier, kConsumers);  // nobody reads the ring any more
    write_sums<C>(memory, warp / 4, sums);
  } else if (warp > kConsumers / 32) {
    ptx::grid_dependency_wait();
    fill(part, smem);
  } else {
    if (ptx::elect_sync()) load_part<C, kColumns>(p, part, smem);
    ptx::sync_warp();
  }
  ptx::grid_dependency_wait();  // for all that is read and written from here on
  if (part.splits == 1) {
    ptx::sync_block();
    add_and_store<C, kThreads>(p, part, memory, smem);
  } else {
    ptx::cluster_arrive();
    ptx::cluster_wait();
    add_and_store<C, kThreads>(p, part, memory, smem);
    // The others read this block's sums
    ptx::cluster_arrive();
    ptx::cluster_wait();
  }
}

template <SwapAbBlock C, i32 kColumns, class Multiply>
QN_DEVICE void run_swapped(const DenseSm90Params& p, const Multiply& multiply) {
  run_swapped<C, kColumns, 0, 0>(p, multiply, [](const DenseSwapPart&, u32) {});
}

}  // namespace quern::gemm
