// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Products on Hopper: TMA fills a ring of stages, warpgroups multiply from it.
#pragma once
#include "quern/bricks/gemm/addend_spec.h"
#include "quern/bricks/gemm/purpose_spec.h"

namespace quern::gemm {

/// Columns of a and b in a stage, or in each of its chunks: 128 bytes, the widest row that a tensor map swizzles.
constexpr i32 kDenseSm90TileK = 64;

/// Of an MN-major operand, whose tile in a stage has `rows` rows: those of a box, and how boxes are swizzled, which is as wide.
QN_HOST_DEVICE constexpr i32 dense_sm90_box(i32 rows) { return rows < 64 ? rows : 64; }
QN_HOST_DEVICE constexpr Swizzle dense_sm90_swizzle(i32 rows) {
  return rows >= 64 ? Swizzle::b128 : rows == 32 ? Swizzle::b64 : Swizzle::b32;
}

struct DenseSm90Config {
  DType dtype;  // of a and b
  DType out_dtype;
  i32 tile_m;  // a block's part of out
  i32 tile_n;
  i32 stages;
  i32 alternate;  // 1: the two warpgroups that multiply take tiles in turn, 0: each half of the rows of every tile
  i32 fold;       // 1: parts of K are summed by themselves, then added in ascending order; not with alternate. Narrow tiles: each by a block of a cluster
  i32 threads;    // 128 that load, 256 that multiply; of narrow tiles 128 for each warpgroup that multiplies, a warp for each of b and a
  i32 has_c;      // 1: c is added
  i32 activation; // an Activation
  Major a_major;
  Major b_major;  // mn: tile_n a multiple of 64
  i32 c_boxes;    // 1: c, of the dtype of out, of 16 bits, comes by TMA
  i32 by_lanes;   // 1: results never leave by TMA
  i32 chunks = 1; // of 128 bytes of K of each row in a stage; where there are more, those of eight rows of b lie in turn, load_in_turn(); four and eight where by_mma()
  i32 across = 1; // of narrow tiles: warpgroups beside each other, with an even share of the columns each
  i32 walk = 0;   // 1: a block makes several narrow tiles, every gridDim.x-th
  i32 pair = 0;   // 1, of many rows: the two blocks of a cluster make two tiles one above the other, and each loads half of b for both; of groups two that follow each other, which may be of two groups with a b each
  i32 tail = 0;   // of groups, of many rows: columns of the narrower tiles that the last columns of each group have where that takes less time (column_tiles()); 0: none
};
/// Blocks that fill each other's stages, of a DenseSm90Config, a ScaledSm90Config, or a tile of theirs.
template <class Config>
QN_HOST_DEVICE constexpr i32 pair_blocks(const Config& c) {
  return 1 + c.pair;
}
/// Rows of a narrow tile that mma.sync multiplies, not wgmma, and words from row to row of a warp's sums of it: an odd multiple of eight, so that 4 rows of 4 lanes lie in different banks.
constexpr i32 kNarrowMmaRows = 16;
QN_HOST_DEVICE constexpr bool by_mma(const DenseSm90Config& c) { return c.tile_m == kNarrowMmaRows; }
QN_HOST_DEVICE constexpr i32 narrow_mma_pitch(const DenseSm90Config& c) { return c.tile_n | 8; }
/// Warpgroups that multiply a narrow tile, of a DenseSm90Config or ScaledSm90Config, and the columns of each.
template <class Config>
QN_HOST_DEVICE constexpr i32 narrow_warpgroups(const Config& c) {
  return c.tile_m < 64 ? 1 : c.tile_m / 64 * c.across;
}
template <class Config>
QN_HOST_DEVICE constexpr i32 warpgroup_columns(const Config& c) {
  return c.tile_n / c.across;
}

/// Named barrier of the threads that multiply. Warpgroups that take tiles in turn wait there, the second one at the next, for their turn.
constexpr int kMultiplyBarrier = 9;

struct DenseSm90Params {
  TensorMap a;       // [m, k], boxes [tile_m, 64], of few rows no more than m, of swap_ab_sm90 `rows`, by_mma() sm90_few_rows_operand(); MN-major: [k, m], boxes [64, dense_sm90_box(tile_m)]
  TensorMap b;       // [n, k], the same with tile_n, of pairs half of it; of stages of several chunks sm90_operand_in_turn()
  const void* bias;  // [n] or null
  void* out;         // [m, n], rows aligned to 16 bytes
  i64 out_stride;    // elements from row to row
  i32 m, n, k;       // n a multiple of 8
  i32 rows;          // of tiles of few rows (swap_ab_sm90): those of a's boxes, of an M-major a tile_m
  i32 parts;         // of K, whole stages each, one after another (fold of many rows)
  i32 pdl;           // 1: the kernel before in the stream may still run
  i32 group_log2 = 3;  // of many rows: of the tiles along m that are taken before the next ones along n (bricks/gemm/tile_order.cuh)
  DType bias_dtype;  // f32, or that of a
  DenseAddend c;     // rows aligned to 16 bytes
  TensorMap results; // of out, where they leave by TMA
  TensorMap addend;  // of c, where it comes by TMA
};

/// Rows of out that a warp stores at once by TMA.
constexpr i32 kSm90StoreRows = 16;
/// Whether the results of the kernels for many rows leave by TMA: those of 16 bits, to which nothing is added but what came so.
QN_HOST_DEVICE constexpr bool dense_sm90_stores_boxes(const DenseSm90Config& c) {
  return c.out_dtype != DType::f32 && (c.has_c == 0 || c.c_boxes != 0) && c.by_lanes == 0;
}
/// Boxes [16][columns] of out through which a warp stores, of which it has `slots`, filled and stored together.
struct Sm90Boxes {
  i32 columns, slots;
  Swizzle swizzle;  // of rows of whole 128 or 64 bytes; eight of an odd number of 16 bytes lie in different banks without
  i32 bytes;        // of a slot
};
/// 128 bytes of a row where they divide a tile's; else halves or quarters of an odd number of 16 bytes. All of them at once, of 256 columns half: the stores of 128 x 192 FP8 results take 900 clocks and 1500 with one slot. One
/// of 112, 144 and 176 columns, of which two leave room for a stage less (not measured), of tiles in turn, whose stores nobody waits for, and where there is a tail, for a fifth stage. c comes into the slots that the results leave from, as many ahead as 227 KB hold beside the ring.
QN_HOST_DEVICE constexpr Sm90Boxes dense_sm90_boxes(const DenseSm90Config& c) {
  const bool parts = c.tile_n % 64 != 0, halves = c.tile_n % 32 != 0, thirds = !parts && c.c_boxes != 0 && c.tile_n % 128 != 0;
  const i32 columns = halves ? c.tile_n / 2 : parts ? c.tile_n / 4 : thirds ? 32 : 64, all = c.tile_n / columns;
  const i32 slots = halves || (c.c_boxes == 0 && c.alternate != 0) || c.tail != 0 ? 1 : all % 3 == 0 ? 3 : 2;
  return {columns, slots, parts ? Swizzle::none : thirds ? Swizzle::b64 : Swizzle::b128, kSm90StoreRows * columns * 2};
}
/// Where the 16 bytes `chunk` of a row of a box lie in it.
QN_HOST_DEVICE constexpr u32 dense_sm90_box_place(const Sm90Boxes& b, u32 row, u32 chunk) {
  const u32 line = row * u32(b.columns) * 2;
  return line + (chunk ^ (line >> 7 & ((1u << int(b.swizzle)) - 1))) * 16;
}

struct DenseSm90Smem {
  int a, b, stage, boxes, halves, barriers, c_barriers, halves_barrier, bytes;
};
/// The first stage along K, of `columns` columns, that part `part` of `parts` sums. Parts begin at multiples of 128 columns, whatever the stage; those of longer ones are not split.
QN_HOST_DEVICE constexpr u32 dense_sm90_part_begin(i32 k, i32 columns, u32 part, u32 parts) {
  const u32 stages = (u32(k) + u32(columns) - 1) / u32(columns), begin = columns > 128 ? stages * part / parts : u32(k + 127) / 128 * part / parts * (128 / u32(columns));
  return begin < stages ? begin : stages;
}
/// Stages of a tile of a, then one of b; boxes of the 8 warps that multiply; of narrow tiles with K in two, half of the other block's sums, of those by_mma() the sums of four warps; a pair of barriers for
/// each stage; one for each slot that c comes into; one for the other block's sums.
QN_HOST_DEVICE constexpr DenseSm90Smem dense_sm90_smem(const DenseSm90Config& c) {
  const int a = c.tile_m * 128 * c.chunks, stage = a + c.tile_n * 128 * c.chunks, slots = 8 * dense_sm90_boxes(c).slots;
  const int halves = stage * c.stages + (dense_sm90_stores_boxes(c) ? slots * dense_sm90_boxes(c).bytes : 0);
  const bool halved = c.fold != 0 && c.by_lanes != 0;  // narrow
  const int barriers = halves + (halved ? 2 * c.tile_m * c.tile_n : by_mma(c) ? 4 * 4 * kNarrowMmaRows * narrow_mma_pitch(c) : 0), c_barriers = barriers + int(pipeline_bytes(c.stages));
  const int halves_barrier = c_barriers + (c.c_boxes != 0 ? 8 * slots : 0);
  return {0, a, stage, stage * c.stages, halves, barriers, c_barriers, halves_barrier, halves_barrier + (halved ? 16 : 0)};  // scales of 16 bytes follow
}

QN_HOST_DEVICE constexpr i32 block_bytes(const DenseSm90Config& c) { return dense_sm90_smem(c).bytes; }

struct DenseSwapConfig {
  DType dtype;  // of a and b
  DType out_dtype;
  i32 tile_m;  // rows of a: columns of wgmma
  i32 tile_n;  // rows of b: 64 for each warpgroup that multiplies
  i32 stages;
  i32 threads;  // 2 tile_n that multiply, and a warp that loads
  i32 min_blocks;
  i32 has_c;       // 1: c is added
  i32 activation;  // an Activation
  Major a_major;
  Major b_major;
  i32 chunks;  // of 128 bytes of K of each row in a stage; 2: those of eight rows of b lie in turn, load_in_turn()
};

/// Parts of K, each of a block of the cluster.
constexpr u32 kDenseSwapMaxSplits = 4;

struct DenseSwapSmem {
  int b, a, stage, barriers, bytes;
  int pitch;  // words of a row of sums, which lie over the stages at the end
};
/// Stages of a tile of b, then one of a; a pair of barriers for each stage.
QN_HOST_DEVICE constexpr DenseSwapSmem dense_swap_smem(const DenseSwapConfig& c) {
  const int b = c.tile_n * 128 * c.chunks, stage = b + c.tile_m * 128 * c.chunks, pitch = c.tile_n + 4;
  const int ring = stage * c.stages > 4 * pitch * c.tile_m ? stage * c.stages : (4 * pitch * c.tile_m + 1023) / 1024 * 1024;
  return {0, b, stage, ring, ring + int(pipeline_bytes(c.stages)), pitch};
}

}  // namespace quern::gemm
