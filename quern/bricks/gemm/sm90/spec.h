// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Products on Hopper: TMA fills a ring of stages, warpgroups multiply from it.
#pragma once
#include "quern/bricks/gemm/ending_spec.h"
#include "quern/bricks/gemm/purpose_spec.h"

namespace quern::gemm {

/// Columns of a and b in a stage, or in each of its chunks: 128 bytes, the widest row that a tensor map swizzles.
constexpr i32 kDenseSm90TileK = 64;

/// Of an MN-major operand, whose tile in a stage has `rows` rows: those of a box, and how boxes are swizzled, which is as wide.
QN_HOST_DEVICE constexpr i32 dense_sm90_box(i32 rows) { return rows < 64 ? rows : 64; }
QN_HOST_DEVICE constexpr Swizzle dense_sm90_swizzle(i32 rows) {
  return rows >= 64 ? Swizzle::b128 : rows == 32 ? Swizzle::b64 : Swizzle::b32;
}

/// A block's part of out, and the ring of stages that its operands come through.
struct TilesSm90 {
  i32 tile_m;  // a block's part of out
  i32 tile_n;
  i32 stages;
  i32 alternate = 0;  // 1: the two warpgroups that multiply take tiles in turn, 0: each half of the rows of every tile
  Major a_major = Major::k;
  Major b_major = Major::k;  // mn: tile_n a multiple of 64
  i32 chunks = 1;  // of 128 bytes of K of each row in a stage; where there are more, those of eight rows of b lie in turn, load_in_turn();
                   // four and eight where by_mma()
  i32 pair = 0;    // 1, of many rows: the two blocks of a cluster make two tiles one above the other, and each loads half of b for both; of
                   // groups two that follow each other, which may be of two groups with a b each
  // Of many rows, with results of 16 bits and no c. Not 0: the operands have changed places. The tile's rows are rows of the weights, its
  // columns are rows of the other operand, and out is made transposed. A call multiplies as many columns as it needs: at least this many,
  // in steps of swapped_step()
  i32 swapped = 0;
  i32 tail = 0;  // of groups, of many rows: columns of the narrower tiles that the last columns of each group have where that takes less
                 // time (column_tiles()); 0: none
};
/// The step from one number of columns that a swapped tile may have to the next. Each number has a loop over K of its own. There are eight
/// of them, four in wide tiles, so that the kernel does not compile for more than a second.
QN_HOST_DEVICE constexpr i32 swapped_step(i32 most) { return most <= 128 ? 8 : 16; }
/// How results leave.
struct StoreSm90 {
  i32 c_boxes = 0;   // 1: c, of the dtype of out, of 16 bits, comes by TMA
  i32 by_lanes = 0;  // 1: results never leave by TMA
};
/// Of tiles of few rows (narrow.cuh).
struct NarrowSm90 {
  i32 halves = 0;        // 1: the two blocks of a cluster sum a half of K each
  i32 warpgroups_n = 1;  // beside each other, with an even share of the columns each
  i32 walk = 0;  // 1: a block makes several tiles, every gridDim.x-th; 2: it makes one, of more than 128 rows, so there may be more than
                 // two above each other
};
/// All that the memory of a block, and what follows its sums, depend on.
struct BlockSm90 {
  Ending ending;
  TilesSm90 tiles;
  StoreSm90 store;
  NarrowSm90 narrow;
};
/// Threads of a block for many rows: 128 that load, 256 that multiply.
constexpr i32 kTilesSm90Threads = 3 * 128;

/// A kernel for many rows of 16-bit operands.
struct TilesSm90Config {
  BlockSm90 block;
  i32 sum_parts_in_block = 0;  // 1: parts of K are summed by themselves, then added in ascending order; not with alternate
  i32 threads = kTilesSm90Threads;
};
/// A kernel for few rows of them, in narrow tiles.
struct NarrowSm90Config {
  BlockSm90 block;
  i32 threads;  // narrow_threads()
};

/// Blocks that fill each other's stages, of TilesSm90, or of a Sm90Tile of a plan.
template <class Tile>
QN_HOST_DEVICE constexpr i32 pair_blocks(const Tile& tile) {
  return 1 + tile.pair;
}
/// Rows of a narrow tile that mma.sync multiplies, not wgmma, and words from row to row of a warp's sums of it: an odd multiple of eight,
/// so that 4 rows of 4 lanes lie in different banks.
constexpr i32 kNarrowMmaRows = 16;
QN_HOST_DEVICE constexpr bool by_mma(const BlockSm90& c) { return c.tiles.tile_m == kNarrowMmaRows; }
QN_HOST_DEVICE constexpr i32 narrow_mma_pitch(const BlockSm90& c) { return c.tiles.tile_n | 8; }
/// Warpgroups that multiply a narrow tile, and the columns of each.
QN_HOST_DEVICE constexpr i32 narrow_warpgroups(const BlockSm90& c) {
  return c.tiles.tile_m < 64 ? 1 : c.tiles.tile_m / 64 * c.narrow.warpgroups_n;
}
QN_HOST_DEVICE constexpr i32 warpgroup_columns(const BlockSm90& c) { return c.tiles.tile_n / c.narrow.warpgroups_n; }
/// 128 for each of them, a warp that loads b, one that loads a, and `others` warps.
QN_HOST_DEVICE constexpr i32 narrow_threads(const BlockSm90& c, i32 others = 0) { return 128 * narrow_warpgroups(c) + 64 + 32 * others; }

/// Named barrier of the threads that multiply. Warpgroups that take tiles in turn wait there, the second one at the next, for their turn.
constexpr int kMultiplyBarrier = 9;

struct DenseSm90Params {
  // Where `swapped`, a is gemm.dense's b and b its a, m its n and n its m
  TensorMap a;       // [m, k], boxes [tile_m, 64], of few rows no more than m, of swap_ab_sm90 `rows`, by_mma() sm90_few_rows_operand();
                     // MN-major: [k, m], boxes [64, dense_sm90_box(tile_m)]
  TensorMap b;       // [n, k], the same with tile_n, of pairs half of it; of stages of several chunks sm90_operand_in_turn()
  const void* bias;  // [n] or null
  void* out;         // [m, n], rows aligned to 16 bytes
  i64 out_stride;    // elements from row to row
  i32 m, n, k;       // n a multiple of 8
  i32 rows;   // of tiles of few rows (swap_ab_sm90): those of a's boxes, of an M-major a tile_m; where `swapped`: the columns that a tile
              // has at most
  i32 parts;  // of K, whole stages each, one after another (as `sum_parts_in_block`)
  i32 pdl;    // 1: the kernel before in the stream may still run
  i32 group_log2 = 3;  // of many rows: of the tiles along m that are taken before the next ones along n (bricks/gemm/tile_order.cuh)
  DType bias_dtype;    // f32, or that of a
  DenseAddend c;       // rows aligned to 16 bytes
  TensorMap results;   // of out, where they leave by TMA
  TensorMap addend;    // of c, where it comes by TMA
};

/// Rows of out that a warp stores at once by TMA.
constexpr i32 kSm90StoreRows = 16;
/// Whether the results of the kernels for many rows leave by TMA: those of 16 bits, to which nothing is added but what came so.
QN_HOST_DEVICE constexpr bool dense_sm90_stores_boxes(const BlockSm90& c) {
  return c.ending.out_dtype != DType::f32 && (c.ending.has_c == 0 || c.store.c_boxes != 0) && c.store.by_lanes == 0;
}
/// Boxes [16][columns] of out through which a warp stores, of which it has `slots`, filled and stored together.
struct Sm90Boxes {
  i32 columns, slots;
  Swizzle swizzle;  // of rows of whole 128 or 64 bytes; eight of an odd number of 16 bytes lie in different banks without
  i32 bytes;        // of a slot
};
/// Columns: a box has 128 bytes of a tile's row where these divide the row; else a half or a quarter of it, an odd number of 16 bytes.
/// Slots: two, or three where the number of boxes is a multiple of three, so that one fence serves several boxes: the stores of 128 x 192
/// FP8 results take 900 clocks, and 1500 with one slot. One slot in three cases: tiles of 112, 144 and 176 columns, where a second one
/// would cost a stage (not measured); tiles in turn, whose stores nobody waits for; a tail, for the sake of a fifth stage.
/// c comes into the slots that the results leave from, as many ahead as 227 KB hold beside the ring. Where `swapped`, the four warps of a
/// warpgroup fill four boxes together, [16 rows of out][64 columns] each.
QN_HOST_DEVICE constexpr Sm90Boxes dense_sm90_boxes(const BlockSm90& c) {
  if (c.tiles.swapped != 0) return {64, c.tiles.tile_n == 192 ? 1 : 2, Swizzle::b128, kSm90StoreRows * 128};
  const bool parts = c.tiles.tile_n % 64 != 0, halves = c.tiles.tile_n % 32 != 0,
             thirds = !parts && c.store.c_boxes != 0 && c.tiles.tile_n % 128 != 0;
  const i32 columns = halves ? c.tiles.tile_n / 2 : parts ? c.tiles.tile_n / 4 : thirds ? 32 : 64, all = c.tiles.tile_n / columns;
  const i32 slots = halves || (c.store.c_boxes == 0 && c.tiles.alternate != 0) || c.tiles.tail != 0 ? 1 : all % 3 == 0 ? 3 : 2;
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
/// The first stage along K, of `columns` columns, that part `part` of `parts` sums. Parts begin at multiples of 128 columns, whatever the
/// stage; those of longer ones are not split.
QN_HOST_DEVICE constexpr u32 dense_sm90_part_begin(i32 k, i32 columns, u32 part, u32 parts) {
  const u32 stages = (u32(k) + u32(columns) - 1) / u32(columns),
            begin = columns > 128 ? stages * part / parts : u32(k + 127) / 128 * part / parts * (128 / u32(columns));
  return begin < stages ? begin : stages;
}
/// The shared memory of a block, in this order: stages, each a tile of a and then one of b; the boxes of the 8 warps that multiply; for
/// narrow tiles half of the other block's sums (K in two), or the sums of four warps (by_mma()); a pair of barriers for each stage; a
/// barrier for each slot that c comes into; a barrier for the other block's sums.
QN_HOST_DEVICE constexpr DenseSm90Smem dense_sm90_smem(const BlockSm90& c) {
  const int a = c.tiles.tile_m * 128 * c.tiles.chunks, stage = a + c.tiles.tile_n * 128 * c.tiles.chunks,
            slots = 8 * dense_sm90_boxes(c).slots;
  const int halves = stage * c.tiles.stages + (dense_sm90_stores_boxes(c) ? slots * dense_sm90_boxes(c).bytes : 0);
  const bool halved = c.narrow.halves != 0 && c.store.by_lanes != 0;  // narrow
  const int barriers = halves + (halved      ? 2 * c.tiles.tile_m * c.tiles.tile_n
                                 : by_mma(c) ? 4 * 4 * kNarrowMmaRows * narrow_mma_pitch(c)
                                             : 0),
            c_barriers = barriers + int(pipeline_bytes(c.tiles.stages));
  const int halves_barrier = c_barriers + (c.store.c_boxes != 0 ? 8 * slots : 0);
  return {0,
          a,
          stage,
          stage * c.tiles.stages,
          halves,
          barriers,
          c_barriers,
          halves_barrier,
          halves_barrier + (halved ? 16 : 0)};  // scales of 16 bytes follow
}

QN_HOST_DEVICE constexpr i32 block_bytes(const BlockSm90& c) { return dense_sm90_smem(c).bytes; }
QN_HOST_DEVICE constexpr i32 block_bytes(const TilesSm90Config& c) { return block_bytes(c.block); }
QN_HOST_DEVICE constexpr i32 block_bytes(const NarrowSm90Config& c) { return block_bytes(c.block); }

/// Of few rows of a, which are the columns of wgmma (swap_ab.cuh).
struct SwapAbSm90 {
  i32 tile_m;  // rows of a
  i32 tile_n;  // rows of b: 64 for each warpgroup that multiplies
  i32 stages;
  Major a_major = Major::k;
  Major b_major = Major::k;
  i32 chunks = 1;  // of 128 bytes of K of each row in a stage; 2: those of eight rows of b lie in turn, load_in_turn()
};
struct SwapAbBlock {
  Ending ending;
  SwapAbSm90 tiles;
};
struct SwapAbConfig {
  SwapAbBlock block;
  i32 threads;  // swap_ab_threads()
  i32 min_blocks;
};
/// 2 tile_n that multiply, a warp that loads, and `others` warps.
QN_HOST_DEVICE constexpr i32 swap_ab_threads(const SwapAbSm90& tiles, i32 others = 0) { return 2 * tiles.tile_n + 32 + 32 * others; }

/// Parts of K, each of a block of the cluster.
constexpr u32 kDenseSwapMaxSplits = 4;

struct DenseSwapSmem {
  int b, a, stage, barriers, bytes;
  int pitch;  // words of a row of sums, which lie over the stages at the end
};
/// Stages of a tile of b, then one of a; a pair of barriers for each stage.
QN_HOST_DEVICE constexpr DenseSwapSmem dense_swap_smem(const SwapAbSm90& c) {
  const int b = c.tile_n * 128 * c.chunks, stage = b + c.tile_m * 128 * c.chunks, pitch = c.tile_n + 4;
  const int ring = stage * c.stages > 4 * pitch * c.tile_m ? stage * c.stages : (4 * pitch * c.tile_m + 1023) / 1024 * 1024;
  return {0, b, stage, ring, ring + int(pipeline_bytes(c.stages)), pitch};
}

}  // namespace quern::gemm
