// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/bricks/gemm/sm90/plan.h"
#include "quern/op/variants.h"
#include "quern/ops/gemm/dense.h"

namespace quern::gemm {

// What the variants for Hopper share.

/// Whether the operands are what tensor maps and whole 16-byte stores take.
Rejection rejects_sm90_operands(const Problem& problem, const DeviceInfo& device);
/// Whether an a that is M-major is better left to a kernel that takes any alignment: it depends on m, so with batch_invariant it would depend
/// on m which kernel a row meets.
Rejection slower_m_major(const Problem& problem);
/// Whether swap_ab_sm90 makes gemm.dense of so many rows: up to 128, or while each of its tiles of 128 x 64 has a multiprocessor, K being in one part. (2112, 7168), m = 512, 132 of them: 23.4 us and 28.9 of warp_specialised_sm90 (an H100).
bool takes_swapped(const Problem& problem);
/// Parts of K with RunOptions::batch_invariant: from n and k alone, as swapped_splits() gives for 64 rows on kSm90Sms multiprocessors.
i32 invariant_parts(const Problem& problem, const DeviceInfo& device);
/// Of the tiles along m, as a power of two, that warp_specialised_sm90 takes before the next ones along n: eight. Each group of them reads b from memory again, which of short K takes a good part of the products' time: there up to
/// 32, with up to 12 MB of a. One H100, m = 4096, 8192, 32 beside 8: k = 256, 512, 768, 1024, 1536 5 to 10, 5 to 6, 2 to 3, 2, 2 % faster where n is 16384 or more, with n = 8192 1 % faster to 2 slower; an H200 1 % faster, and of 62 smaller n 1.6 % faster to 1.6 slower, k = 256 1 slower. With longer K a's rows leave the
/// L2 (8192^3 7 % slower), and narrower tiles, which ask the L2 for more, take up to 20 % longer, as the multiprocessors of a GPC then share less (README).
i32 sm90_group_log2(i64 m, i64 k, i32 tile_n);
/// Parameters for tiles of a as its map has them and of `rows_b` rows of b.
DenseSm90Params sm90_params(const Call<DenseArgs>& call, const TensorMapSpec& a, i32 rows_b, i32 parts, i32 chunks = 1);

}  // namespace quern::gemm
