// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Where K was split a second kernel adds the parts up.
#pragma once
#include "quern/bricks/gemm/ending_spec.h"

namespace quern::gemm {

struct DenseSumConfig {
  DType dtype;  // of a and b
  DType out_dtype;
  i32 threads;
  i32 has_c;
  i32 activation;  // an Activation
};

struct DenseSumParams {
  const void* partials;  // f32 [splits, m, partial_stride]
  const void* bias;      // [n] or null
  void* out;             // [m, n]
  i64 partial_stride, out_stride;
  i64 m, n;
  i32 splits;
  DType bias_dtype;  // f32, or that of a
  i32 out_alignment;
  DenseAddend c;
};

/// In the symbol, as with cuBLAS: a call's time is that of "gemm" and of "reduce".
QN_HOST_DEVICE constexpr const char* purpose_of(const DenseSumConfig&) { return "reduce"; }

}  // namespace quern::gemm
