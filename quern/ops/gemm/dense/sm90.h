// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/bricks/gemm/sm90/many_rows.h"
#include "quern/op/variants.h"
#include "quern/ops/gemm/dense.h"

namespace quern::gemm {

// What the variants for Hopper share.

/// Whether the operands are what tensor maps and whole 16-byte stores take.
Rejection rejects_sm90_operands(const Problem& problem, const DeviceInfo& device);
/// Whether an M-major a is better left to a kernel that takes any alignment. The alignment of such an a depends on m. So with
/// batch_invariant a row would meet one kernel or another, depending on m.
Rejection slower_m_major(const Problem& problem);
/// The kernels for more than 128 rows: kDenseSm90Tiles, then kDenseSwappedTiles.
std::span<const Sm90Kernel> dense_many_rows_kernels();
/// What the estimate reads of a problem.
Sm90Product dense_product_of(const Problem& problem);
/// Time in ns of one of them by estimate, 1e300 where it cannot.
double dense_many_rows_ns(const Problem& problem, const Sm90Kernel& kernel, i32 parts, const DeviceInfo& device);
/// Of the kernels that the weight has (kernels_of_weight()) the one with the least time, and its parts of K. With batch_invariant these are
/// invariant_parts().
ManyRowsChoice choose_dense_many_rows(const Problem& problem, const DeviceInfo& device);
/// Whether swap_ab_sm90 makes gemm.dense of so many rows: up to 128, or where such a tile is chosen.
bool takes_swapped(const Problem& problem, const DeviceInfo& device);
/// Whether a block of such tiles can sum parts of K one after another: a second set of sums, up to 96 registers, beside those of half of
/// the rows.
constexpr i32 kMostFolded = 192;
constexpr bool takes_parts(const Sm90Tile& tile) { return !tile.alternate && !tile.swapped && tile.n <= kMostFolded; }
/// Whether b can be in tiles of so many columns: an N-major one comes in whole boxes; and a in swapped tiles of so many rows.
bool takes_columns(const Problem& problem, const Sm90Tile& tile);
bool takes_swapped_rows(const Problem& problem, const Sm90Tile& tile);
/// Parts of K with RunOptions::batch_invariant: from n and k alone, as swapped_splits() gives for 64 rows on kSm90Sms multiprocessors.
i32 invariant_parts(const Problem& problem, const DeviceInfo& device);
/// How many tiles along m warp_specialised_sm90 takes before it goes on along n, as a power of two. Such a group of tiles reads b from
/// memory once. The rule is eight tiles.
/// * Short K and wide tiles: up to 32 tiles, with up to 12 MB of a. To read b again takes a good part of the products' time there. On an
///   H100 32 tiles are 2 to 10 % faster than 8 for k = 256 to 1536 and n of 16384 or more, and within 2 % for n = 8192; on an H200 1 %
///   faster, and within 1.6 % for smaller n.
/// * Longer K: the rows of a leave the L2 before they are read again (8192^3: 7 % slower).
/// * Narrower tiles ask the L2 for more. They take up to 20 % longer, because the multiprocessors of a GPC then share less (README).
i32 sm90_group_log2(i64 m, i64 k, i32 tile_n);
/// Parameters for tiles of a as its map has them and of `rows_b` rows of b.
DenseSm90Params sm90_params(const Call<DenseArgs>& call, const TensorMapSpec& a, i32 rows_b, i32 parts, i32 chunks = 1);

}  // namespace quern::gemm
