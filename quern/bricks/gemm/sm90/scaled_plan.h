// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What plans of scaled products on Hopper share.
#pragma once
#include "quern/bricks/gemm/sm90/plan.h"
#include "quern/bricks/gemm/sm90/scaled_spec.h"

namespace quern::gemm {

/// Tiles of scaled products: 64 rows of more than 192 columns are more sums than a thread has registers for twice. The wide ones load less for their
/// products; that of 128 columns scales the products of a stage while those of the next are in the tensor cores. Costs are those of an H100 at
/// m = 4096 and the six (n, k) of the README, and 8192^3, beside 192 columns: of 128 columns 1.04 to 1.12, of pairs, which read less of b from the L2, 0.96 to 1.01, of 256 rows 0.97 to 1.03, of 176 columns 1.02 to 1.06 and more
/// for their stores, which are the lanes' (with c or results of f32 all tiles' are). Which is the fastest follows from the multiprocessors that idle in the last round (README).
/// Of 256 rows, for results of 16 bits and no c: 128 of each warpgroup, whose sums leave no room for a second set of products.
constexpr Sm90Tile kScaledSm90Tiles[] = {{192, 4, 1}, {.n = 192, .stages = 4, .cost = 0.99, .pair = true}, {128, 6, 1.05}, {128, 3, 1.015, false, 256}, {.n = 176, .stages = 5, .cost = 1.035, .store = 130},
                                         {.n = 160, .stages = 5, .cost = 1.05, .store = 130}, {.n = 144, .stages = 6, .cost = 1.07, .store = 130}, {.n = 112, .stages = 6, .cost = 1.1, .store = 130}, {.n = 96, .stages = 6, .cost = 1.15, .store = 130}};
/// The same, in the same order, with scales of all of K: of 128 columns 0.98 to 1.13, the more the longer K is, of 256 rows 1.00 to 1.03, of 176 columns 1.01 to 1.03; of pairs, beside cuBLASLt on an H200, 0.97 to 1.01.
constexpr Sm90Tile kScaledOnceSm90Tiles[] = {{192, 4, 1}, {.n = 192, .stages = 4, .cost = 0.99, .pair = true}, {128, 6, 1.04}, {128, 4, 1.005, false, 256}, {.n = 176, .stages = 5, .cost = 1.02, .store = 130},
                                             {.n = 160, .stages = 5, .cost = 1.05, .store = 130}, {.n = 144, .stages = 6, .cost = 1.07, .store = 130}, {.n = 112, .stages = 6, .cost = 1.1, .store = 130}, {.n = 96, .stages = 6, .cost = 1.15, .store = 130}};
/// gemm.scaled's of swap_ab_sm90 for more than 128 rows: m rows of a at most. Of 128 columns 96 and 128 rows spill 8 and 1776 bytes, as there are two sets of sums.
constexpr Sm90Tile kScaledSwappedTiles[] = {{.n = 64, .stages = 16, .cost = 1, .m = 64, .blocks = 2}, {.n = 64, .stages = 16, .cost = 1, .m = 96}, {.n = 64, .stages = 16, .cost = 1, .m = 128}, {.n = 128, .stages = 16, .cost = 1, .m = 80}};
/// Its of narrow_sm90.
constexpr Sm90Tile kScaledNarrowTiles[] = {{.n = 48, .stages = 16, .cost = 1.3, .m = 64}, {.n = 64, .stages = 16, .cost = 1.2, .m = 64}, {.n = 80, .stages = 16, .cost = 1.1, .m = 64}, {.n = 96, .stages = 16, .cost = 1, .m = 64}, {.n = 128, .stages = 16, .cost = 1, .m = 64},
                                           {.n = 192, .stages = 16, .cost = 1, .m = 64}, {.n = 64, .stages = 16, .cost = 1, .m = 128}, {.n = 80, .stages = 16, .cost = 1, .m = 128}, {.n = 96, .stages = 16, .cost = 1, .m = 128}};
/// With a scale of each row of b for each stage.
constexpr Sm90Tile kColumnScaledSm90Tiles[] = {{128, 6, 1}};

inline TilesSm90& tiles_of(ScaledSm90Config& c) { return c.product.block.tiles; }

/// Of scales of a [rows, ceil(k / 128)], or of groups of them; unused where they do not lie so.
ScaleBoxes scale_boxes(const TensorView& scales, i64 rows, i64 k, Device& device);

/// swapped_tile(), for two sets of sums: up to 64 rows two blocks share a multiprocessor, so that one multiplies while the other scales.
SwapAbShape scaled_swapped_tile(i64 m, i64 n, const DeviceInfo& device);

}  // namespace quern::gemm
