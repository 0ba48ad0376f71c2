// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::quant {

struct DequantiseFp4Args {
  TensorView out;           ///< [m, 2 * pairs] bf16, f16 or f32
  TensorView x;             ///< [m, pairs] u8: elements 2 j and 2 j + 1 in the low and the high four bits of byte j
  TensorView scales;        ///< [m, ceil(2 * pairs / group_size)] e4m3 (NVFP4), or u8 that holds E8M0 (MXFP4); any strides
  TensorView global_scale;  ///< [1] f32, a factor of all; absent: 1
  i32 group_size = 16;      ///< columns that share a scale: 16 of NVFP4, 32 of MXFP4
};

/// out[i, j] = e2m1(x[i, j]) * scales[i, j / group_size] * global_scale
/// Four bits are a sign and one of 0, 0.5, 1, 1.5, 2, 3, 4, 6. The product with the scale and that with global_scale are each rounded to
/// f32 (the first is exact but beyond 2^128), then the result to out's dtype; beyond the range of f16 it is infinite. E8M0: the byte e is
/// 2^(e - 127), 255 is NaN. A scale that is NaN makes its group NaN. Throws Error.
QN_API void dequantise_fp4(const DequantiseFp4Args& args, const RunOptions& options = {});

}  // namespace quern::quant
