// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::quant {

struct PerTokenArgs {
  TensorView q;                  ///< [m, k] e4m3, e5m2 or i8
  TensorView scales;             ///< [m, 1] f32, any strides, as gemm.scaled reads them
  TensorView x;                  ///< [m, k] bf16, f16 or f32
  TensorView scale_upper_bound;  ///< [1] f32, positive: a larger amax counts as this; absent: none does
  float amax_floor = 1e-4f;      ///< least largest magnitude of a row, from 1e-30 to 1e30
};

/// Each row gets a scale of its own.
///   scales[i] = max(min(amax, scale_upper_bound), amax_floor) / largest, amax the largest |x| of row i, largest 448 (e4m3), 57344 (e5m2)
///   or 127 (i8) q[i, j] = x[i, j] * (1 / scales[i]), rounded to nearest even and cut to +-largest
/// Each division and the product are rounded to f32. A row of zeros, or of no columns, has the scale amax_floor / largest; a NaN makes its
/// row's scale and all of its q NaN; an infinity makes the scale infinite, q NaN there and 0 elsewhere, or, with scale_upper_bound, is cut.
/// In i8 a q that would be NaN is 0. Rows may be strided; a row's bits do not depend on the others. Throws Error.
QN_API void per_token(const PerTokenArgs& args, const RunOptions& options = {});

}  // namespace quern::quant
