// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// gemm.scaled on Hopper: the structure of gemm.dense's kernels, with stages of 128 columns of 8 bits and a second set of sums.
#pragma once
#include "quern/bricks/gemm/scales_spec.h"
#include "quern/bricks/gemm/sm90/spec.h"

namespace quern::gemm {

/// Products of 8-bit operands: a block's tiles with the scales of each stage, or of all of K.
struct ScaledSm90 {
  DType a_dtype;
  DType b_dtype;
  BlockSm90 block;
  i32 column_scales;  // 0: of b for blocks of 128 rows, or all; 1: of all of K, a's too; 2: of b for each row and 128 columns
  i32 narrow = 0;     // 1: one tile a block, narrow.cuh
};
struct ScaledSm90Config {
  ScaledSm90 product;
  i32 threads = kTilesSm90Threads;  // of narrow tiles narrow_threads() with a warp for the scales
};
/// Whether results of tiles of so many columns leave by the lanes: with boxes of 88 columns 4096 x 2112 x 7168 took 107 us, by the lanes
/// 101.
QN_HOST_DEVICE constexpr bool scaled_by_lanes(i32 tile_n) { return tile_n % 64 != 0; }

/// Columns of a tile that have a scale of b together. Those of a block of 128 rows of b: tiles, and a warpgroup's part of one, begin at
/// multiples of them.
QN_HOST_DEVICE constexpr i32 scaled_sm90_columns(const ScaledSm90& c) {
  const i32 power = warpgroup_columns(c.block) & -warpgroup_columns(c.block);
  return c.column_scales != 0 ? 1 : power < 128 ? power : 128;
}
/// Scales of b of a stage for a warpgroup's columns of a tile. Where these are the whole tile, one, or a multiple of four, which are read
/// four at a time; those of warpgroups beside each other lie one behind the other.
QN_HOST_DEVICE constexpr i32 scaled_sm90_scales(const ScaledSm90& c) {
  const i32 count = warpgroup_columns(c.block) / scaled_sm90_columns(c);
  return count == 1 || c.block.narrow.warpgroups_n > 1 ? count : (count + 3) / 4 * 4;
}
/// Stages whose products are issued one ahead: for the sums of two beside the total, up to 128 columns leave registers; 96 where two
/// warpgroups of a narrow tile share them, as nobody gives any back.
QN_HOST_DEVICE constexpr i32 scaled_sm90_batch(const ScaledSm90& c) {
  return warpgroup_columns(c.block) <= (c.block.narrow.warpgroups_n > 1 ? 96 : 128) ? 4 : 1;
}

/// Whether the stages of a tile are multiplied in rounds of the ring, each by code of its own (multiply_rounds()). Of tiles whose sums
/// leave no registers for a second set, but narrow ones, where it was not measured.
QN_HOST_DEVICE constexpr bool has_rounds(const ScaledSm90& c) {
  return !c.narrow && (c.block.tiles.tile_n > 128 || c.block.tiles.tile_m == 256);
}
/// Steps of K from which on the two warpgroups begin such a tile together: of 28 they gain 1 to 3 %, of 16 they lose 2.
constexpr int kStepsToBeginTogether = 24;

/// Whether those of a narrow tile load a stage's scales ahead of its products. Where several warpgroups share the registers there is no
/// room for a second set of them beside wide tiles' sums: 8 to 16 bytes were spilled of 64 x 192 with a scale of each row of b, and of 128
/// x 88.
QN_HOST_DEVICE constexpr bool scaled_sm90_scales_first(const ScaledSm90& c) {
  return c.narrow != 0 &&
         (narrow_warpgroups(c.block) == 1 || warpgroup_columns(c.block) <= 80 || (c.block.tiles.tile_m == 64 && c.column_scales == 0));
}

/// Scales in shared memory, which warps of their own copy there: of each row of a tile's a, then of every `step` rows of its b.
struct ScaleStages {
  i32 rows, columns;  // of a; of b
  i32 pitch;          // elements from stage to stage
  i32 together;       // of a, in the order of scale_row()
  i32 step;
  i32 stages;  // those of the ring, or tiles at a time where they are of all of K
  i32 first_warp, warps;
  i32 own_barriers;  // 1: those of all of K, a stage for a tile
  i32 boxes;         // that scales of a may come in by TMA (ScaleBoxes), of 128 rows each; then each 128 have room for one
  i32 memory;        // bytes from the beginning
  i32 barriers;      // the ring's, which they arrive at with the operands, or their own
  i32 bytes;         // of the block's memory, with these
};
/// The row of a tile whose scale of a lies at `place` in a stage. The rows of a thread, the eight lanes of whose column have neighbouring
/// ones, lie `together`: 2, r and r + 8 of a warp's 16. One load takes them: shared memory gives wgmma its operands all the time, and what
/// else is read there takes a part of it (README).
QN_HOST_DEVICE constexpr i32 scale_row(i32 together, i32 place) {
  const i32 lane = place % (8 * together) / together, own = place % together;
  return together == 1 ? place : place / 16 * 16 + own * 8 + lane;
}

/// Rows of a box, which begins at a multiple of 16 bytes: up to three more before the tile's. Each box of a stage begins at a multiple of
/// 128 bytes of memory.
constexpr i32 kScaleBoxRows = 128 + 4, kScaleBoxPitch = round_up(kScaleBoxRows, 32);
/// Where a row's scale lies among those of a stage, in elements, if it is their place `place`.
QN_HOST_DEVICE constexpr i32 scale_place(i32 boxes, i32 place) { return boxes ? place / 128 * kScaleBoxPitch + place % 128 : place; }

/// Behind the memory of the operands, of `bytes` bytes, a multiple of 16: stages of which the scales of all of K have one for `tiles`
/// tiles.
QN_HOST_DEVICE constexpr ScaleStages scale_stages(i32 rows, i32 columns, i32 together, i32 step, i32 of_all_k, i32 ring_stages, i32 tiles,
                                                  i32 first_warp, i32 warps, i32 boxes, i32 bytes, i32 ring_barriers) {
  const i32 pitch = boxes ? boxes * kScaleBoxPitch : round_up(rows + columns, together), memory = boxes ? round_up(bytes, 128) : bytes;
  const i32 stages = of_all_k ? tiles : ring_stages, end = round_up(memory + 4 * stages * pitch, 8);
  return {rows,
          columns,
          pitch,
          together,
          step,
          stages,
          first_warp,
          warps,
          of_all_k,
          boxes,
          memory,
          of_all_k ? end : ring_barriers,
          end + (of_all_k ? i32(pipeline_bytes(stages)) : 0)};
}
/// Whether one warp finds tiles ahead of those that multiply, and brings their scales of b, up to 32 for a stage (TileSlots); those of a
/// then come by TMA where they lie as it wants them.
QN_HOST_DEVICE constexpr bool has_tile_slots(const ScaledSm90& c) { return c.column_scales == 0 && !c.narrow; }
/// Two rows of a thread. Each by itself where they come by TMA, in narrow tiles, where nothing is gained and (7168, 2048) took 0.09 of 6.1
/// us longer, and beside scales of each row of b, where k_grouped's kernels spilled 16 to 24 bytes.
QN_HOST_DEVICE constexpr i32 scale_rows_together(const ScaledSm90& c) {
  return c.narrow || c.column_scales == 2 || has_tile_slots(c) ? 1 : 2;
}
/// Warps 1 to 3 of the block, where there are slots the last two of them; of narrow tiles the last warp. Those of all of K are of this tile
/// and the next, of tiles of 256 rows and narrow ones of one: beside four stages of 256 rows two have no room.
QN_HOST_DEVICE constexpr ScaleStages scale_stages(const ScaledSm90& c) {
  const auto tiles = dense_sm90_smem(c.block);
  const i32 narrow_warp = 4 * narrow_warpgroups(c.block) + 2, slots = has_tile_slots(c);
  return scale_stages(c.block.tiles.tile_m, slots ? 0 : scaled_sm90_scales(c) * c.block.narrow.warpgroups_n, scale_rows_together(c),
                      scaled_sm90_columns(c), c.column_scales == 1, c.block.tiles.stages, c.narrow || c.block.tiles.tile_m == 256 ? 1 : 2,
                      c.narrow ? narrow_warp : 1 + slots, c.narrow ? 1 : 3 - slots, slots * (c.block.tiles.tile_m / 128), tiles.bytes,
                      tiles.barriers);
}

/// Slots for a tile each, or for kSlotSteps stages of it: its place, then `scales` scales of b for each stage, whole 16 bytes. Behind the
/// stages.
constexpr i32 kTileSlots = 2, kSlotSteps = 120, kSlotPlace = 32;
struct TileSlots {
  i32 scales, pitch;            // pitch: bytes from slot to slot
  i32 memory, barriers, bytes;  // bytes: of the block's memory, with these
};
QN_HOST_DEVICE constexpr TileSlots tile_slots(const ScaledSm90& c) {
  const i32 scales = round_up(scaled_sm90_scales(c), 4), pitch = kSlotPlace + 4 * scales * (kSlotSteps + 1),
            memory = round_up(scale_stages(c).bytes, 16), end = memory + kTileSlots * pitch;
  return {scales, pitch, memory, end, end + i32(pipeline_bytes(kTileSlots))};
}

QN_HOST_DEVICE constexpr i32 block_bytes(const ScaledSm90& c) { return has_tile_slots(c) ? tile_slots(c).bytes : scale_stages(c).bytes; }
QN_HOST_DEVICE constexpr i32 block_bytes(const ScaledSm90Config& c) { return block_bytes(c.product); }

/// The same of few rows of a (swap_ab.cuh).
struct ScaledSwapAb {
  DType a_dtype;
  DType b_dtype;
  SwapAbBlock block;
  i32 of_all_k;  // 1: scales of all of K
};
struct ScaledSwapAbConfig {
  ScaledSwapAb product;
  i32 threads;  // swap_ab_threads() with a warp that copies scales
  i32 min_blocks;
};

/// Stages of a batch. Up to 32 rows of a are multiplied one behind the other before their sums are scaled, as they are little work beside
/// what a wait for it takes; more have two sets of sums, of which one is scaled while the other is made.
QN_HOST_DEVICE constexpr bool scaled_swap_ahead(const ScaledSwapAb& c) { return c.block.tiles.tile_m >= 64; }
QN_HOST_DEVICE constexpr i32 scaled_swap_batch(const ScaledSwapAb& c) {
  return !scaled_swap_ahead(c) && (c.block.tiles.tile_m >= 32 || c.block.tiles.tile_n > 64) ? 2 : 4;
}
/// The warp behind the one that loads.
QN_HOST_DEVICE constexpr ScaleStages scale_stages(const SwapAbSm90& c, i32 of_all_k) {
  const auto tiles = dense_swap_smem(c);
  return scale_stages(c.tile_m, c.tile_n, 1, 1, of_all_k, c.stages, 1, 2 * c.tile_n / 32 + 1, 1, 0, tiles.bytes, tiles.barriers);
}
QN_HOST_DEVICE constexpr ScaleStages scale_stages(const ScaledSwapAb& c) { return scale_stages(c.block.tiles, c.of_all_k); }
/// Memory of a block, whatever the scales are for.
QN_HOST_DEVICE constexpr i32 scaled_swap_bytes(const SwapAbSm90& c) { return scale_stages(c, 0).bytes; }

/// Scales of a that come by TMA: those of neighbouring rows lie next to each other, those of a column of them begin at multiples of 16
/// bytes.
struct ScaleBoxes {
  TensorMap map;  // [columns of all matrices, rows], boxes of kScaleBoxRows of one column
  i32 columns;    // from a matrix's first to the next one's
  i32 used;       // 1: they lie so
};

struct ScaledSm90Params {
  DenseSm90Params gemm;  // boxes of 128 columns
  Scales scales_a, scales_b;
  ScaleBoxes boxes;  // of scales_a
};

}  // namespace quern::gemm
