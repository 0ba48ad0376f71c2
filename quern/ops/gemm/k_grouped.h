// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::gemm {

struct KGroupedArgs {
  TensorView out;       ///< [groups, m, n] f32; or the dtype of a, with 8 bits bf16
  TensorView a;         ///< [m, k] bf16, f16, e4m3 or e5m2; strides {any, 1} (K-major), with 16 bits also {1, any} (M-major)
  TensorView b;         ///< [n, k] the dtype of a, of 8 bits: e4m3 or e5m2, whichever a has; strides likewise
  TensorView scales_a;  ///< f32 [m, ceil(k / 128)], any strides; with 8 bits, and only then
  TensorView scales_b;  ///< f32 [n, ceil(k / 128)], any strides; with 8 bits, and only then
  TensorView k_indptr;  ///< [groups + 1] i32: group g has the columns from k_indptr[g] to k_indptr[g + 1]
  TensorView k_sizes;   ///< [groups] i32: the number of columns of each group; the first group begins at column 0
  TensorView c;         ///< [groups, m, n] a dtype that out may have; may be out itself; absent: none
  i32 alignment = 1;    ///< each group begins at a multiple of it; with 8 bits of 128 as well; at least 1
  bool packed = false;  ///< a's memory is [m, columns] of group 0, dense, then that of group 1, ..; b's likewise; with 8 bits only
};

/// out[g, i, j] = c[g, i, j] + the sum of a[i, x] * b[j, x] over the columns x of group g, in f32, rounded once; with 8 bits of
/// scales_a[i, x / 128] * scales_b[j, x / 128] * a[i, x] * b[j, x]: the gradients of the weights of an MoE's experts.
/// Exactly one of k_indptr and k_sizes says which columns a group has. They lie on the device and are read there: the call can be captured
/// in a graph and replayed with others. A group without columns has c, or zeros. Columns of no group, and those of other groups, do not
/// matter to a group, whatever they hold.
/// Contents that break the rules are reported by checked emulated devices, and never lead out of bounds: entries are cut to [0, k] (sizes,
/// their sums too), a bound that is below an earlier one counts as that one, and then each bound below k is rounded down to a multiple of
/// `alignment`, with 8 bits the next multiple of 128 from there on. `packed`: a and b are contiguous views of the memory. The columns
/// before the first group take m (of b: n) elements each, those behind the last likewise. Any m, n, groups, k >= 0 (k < 2^31, groups <
/// 2^24) and any row and matrix strides and alignments. With c the same memory as out, of its dtype and strides, the product is added to
/// out; else they must not overlap. Results are the same on every run. The workspace holds which columns each group has: while a graph is
/// captured, RunOptions::workspace gives it. Throws Error.
QN_API void k_grouped(const KGroupedArgs& args, const RunOptions& options = {});

}  // namespace quern::gemm
