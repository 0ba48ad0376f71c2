// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// A ring of slots. In a slot the warps that multiply find their next tile: its place, and its scales of b for up to kSlotSteps stages. A
// longer K takes several slots. In kernels of groups the warps that copy scales read the slots too. One warp finds the tiles and copies the
// scales of b, a tile ahead. Where each warp looked for its tiles itself, it took 2900 clocks from one tile to the next instead of 2100.
// Where the thread that loads brought the scales of b with each stage, the kernel took 4 to 6 % more clocks (README).
#pragma once
#include "quern/bricks/gemm/scale_source.cuh"
#include "quern/bricks/gemm/sm90/scaled_spec.h"
#include "quern/bricks/gemm/sm90/tiles.cuh"
#include "quern/kit/kit.cuh"

namespace quern::gemm {

/// What reads the ring's stages. NVRTC 13.0 finds no function whose signature calls another on a part of a template argument: hence 1 +
/// pair.
template <ScaledSm90 C>
using ScaledRead = Consumer<C.block.tiles.stages, 1 + C.block.tiles.pair>;
/// Sums of a thread, of 64 rows by a warpgroup's columns.
template <ScaledSm90 C>
constexpr i32 kScaledSums = warpgroup_columns(C.block) / 2;

/// A tile in the words of its op.
struct TileWords {
  u32x4 first;
  u32 last;
};

/// By one thread, before the block's barrier behind which the other threads begin: makes the barriers of the slots, which eight warps and
/// `others` more read, and prefetches the map of the scales of a.
template <ScaledSm90 C>
QN_DEVICE void init_tile_slots(u32 smem, const ScaleBoxes& boxes, u32 others = 0) {
  if constexpr (has_tile_slots(C)) {
    pipeline_init<kTileSlots>(smem + u32(tile_slots(C).barriers), 8 + others, 32 + 1);
    if (boxes.used != 0) ptx::prefetch_tensormap(&boxes.map);
  }
}
template <ScaledSm90 C>
QN_DEVICE Producer<kTileSlots> start_filling_slots(u32 smem) {
  return {smem + u32(tile_slots(C).barriers)};
}
template <ScaledSm90 C>
QN_DEVICE Consumer<kTileSlots> start_reading_slots(u32 smem) {
  return {smem + u32(tile_slots(C).barriers)};
}

/// By a warp: a tile at `column` of `columns`, through `steps` stages.
template <ScaledSm90 C>
QN_DEVICE void fill_tile_slots(Producer<kTileSlots>& fill, const TileWords& tile, const Scales& scales, i32 column, i32 columns,
                               int steps) {
  constexpr TileSlots kSlots = tile_slots(C);
  constexpr i32 kStepsAtOnce = 32 / kSlots.scales;
  static_assert(has_tile_slots(C) && kStepsAtOnce > 0);
  QN_SMEM(memory);
  const i32 lane = i32(ptx::lane_id()), of_lane = lane % kSlots.scales;
  const ScaleSource source = scale_source(scales, column + scaled_sm90_columns(C) * of_lane, columns);
  int first = 0;
  do {
    ptx::mbarrier_wait(empty_barrier<kTileSlots>(fill.barriers, fill.stage), fill.parity);
    u8* const slot = memory + kSlots.memory + fill.stage * u32(kSlots.pitch);
    if (lane == 0) {
      ptx::st_shared(slot, tile.first);
      ptx::st_shared(slot + 16, tile.last);
    }
    const int end = min_of(first + kSlotSteps, steps);
    QN_NO_UNROLL
    for (int step = first + lane / kSlots.scales; steps > 0 && step <= end;
         step += kStepsAtOnce) {  // up to one behind the last, which multiply_rounds() loads
      const f32* const from = source.first + i64(min_of(step, steps - 1)) * source.stride;
      if (of_lane < scaled_sm90_scales(C) && lane < kStepsAtOnce * kSlots.scales)
        ptx::cp_async<4>(ptx::smem_address(slot) + u32(kSlotPlace + 4 * (kSlots.scales * (step - first) + of_lane)), from);
    }
    const u32 full = full_barrier<kTileSlots>(fill.barriers, fill.stage);
    ptx::cp_async_arrive(full);
    if (lane == 0) ptx::mbarrier_arrive(full);
    end_fill(fill);
    first += kSlotSteps;
  } while (first < steps);
}
/// A tile, from the slot that has come.
template <ScaledSm90 C>
QN_DEVICE TileWords words_in_slot(const Consumer<kTileSlots>& slots) {
  QN_SMEM(memory);
  const u8* const slot = memory + tile_slots(C).memory + slots.stage * u32(tile_slots(C).pitch);
  return {ptx::ld_shared<u32x4>(slot), ptx::ld_shared<u32>(slot + 16)};
}
/// Where its scales are: bytes from the beginning of shared memory to those of its first stage.
template <ScaledSm90 C>
QN_DEVICE u32 scales_of_slot(const Consumer<kTileSlots>& slots) {
  return u32(tile_slots(C).memory + kSlotPlace) + slots.stage * u32(tile_slots(C).pitch);
}
/// Goes on to the tile's next slot.
QN_DEVICE void next_slot(Consumer<kTileSlots>& slots) {
  end_read(slots);
  begin_read(slots);
}
/// Passes a tile's stages over, and its slots with them: other warps of the block wait for both.
template <ScaledSm90 C>
QN_DEVICE void pass_tile(ScaledRead<C>& read, Consumer<kTileSlots>& slots, int steps) {
  for (int first = 0; first < steps; first += kSlotSteps) {
    if (has_tile_slots(C) && first > 0) next_slot(slots);
    pass_stages(read, min_of(steps - first, kSlotSteps));
  }
  if constexpr (has_tile_slots(C)) end_read(slots);
}

}  // namespace quern::gemm
