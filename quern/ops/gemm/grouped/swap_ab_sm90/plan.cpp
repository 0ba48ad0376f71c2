// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/gemm/grouped/sm90.h"

namespace quern::gemm {

static const jit::Kernel<SwapAbConfig, GroupedSm90Params> swap_ab{"quern/ops/gemm/grouped/swap_ab_sm90/kernel.cuh", "grouped_swap_ab_sm90"};
static const jit::Kernel<ScaledSwapAbConfig, GroupedScaledSm90Params> scaled_swap_ab{
    "quern/ops/gemm/grouped/swap_ab_sm90/scaled_kernel.cuh", "grouped_scaled_swap_ab_sm90"};

/// Rows of a group up to which its b takes longer to come than tiles of so many rows take to be multiplied. In scaled kernels a thread has
/// two sets of sums, and two blocks share the registers.
template <class Args>
static i64 most_swapped_rows(const Problem& p) {
  return is_scaled<Args>(p) ? 32 : 64;
}

template <class Args>
static Rejection slower(const Problem& p, const DeviceInfo&) {
  const i64 rows = sizes_of<Args>(p).expected;
  if (rows > most_swapped_rows<Args>(p)) return {"rows of a group", rows, "at most {}", most_swapped_rows<Args>(p)};
  return {};
}

template <class Args>
static Plan plan(const Problem& p, const DeviceInfo& device) {
  const GroupedSizes s = sizes_of<Args>(p);
  Plan plan;
  const auto [choice, pdl] = add_spans<Args>(plan, p, device);
  // b's of all groups stream side by side, so the tile is that for one as wide as all of them
  const i64 rows = min_of(s.expected, most_swapped_rows<Args>(p)), columns = s.groups * s.n;
  const auto grid = [&, pdl = pdl](const SwapAbShape& shape, i32 smem) {
    return Grid{.x = max_of<i64>(1, min_of<i64>(i64(shape.min_blocks) * device.sms, most_tiles(s, shape.tiles.tile_m, shape.tiles.tile_n))),
                .smem = smem,
                .pdl = pdl};
  };
  const auto ending = ending_of<Args>(p);
  if (is_scaled<Args>(p)) {
    const SwapAbShape shape = scaled_swapped_tile(rows, columns, device);
    const ScaledSwapAb product{p.dtype(&Args::a), p.dtype(&Args::b), {ending, shape.tiles}, 0};
    plan.launch<scaled_params<Args, ScaledSwapAbConfig>>(scaled_swap_ab, {product, swap_ab_threads(shape.tiles, 1), shape.min_blocks},
                                                         grid(shape, scaled_swap_bytes(shape.tiles)), choice);
  } else {
    SwapAbShape shape = swapped_tile(rows, columns, device);
    shape.tiles.b_major = major_of(p.tensor(&Args::b));
    plan.launch<dense_params<Args, SwapAbConfig>>(swap_ab, {{ending, shape.tiles}, swap_ab_threads(shape.tiles), shape.min_blocks},
                                                  grid(shape, dense_swap_smem(shape.tiles).bytes), choice);
  }
  return plan;
}

static const JoinVariant contiguous("gemm.grouped_contiguous", 20,
                                    {"swap_ab_sm90", rejects_grouped_sm90<GroupedContiguousArgs>, plan<GroupedContiguousArgs>,
                                     slower<GroupedContiguousArgs>});
static const JoinVariant masked("gemm.grouped_masked", 20,
                                {"swap_ab_sm90", rejects_grouped_sm90<GroupedMaskedArgs>, plan<GroupedMaskedArgs>,
                                 slower<GroupedMaskedArgs>});

}  // namespace quern::gemm
