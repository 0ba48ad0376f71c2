// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::quant {

struct PerTensorArgs {
  TensorView q;              ///< [m, k] e4m3, e5m2 or i8
  TensorView scale;          ///< [1] f32: the scale of q
  TensorView x;              ///< [m, k] bf16, f16 or f32
  TensorView static_scale;   ///< [1] f32, positive; absent: the scale follows from x
  float amax_floor = 1e-4f;  ///< least largest magnitude of x, from 1e-30 to 1e30
};

/// One scale for the whole tensor.
///   scale = static_scale, or max(amax, amax_floor) / largest, amax the largest |x|, largest 448 (e4m3), 57344 (e5m2) or 127 (i8)
///   q[i, j] = x[i, j] * (1 / scale), rounded to nearest even; beyond +-largest it saturates, infinities too
/// Each division and the product are rounded to f32. Without static_scale x is read twice, and a NaN in it makes the scale and all of q
/// NaN, an infinity the scale infinite, q NaN there and 0 elsewhere; with it, only the q of a NaN is NaN. In i8 a q that would be NaN is 0.
/// The same bits on every run. Throws Error.
QN_API void per_tensor(const PerTensorArgs& args, const RunOptions& options = {});

}  // namespace quern::quant
