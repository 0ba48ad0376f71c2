// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// A thread for each element of out.
#pragma once
#include "quern/kit/kit.cuh"
#include "steps/gemm_spec.h"

namespace quern::steps {

template <GemmConfig C>
QN_DEVICE void gemm_thread(const GemmParams& p) {
  using T = dtype_t<C.dtype>;
  const i64 index = i64(blockIdx.x) * C.threads + threadIdx.x, i = index / p.n, j = index - i * p.n;
  if (i >= p.m) return;
  const T* a = static_cast<const T*>(p.a) + i * p.a_stride;
  const T* b = static_cast<const T*>(p.b) + j * p.b_stride;
  f32 sum = 0.f;
  for (i64 x = 0; x < p.k; ++x) {
    f32 left[1], right[1];
    load_f32<T, 1>(a + x, left);
    load_f32<T, 1>(b + x, right);
    sum = ptx::fma(left[0], right[0], sum);
  }
  const f32 result[1] = {sum};
  store_f32<T, 1>(static_cast<T*>(p.out) + i * p.out_stride + j, result);
}

}  // namespace quern::steps
