// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The kernel of norms in all the forms that norm_row does not have: layer_norm, a weight of another dtype, with a bias or none, heads of
// tokens, FP8 results with one scale or a scale a token.
#pragma once
#include "quern/bricks/rows/spec.h"

namespace quern::norm {

/// Where the scales of an FP8 result come from. The values enter compile keys.
enum class Fp8Scales : i32 {
  none,    ///< the result is no FP8
  tensor,  ///< one, given
  token,   ///< one a row, computed
  group,   ///< one for each 128 columns of a row, computed
};

/// The weight that a result is multiplied by. The values enter compile keys.
enum class Weight : i32 { none, plain, biased };

struct NormFormConfig {
  DType dtype;         // of x and residual
  DType weight_dtype;  // of the weight and the bias
  DType out_dtype;
  i32 centred;       // 1: layer_norm
  i32 add_residual;  // 1: x += residual first, and the sum is stored into residual
  Weight weight;
  i32 bias;  // 1: a bias is added
  Fp8Scales scales;
  i32 heads;  // 1: rows are heads of tokens, with a stride of their own
  rows::RowUnits units;
  i32 threads;
};

struct NormFormParams {
  const void* x;                              // [tokens, hidden] or [tokens, heads, hidden]
  const void* weight;                         // [hidden] or null
  const void* bias;                           // [hidden] or null
  void* residual;                             // [tokens, hidden] or null
  void* out;                                  // like x
  void* scales;                               // [1], [tokens] or [tokens, ceil(hidden / 128)] f32, or null
  i64 x_stride, residual_stride, out_stride;  // elements from token to token
  i64 x_head_stride, out_head_stride;
  i64 scale_strides[2];
  i64 rows, heads, hidden;
  float eps, weight_bias, amax_floor;
  i32 unused;
};

}  // namespace quern::norm
