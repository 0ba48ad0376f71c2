// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Shared by the two norms' host sides: how a row is laid over threads.
#pragma once
#include "quern/op/schema.h"
#include "quern/ops/norm/norm_row/spec.h"

namespace quern::norm {

/// Config of the row kernel: from dtype, alignment class and the bucket of hidden alone, so a row's bits do not depend on how
/// many rows there are.
NormRowConfig norm_row_config(DType dtype, i32 vector, i64 hidden, bool add_residual, bool groups = false);
/// Blocks: enough to fill the device once, each of which walks over its rows; of a long list of rows more.
i64 norm_row_blocks(const NormRowConfig& config, i64 tokens, const DeviceInfo& device);
/// eps of the norms: others can only give NaN or zeros.
template <class Args> Rejection eps_fits(const Problem& p) {
  const float eps = p.attr(&Args::eps);
  return eps >= 0 && eps <= 1e30f ? Rejection{} : Rejection{"eps", eps, "a number from 0 to 1e30", 0};
}
/// One rounding of the result; the f32 sum of squares and the approximate rsqrt (2^-22.4) stay below 2^-19.
Budget norm_row_budget(const Problem& problem);
extern const jit::Kernel<NormRowConfig, NormRowParams> norm_row_kernel;
extern const jit::Kernel<NormRowConfig, NormRowGroupsParams> norm_row_groups_kernel;

}  // namespace quern::norm
