// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// On Hopper: 64 rows of a tile of out for each warpgroup, the products of each stage of 128 columns scaled by a scale of each row and of
// each column, or of some columns together.
#pragma once
#include "quern/bricks/gemm/sm90/scaled_multiply.cuh"
#include "quern/bricks/gemm/sm90/stage_scales.cuh"
#include "quern/bricks/gemm/sm90/tile_slots.cuh"

namespace quern::gemm {

/// A thread's scales of a stage: of its two rows, or in the stages of tiles of 256 rows of the two of each half of a warpgroup's, and of
/// the tile's columns where some of them have one together; those of each column are read where they are used.
template <ScaledSm90 C>
struct ScaledOfThread {
  static constexpr int kOfA = C.block.tiles.tile_m == 256 && has_tile_slots(C) ? 4 : 2,
                       kOfB = C.column_scales == 0 ? scaled_sm90_scales(C) : 0;
  f32 a[kOfA], b[max_of(1, kOfB)];
  u32 first;  // as StageScales has it
};
template <ScaledSm90 C>
QN_DEVICE ScaledOfThread<C> scales_of_thread(const StageScales& at) {
  constexpr ScaleStages kStages = scale_stages(C);
  constexpr int kOfB = ScaledOfThread<C>::kOfB;
  QN_SMEM(memory);
  ScaledOfThread<C> s;
  if constexpr (kStages.together == 2) two_scales_at<kStages>(memory, at.own, s.a);
  else s.a[0] = scale_at<kStages>(memory, at.own), s.a[1] = scale_at<kStages>(memory, at.own + 4 * 8);
  s.first = at.first;
  QN_UNROLL
  for (int i = 0; kOfB % 4 != 0 && i < kOfB; ++i) s.b[i] = scale_at<kStages>(memory, at.first + 4 * u32(C.block.tiles.tile_m + i));
  QN_UNROLL
  for (int i = 0; kOfB % 4 == 0 && i < kOfB; i += 4) {
    f32 four[4];
    unpack<f32, 4>({scale_at<kStages, u32x4>(memory, at.first + 4 * u32(C.block.tiles.tile_m + i))}, four);
    QN_UNROLL
    for (int j = 0; j < 4; ++j) s.b[i + j] = four[j];
  }
  return s;
}

/// Those of a thread's rows in a stage, which are `own` in the first one.
template <ScaledSm90 C>
QN_DEVICE void scales_of_rows_in(const u8* own, u32 stage, ScaledOfThread<C>& s) {
  QN_UNROLL
  for (int i = 0; i < ScaledOfThread<C>::kOfA; ++i)
    s.a[i] = ptx::ld_shared<f32>(own + stage * kScaleBytes<scale_stages(C)> + 4 * (8 * (i % 2) + 64 * (i / 2)));
}
/// Those of b of the next stage in a slot (TileSlots). One by one up to four, of which ptxas leaves out what nobody reads: the fourth of
/// 192 columns.
template <ScaledSm90 C>
QN_DEVICE void scales_in_slot(const u8*& of_b, ScaledOfThread<C>& s) {
  constexpr int kScales = scaled_sm90_scales(C);
  QN_UNROLL
  for (int i = 0; kScales <= 4 && i < kScales; ++i) s.b[i] = ptx::ld_shared<f32>(of_b + 4 * i);
  QN_UNROLL
  for (int i = 0; kScales > 4 && i < kScales; i += 4) {
    f32 four[4];
    unpack<f32, 4>({ptx::ld_shared<u32x4>(of_b + 4 * i)}, four);
    QN_UNROLL
    for (int j = 0; j < 4; ++j) s.b[i + j] = four[j];
  }
  of_b += 4 * tile_slots(C).scales;
}

/// total += sums, scaled; of tiles of 256 rows those of half `half`.
template <ScaledSm90 C, int count>
QN_DEVICE void add_scaled(const ScaledOfThread<C>& s, const f32 (&sums)[count], f32 (&total)[kScaledSums<C>], u32 half = 0) {
  QN_SMEM(memory);
  QN_UNROLL
  for (int i = 0; i < count; i += 4) {
    const int column = 2 * i;
    f32 of_b[2];  // of even and odd columns
    if constexpr (C.column_scales == 0) of_b[0] = of_b[1] = s.b[column / scaled_sm90_columns(C)];
    else two_scales_at<scale_stages(C)>(memory, s.first + 4 * u32(C.block.tiles.tile_m + column) + ptx::lane_id() % 4 * 8, of_b);
    QN_UNROLL
    for (int j = 0; j < 4; ++j) total[i + j] = ptx::fma(sums[i + j], s.a[2 * half + j / 2] * of_b[j % 2], total[i + j]);
  }
}

/// total += sums.
template <int count>
QN_DEVICE void add_unscaled(const f32 (&sums)[count], f32 (&total)[count]) {
  QN_UNROLL
  for (int i = 0; i < count; ++i) total[i] = total[i] + sums[i];
}

/// Bytes from a stage's first scale to those of a thread's rows, of a warpgroup's from first_row on.
template <ScaledSm90 C>
QN_DEVICE u32 scales_of_rows(u32 first_row) {
  constexpr u32 kTogether = u32(scale_rows_together(C));
  return 4 * (u32(scale_place(scale_stages(C).boxes, i32(first_row))) + 16 * warp_of_warpgroup() + kTogether * (ptx::lane_id() / 4));
}

/// Bytes from the scale of a tile's first column to that of `column`, the first of a warpgroup.
template <ScaledSm90 C>
QN_DEVICE u32 scale_of_column(u32 column) {
  return 4 * (column / u32(scaled_sm90_columns(C)));
}

/// The walk over a tile's stages that its sums leave registers for.
template <ScaledSm90 C, class Products, class Load, class Add>
QN_DEVICE void walk_stages(ScaledRead<C>& read, int steps, const Products& products, const Load& load, const Add& add) {
  constexpr int kBatch = scaled_sm90_batch(C), kSums = kScaledSums<C>;
  constexpr bool kLate = C.column_scales == 2;
  if constexpr (kBatch > 1) multiply_stages_ahead<kBatch, kLate, scaled_sm90_scales_first(C), kSums>(read, steps, products, load, add);
  else multiply_stages_in_turn<kLate, kSums>(read, steps, products, load, add);
}

/// Before a tile whose stages are multiplied in rounds of the ring: the two warpgroups begin the tile together where it has many stages.
/// Else the warpgroup that came first to one tile would stay a stage or two ahead through all tiles, and a stage is free only when the
/// other one has read it too. With few stages it costs more than it gains (4 stages 9 %, 16 stages 2 %), and pairs gain nothing.
template <ScaledSm90 C>
QN_DEVICE void begin_together(int steps) {
  if (has_rounds(C) && C.block.tiles.pair == 0 && steps >= kStepsToBeginTogether) ptx::bar_sync(kMultiplyBarrier, 2 * kWarpgroupSize);
}

/// total = the products of 64 rows of a tile from first_row on, which lie `earlier` rows further in the stages, by warpgroup_columns() of
/// its columns from first_column on, scaled where stages have scales.
template <ScaledSm90 C>
QN_DEVICE void multiply_scaled_tile(u32 smem, u32 first_row, i32 earlier, int steps, ScaledRead<C>& read, f32 (&total)[kScaledSums<C>],
                                    u32 first_column = 0) {
  constexpr auto L = dense_sm90_smem(C.block);
  constexpr int kSums = kScaledSums<C>;
  const u32 stage = smem + read.stage * L.stage;
  StageOperands operands = stage_operands(stage + L.a + (first_row + u32(earlier)) * 128, stage + L.b + first_column * 128);
  const auto products = [&](u32 index, f32(&sums)[kSums]) {
    multiply_operands<dtype_t<C.a_dtype>, dtype_t<C.b_dtype>, C.block.tiles.stages, L.stage>(operands, index, sums);
  };
  StageScales scales =
      stage_scales(read.stage, kScaleBytes<scale_stages(C)>, scales_of_rows<C>(first_row), scale_of_column<C>(first_column));
  const auto load = [&](u32 index) {
    const ScaledOfThread<C> s = scales_of_thread<C>(scales);
    next_stage<C.block.tiles.stages>(scales, index, kScaleBytes<scale_stages(C)>);
    return s;
  };
  zero(total);
  if constexpr (C.column_scales == 1) {
    walk_stages<C>(
        read, steps, products, [](u32) { return Unscaled{}; },
        [&](const Unscaled&, const f32(&sums)[kSums]) { add_unscaled(sums, total); });
  } else {
    walk_stages<C>(read, steps, products, load,
                   [&](const ScaledOfThread<C>& s, const f32(&sums)[kSums]) { add_scaled<C>(s, sums, total); });
  }
}

/// Where the operands of the ring's first stage lie, and products of another one: of 64 rows from `row` on.
template <ScaledSm90 C>
QN_DEVICE StageOperands operands_of_ring(u32 smem, u32 first_row) {
  constexpr auto L = dense_sm90_smem(C.block);
  return stage_operands(smem + L.a + first_row * 128, smem + L.b);
}
template <ScaledSm90 C, int count>
QN_DEVICE void multiply_stage(const StageOperands& first, u32 stage, u32 row, f32 (&sums)[count]) {
  const u32 further = stage * u32(dense_sm90_smem(C.block).stage / 16);
  multiply_rows<dtype_t<C.a_dtype>, dtype_t<C.b_dtype>>({first.rows + further, first.columns + further}, row, sums);
}
/// Where a thread's scales of rows lie in the first stage, `later` rows further than the tile's.
template <ScaledSm90 C>
QN_DEVICE const u8* own_scales(u32 first_row, u32 later) {
  QN_SMEM(memory);
  return memory + scale_stages(C).memory + scales_of_rows<C>(first_row) + 4 * later;
}

/// total = the products of 64 rows of a tile from first_row on, as above, in rounds of the ring, with scales of all of K.
template <ScaledSm90 C>
QN_DEVICE void multiply_in_rounds(u32 smem, u32 first_row, i32 earlier, int steps, ScaledRead<C>& read,
                                  f32 (&total)[C.block.tiles.tile_n / 2]) {
  static_assert(has_rounds(C) && C.column_scales == 1);
  const StageOperands operands = operands_of_ring<C>(smem, first_row + u32(earlier));
  zero(total);
  multiply_rounds<C.block.tiles.tile_n / 2, Unscaled>(
      read, steps, [&](u32 stage, f32(&sums)[C.block.tiles.tile_n / 2]) { multiply_stage<C>(operands, stage, 0, sums); }, [](Unscaled&) {},
      [](u32, Unscaled&) {}, [&](const Unscaled&, const f32(&sums)[C.block.tiles.tile_n / 2]) { add_unscaled(sums, total); });
}

/// The same with the tile's scales of b in slots. The tile's first slot has come; its last slot is not given back here. The scales of a's
/// rows lie `scales_later` rows further in the stages. Only the first `columns` columns of the tile are multiplied. `unrolled`: as
/// multiply_rounds() has it.
template <ScaledSm90 C, int columns = C.block.tiles.tile_n, bool unrolled = true>
QN_DEVICE void multiply_in_rounds(u32 smem, u32 first_row, i32 earlier, u32 scales_later, int steps, ScaledRead<C>& read,
                                  Consumer<kTileSlots>& slots, f32 (&total)[C.block.tiles.tile_n / 2]) {
  static_assert(has_rounds(C) && has_tile_slots(C) && kSlotSteps % C.block.tiles.stages == 0,
                "the steps of a slot but the first begin where those of the first do: fewer in the code that rounds share");
  QN_SMEM(memory);
  const StageOperands operands = operands_of_ring<C>(smem, first_row + u32(earlier));
  const u8* const own = own_scales<C>(first_row, scales_later);
  zero(total);
  int first = 0;
  QN_NO_UNROLL
  do {
    if (first > 0) next_slot(slots);
    const u8* of_b = memory + scales_of_slot<C>(slots);
    multiply_rounds<columns / 2, ScaledOfThread<C>, unrolled>(
        read, min_of(steps - first, kSlotSteps), [&](u32 stage, f32(&sums)[columns / 2]) { multiply_stage<C>(operands, stage, 0, sums); },
        [&](ScaledOfThread<C>& s) { scales_in_slot<C>(of_b, s); },
        [&](u32 stage, ScaledOfThread<C>& s) { scales_of_rows_in<C>(own, stage, s); },
        [&](const ScaledOfThread<C>& s, const f32(&sums)[columns / 2]) { add_scaled<C>(s, sums, total); });
    first += kSlotSteps;
  } while (first < steps);
}
/// The same where two sets of sums are made ahead.
template <ScaledSm90 C>
QN_DEVICE void multiply_with_slots(u32 smem, u32 first_row, i32 earlier, u32 scales_later, int steps, ScaledRead<C>& read,
                                   Consumer<kTileSlots>& slots, f32 (&total)[C.block.tiles.tile_n / 2]) {
  static_assert(has_tile_slots(C));
  constexpr auto L = dense_sm90_smem(C.block);
  constexpr u32 kScales = kScaleBytes<scale_stages(C)>;
  QN_SMEM(memory);
  const u32 stage = smem + read.stage * L.stage;
  StageOperands operands = stage_operands(stage + L.a + (first_row + u32(earlier)) * 128, stage + L.b);
  const auto products = [&](u32 index, f32(&sums)[C.block.tiles.tile_n / 2]) {
    multiply_operands<dtype_t<C.a_dtype>, dtype_t<C.b_dtype>, C.block.tiles.stages, L.stage>(operands, index, sums);
  };
  const u8 *own = own_scales<C>(first_row, scales_later) + read.stage * kScales, *of_b = memory;
  const auto load = [&](u32 index) {
    ScaledOfThread<C> s{};
    scales_of_rows_in<C>(own, 0, s);
    scales_in_slot<C>(of_b, s);
    own += i32(to_next_stage<C.block.tiles.stages>(index, kScales));
    return s;
  };
  zero(total);
  int first = 0;
  QN_NO_UNROLL
  do {
    if (first > 0) next_slot(slots);
    of_b = memory + scales_of_slot<C>(slots);
    walk_stages<C>(read, min_of(steps - first, kSlotSteps), products, load,
                   [&](const ScaledOfThread<C>& s, const f32(&sums)[C.block.tiles.tile_n / 2]) { add_scaled<C>(s, sums, total); });
    first += kSlotSteps;
  } while (first < steps);
}

/// In rounds of the ring, of 128 rows, 64 of them behind the other 64.
template <ScaledSm90 C>
QN_DEVICE void multiply_in_rounds(u32 smem, u32 first_row, i32 earlier, u32 scales_later, int steps, ScaledRead<C>& read,
                                  Consumer<kTileSlots>& slots, f32 (&total)[2][C.block.tiles.tile_n / 2]) {
  static_assert(has_rounds(C) && has_tile_slots(C));
  QN_SMEM(memory);
  const StageOperands operands = operands_of_ring<C>(smem, first_row + u32(earlier));
  const u8 *const own = own_scales<C>(first_row, scales_later), *of_b = memory + scales_of_slot<C>(slots);
  zero(total);
  int left_in_slot = kSlotSteps;
  multiply_rounds_of_halves<C.block.tiles.tile_n / 2, ScaledOfThread<C>>(
      read, steps, [&](u32 stage, u32 half, f32(&sums)[C.block.tiles.tile_n / 2]) { multiply_stage<C>(operands, stage, 64 * half, sums); },
      [&](u32 stage, ScaledOfThread<C>& s) {
        if (left_in_slot == 0) {
          next_slot(slots);
          of_b = memory + scales_of_slot<C>(slots);
          left_in_slot = kSlotSteps;
        }
        --left_in_slot;
        scales_of_rows_in<C>(own, stage, s);
        scales_in_slot<C>(of_b, s);
      },
      [&](const ScaledOfThread<C>& s, const f32(&sums)[C.block.tiles.tile_n / 2], u32 half) { add_scaled<C>(s, sums, total[half], half); });
}
/// The same with scales of all of K.
template <ScaledSm90 C>
QN_DEVICE void multiply_in_rounds(u32 smem, u32 first_row, i32 earlier, int steps, ScaledRead<C>& read,
                                  f32 (&total)[2][C.block.tiles.tile_n / 2]) {
  static_assert(has_rounds(C) && C.column_scales == 1);
  const StageOperands operands = operands_of_ring<C>(smem, first_row + u32(earlier));
  zero(total);
  multiply_rounds_of_halves<C.block.tiles.tile_n / 2, Unscaled>(
      read, steps, [&](u32 stage, u32 half, f32(&sums)[C.block.tiles.tile_n / 2]) { multiply_stage<C>(operands, stage, 64 * half, sums); },
      [](u32, Unscaled&) {},
      [&](const Unscaled&, const f32(&sums)[C.block.tiles.tile_n / 2], u32 half) { add_unscaled(sums, total[half]); });
}

/// total = 64 rows of a tile from first_row on by their scales of all of K, which have come to `stage`.
template <ScaledSm90 C>
QN_DEVICE void scale_tile(u32 stage, u32 first_row, f32 (&total)[kScaledSums<C>], u32 first_column = 0) {
  QN_SMEM(memory);
  const StageScales at = stage_scales(stage, kScaleBytes<scale_stages(C)>, scales_of_rows<C>(first_row), scale_of_column<C>(first_column));
  const ScaledOfThread<C> s = scales_of_thread<C>(at);
  QN_UNROLL
  for (int i = 0; i < kScaledSums<C>; i += 4) {
    f32 of_b[2];
    two_scales_at<scale_stages(C)>(memory, at.first + 4 * u32(C.block.tiles.tile_m + 2 * i) + ptx::lane_id() % 4 * 8, of_b);
    QN_UNROLL
    for (int j = 0; j < 4; ++j) total[i + j] = total[i + j] * (s.a[j / 2] * of_b[j % 2]);
  }
}

}  // namespace quern::gemm
