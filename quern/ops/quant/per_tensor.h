// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::quant {

struct PerTensorArgs {
  TensorView q;             ///< [m, k] e4m3 or e5m2
  TensorView scale;         ///< [1] f32: the scale of q
  TensorView x;             ///< [m, k] bf16, f16 or f32
  TensorView static_scale;  ///< [1] f32, positive; absent: the scale follows from x
};

/// One scale for the whole tensor.
///   scale = static_scale, or max(amax, 1e-4) / largest, amax the largest |x|, largest 448 (e4m3) or 57344 (e5m2)
///   q[i, j] = x[i, j] * (1 / scale), rounded to nearest even; beyond `largest` it saturates, infinities too
/// Each division and the product are rounded to f32. Without static_scale x is read twice, and a NaN in it makes the scale and all of q
/// NaN, an infinity the scale infinite, q NaN there and 0 elsewhere; with it, only the q of a NaN is NaN. The same bits on every run. Throws Error.
QN_API void per_tensor(const PerTensorArgs& args, const RunOptions& options = {});

}  // namespace quern::quant
