// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::gemm {

/// The multiple of rows at which groups may always begin: the default of GroupedContiguousArgs::alignment. It is not the height of a
/// tile, so a larger one gains nothing.
constexpr i32 kGroupedAlignment = 16;
QN_API i32 grouped_alignment();

struct GroupedContiguousArgs {
  TensorView out;  ///< [m, n] bf16, f16 or f32
  TensorView a;    ///< [m, k] bf16, f16, e4m3 or e5m2
  TensorView b;  ///< [groups, n, k] the dtype of a, strides {any, any, 1} (K-major), with 16 bits also {any, 1, any} (N-major); of 8 bits:
                 ///< e4m3 or e5m2, whichever a has
  TensorView scales_a;      ///< f32 [m, ceil(k / 128)], any strides; with 8 bits, and only then
  TensorView scales_b;      ///< f32 [groups, ceil(n / 128), ceil(k / 128)], any strides; with 8 bits, and only then
  TensorView group_of_row;  ///< [m] i32: the group of each row; -1: none
  TensorView group_ends;    ///< [groups] i32: group g has the rows from group_ends[g - 1], rounded up to `alignment`, to group_ends[g]
  TensorView m_indptr;      ///< [groups + 1] i32: group g has the rows from m_indptr[g] to m_indptr[g + 1], of any alignment
  i32 alignment = kGroupedAlignment;  ///< of group_of_row and group_ends: each group begins at a multiple of it; at least 1
};

/// out[i, j] = sum_x a[i, x] * b[g, j, x] for the rows i of each group g, in f32, rounded once; with 8 bits
/// sum_x scales_a[i, x / 128] * scales_b[g, j / 128, x / 128] * a[i, x] * b[g, j, x].
/// Exactly one of group_of_row, group_ends and m_indptr says which rows a group has. They lie on the device and are read there: the call
/// can be captured in a graph and replayed with others. A row of no group is not written.
/// group_of_row: a group's rows follow each other, the first at a multiple of `alignment`; behind the last, -1 up to the next multiple.
/// Contents that break the rules are reported by checked emulated devices, and never lead out of bounds: of group_of_row, entries outside
/// [0, groups) are as -1, and of a group that begins twice the first part counts; entries of group_ends and m_indptr are cut to [0, m], and
/// one that is below an earlier one counts as that one. Any m, n, k, groups >= 0 (m < 2^31, groups < 2^29; k = 0 gives zeros) and any
/// strides and alignments of rows. Results are the same on every run, and a row's bits depend on no other row. With RunOptions::pdl, b and
/// its scales may be read while the kernel before in the stream may still run: they must be nothing that it writes. With group_of_row the
/// workspace holds the rows of each group: while a graph is captured, RunOptions::workspace gives it. Throws Error.
QN_API void grouped_contiguous(const GroupedContiguousArgs& args, const RunOptions& options = {});

}  // namespace quern::gemm
