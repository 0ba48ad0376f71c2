// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::gemm {

struct DenseArgs {
  TensorView out;   ///< [m, n] f32, or the dtype of a
  TensorView a;     ///< [m, k] bf16 or f16, strides {any, 1} (K-major) or {1, any} (M-major)
  TensorView b;     ///< [n, k] the dtype of a, strides {any, 1}, as frameworks store a weight, or {1, any} (N-major)
  TensorView bias;  ///< [n] f32 or the dtype of a; absent: none
  TensorView c;     ///< [m, n] f32 or the dtype of a; may be out itself; absent: none
  Activation activation = Activation::none;
};

/// out[i, j] = activation(sum_x a[i, x] * b[j, x] + bias[j] + c[i, j]), in f32, rounded once.
/// relu: max(x, 0); silu: x / (1 + exp(-x)); gelu: x (1 + erf(x / sqrt 2)) / 2, which is what torch and the engines mean by the
/// plain name, not the approximation by tanh. Errors of the last two are below 8 * 2^-24 of |x|.
/// BLAS's layouts by strides: nt is a and b K-major, nn b N-major, tt a M-major, tn both; a variant gives each that it takes the same bits.
/// Which variant a call meets follows from its shape, layout and whether dense rows start at multiples of 16 bytes (the kernels on Hopper
/// are for these). Rows may be strided; m, n, k are arbitrary (k = 0 leaves bias and c, or zeros). With c the same memory as out, of its
/// dtype and strides, the product is added to out; else they must not overlap. Results are the same on every run; with
/// RunOptions::batch_invariant a row's bits depend neither on the other rows nor on how many there are (of one layout and
/// alignment to 16 bytes; a single row is K-major).
/// With RunOptions::pdl, b is read while kernels before in the stream may still run: it must be nothing that they write.
/// The workspace holds partial sums where K is split by the portable kernel. Throws Error.
QN_API void dense(const DenseArgs& args, const RunOptions& options = {});

}  // namespace quern::gemm
