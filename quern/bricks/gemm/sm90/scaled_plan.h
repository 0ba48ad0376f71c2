// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What plans of scaled products on Hopper share.
#pragma once
#include "quern/bricks/gemm/sm90/plan.h"
#include "quern/bricks/gemm/sm90/scaled_spec.h"

namespace quern::gemm {

/// Tiles of scaled products: 64 rows of more than 192 columns are more sums than a thread has registers for twice. The wide ones load less
/// for their products; that of 128 columns scales the products of a stage while those of the next are in the tensor cores; pairs read less
/// of b from the L2. Of up to 176 columns but 128 the lanes store results, with c or results of f32 of all. Of 256 rows, for results of 16
/// bits and no c: 128 of each warpgroup, whose sums leave no room for a second set of products. Costs are an H200's (README).
constexpr Sm90Tile kScaledSm90Tiles[] = {{192, 4, 0.965}, {.n = 192, .stages = 4, .cost = 0.958, .pair = true},
                                         {128, 6, 1.04},  {128, 3, 1, false, 256},
                                         {176, 5, 1.043}, {160, 5, 1.01},
                                         {144, 6, 1.09}};
/// The same, in the same order, with scales of all of K, beside them: of 128 columns and of 256 rows 0.99, of 176 columns and fewer 0.985
/// (an H100, m = 4096).
constexpr Sm90Tile kScaledOnceSm90Tiles[] = {{192, 4, 0.965}, {.n = 192, .stages = 4, .cost = 0.958, .pair = true},
                                             {128, 6, 1.03},  {128, 4, 0.99, false, 256},
                                             {176, 5, 1.027}, {160, 5, 0.995},
                                             {144, 6, 1.074}};
/// gemm.scaled's of swap_ab_sm90 for more than 128 rows: m rows of a at most.
constexpr Sm90Tile kScaledSwappedTiles[] = {{.n = 64, .stages = 16, .cost = 1.394, .m = 64, .blocks = 2},
                                            {.n = 64, .stages = 16, .cost = 1.131, .m = 128}};
/// Its of narrow_sm90.
constexpr Sm90Tile kScaledNarrowTiles[] = {{.n = 48, .stages = 16, .cost = 1.752, .m = 64},
                                           {.n = 64, .stages = 16, .cost = 1.27, .m = 64},
                                           {.n = 96, .stages = 16, .cost = 1.107, .m = 64},
                                           {.n = 128, .stages = 16, .cost = 1.026, .m = 64},
                                           {.n = 192, .stages = 16, .cost = 0.876, .m = 64}};
/// With a scale of each row of b for each stage.
constexpr Sm90Tile kColumnScaledSm90Tiles[] = {{128, 6, 1}};

inline TilesSm90& tiles_of(ScaledSm90Config& c) { return c.product.block.tiles; }

/// Of scales of a [rows, ceil(k / 128)], or of groups of them; unused where they do not lie so.
ScaleBoxes scale_boxes(const TensorView& scales, i64 rows, i64 k, Device& device);

/// swapped_tile(), for two sets of sums: up to 64 rows two blocks share a multiprocessor, so that one multiplies while the other scales.
SwapAbShape scaled_swapped_tile(i64 m, i64 n, const DeviceInfo& device);

}  // namespace quern::gemm
