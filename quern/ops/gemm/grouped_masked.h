// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::gemm {

struct GroupedMaskedArgs {
  TensorView out;  ///< [groups, max_m, n] bf16, f16 or f32
  TensorView a;    ///< [groups, max_m, k] bf16, f16, e4m3 or e5m2
  TensorView b;  ///< [groups, n, k] the dtype of a, strides {any, any, 1} (K-major), with 16 bits also {any, 1, any} (N-major); of 8 bits:
                 ///< e4m3 or e5m2, whichever a has
  TensorView scales_a;  ///< f32 [groups, max_m, ceil(k / 128)], any strides; with 8 bits, and only then
  TensorView scales_b;  ///< f32 [groups, ceil(n / 128), ceil(k / 128)], any strides; with 8 bits, and only then
  TensorView masked_m;  ///< [groups] i32: rows of each group
  i32 expected_m = 0;   ///< rows that a group has on average; it chooses the plan, and never the result of a variant; 0: not known
};

/// out[g, i, j] = sum_x a[g, i, x] * b[g, j, x] for i < masked_m[g], in f32, rounded once; with 8 bits
/// sum_x scales_a[g, i, x / 128] * scales_b[g, j / 128, x / 128] * a[g, i, x] * b[g, j, x].
/// masked_m lies on the device and is read there: the call can be captured in a graph and replayed with others. Rows from masked_m[g] on
/// are not written, and what they hold in a does not matter. Entries are cut to [0, max_m];
/// checked emulated devices report those outside.
/// Any max_m, n, k, groups >= 0 (groups < 2^29, groups * max_m < 2^31; k = 0 gives zeros) and any strides and alignments of rows. Results
/// are the same on every run, and a row's bits depend on no other row. With RunOptions::pdl, b and its scales may be read while the kernel
/// before in the stream may still run: they must be nothing that it writes. Throws Error.
QN_API void grouped_masked(const GroupedMaskedArgs& args, const RunOptions& options = {});

}  // namespace quern::gemm
