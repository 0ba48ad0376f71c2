// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What the variants of gemm.grouped_contiguous and gemm.grouped_masked for Hopper share; `Args` is either's.
#pragma once
#include "quern/op/variants.h"
#include "quern/ops/gemm/grouped/plan.h"

namespace quern::gemm {

/// Rows from a matrix of an operand to the next, where they follow one another and one map has the rows of all: what a box reads behind the
/// last row of a matrix are the next one's then, whose results are not stored. TMA takes 1.6 % less of contiguous 8 bits, 128 x 192
/// (cycles, H200) with two dimensions than with three. 0: they do not.
i32 rows_to_next(const TensorView& operand);
/// Map of an operand of matrices (rank 3) or of one matrix: boxes of `box` rows, 128 bytes of each. The L2 fetches `fetched` bytes for a
/// miss.
TensorMapSpec grouped_operand(const TensorView& operand, i32 box, i32 fetched);
/// Map of a b whose memory is [groups, k, n], for tiles of `rows` rows. Groups are a dimension of their own: what a box reads behind the
/// last k of a group has to be zero.
TensorMapSpec grouped_n_major(const TensorView& b, i32 rows);

/// Nothing follows the sums.
template <class Args>
Ending ending_of(const Problem& p) {
  return {is_scaled<Args>(p) ? DType::bf16 : p.dtype(&Args::a), p.dtype(&Args::out), 0, i32(Activation::none)};
}

/// Whether the operands are what tensor maps and whole 16-byte stores take, and tiles can be counted.
template <class Args>
Rejection rejects_grouped_sm90(const Problem& problem, const DeviceInfo& device);

template <class Args>
GroupedSm90Params sm90_params(const Call<Args, GroupedChoice>& c, i32 box_a, i32 box_b, i32 fetched) {
  const Args& a = c.args;
  const bool n_major = c.problem.tensor(&Args::b).transposed;
  return {.a = c.device.make_tensor_map(grouped_operand(a.a, box_a, fetched)),
          .b = c.device.make_tensor_map(n_major ? grouped_n_major(a.b, box_b) : grouped_operand(a.b, box_b, fetched)),
          .rows = rows_of(c),
          .out = a.out.data,
          .out_stride = strides_of(a.out).row,
          .out_group = strides_of(a.out).group,
          .n = i32(c.problem[Axis::n]),
          .k = i32(c.problem[Axis::k]),
          .a_rows = rows_to_next(a.a),
          .b_rows = n_major ? 0 : rows_to_next(a.b)};
}
inline const BlockSm90& block_of(const TilesSm90Config& c) { return c.block; }
inline const BlockSm90& block_of(const ScaledSm90Config& c) { return c.product.block; }
inline const SwapAbBlock& block_of(const SwapAbConfig& c) { return c.block; }
inline const SwapAbBlock& block_of(const ScaledSwapAbConfig& c) { return c.product.block; }
template <class Args, class Config>
GroupedSm90Params dense_params(const Call<Args, GroupedChoice>& c) {
  const auto& block = block_of(c.template config<Config>());
  constexpr bool kSwapped = std::is_same_v<decltype(block), const SwapAbBlock&>;
  i32 box_b = block.tiles.tile_n;
  if constexpr (!kSwapped) box_b /= pair_blocks(block.tiles);
  // 8 bits, masked, 1 group of 866 rows and 4 of 267: 1.5 and 1 % less with 256; contiguous the same
  const i32 fetched = std::is_same_v<Config, ScaledSm90Config> ? 256 : 128;
  GroupedSm90Params with = sm90_params(c, block.tiles.tile_m, box_b, fetched);
  if constexpr (!kSwapped) {
    if (block.tiles.tail != 0) with.b_tail = c.device.make_tensor_map(grouped_operand(c.args.b, block.tiles.tail, fetched));
    if (dense_sm90_stores_boxes(block)) with.results = c.device.make_tensor_map(sm90_results(c.args.out, block));
  }
  return with;
}
template <class Args, class Config>
GroupedScaledSm90Params scaled_params(const Call<Args, GroupedChoice>& c) {
  GroupedScaledSm90Params with{.gemm = dense_params<Args, Config>(c),
                               .scales_a = scales_of_first(c.args.scales_a, kScaleARow),
                               .scales_b = scales_of_first(c.args.scales_b, kScaleABlock),
                               .scales_a_group = strides_of(c.args.scales_a).group,
                               .scales_b_group = strides_of(c.args.scales_b).group};
  if constexpr (std::is_same_v<Config, ScaledSm90Config>) {
    const ScaledSm90& product = c.template config<Config>().product;
    if (has_tile_slots(product)) with.boxes = scale_boxes(c.args.scales_a, sizes_of<Args>(c.problem).rows, c.problem[Axis::k], c.device);
  }
  return with;
}

}  // namespace quern::gemm
