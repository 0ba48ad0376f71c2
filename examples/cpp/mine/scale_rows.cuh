// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[t, h] = x[t, h] * factor[t]
// A block takes a row at a time, each thread `vector` elements of it, then the next row a grid further.
#pragma once
#include "mine/scale_rows_spec.h"
#include "quern/kit/kit.cuh"

namespace quern::mine {

template <ScaleRowsConfig C> QN_DEVICE void scale_rows_row(const ScaleRowsParams& p) {
  using T = dtype_t<C.dtype>;
  ptx::grid_dependency_wait();
  for (i64 row = blockIdx.x; row < p.tokens; row += gridDim.x) {
    const T* x = static_cast<const T*>(p.x) + row * p.x_stride;
    T* out = static_cast<T*>(p.out) + row * p.out_stride;
    const f32 factor = ptx::ld_global_nc<f32>(p.factor + row * p.factor_stride);
    for (i64 h = i64(threadIdx.x) * C.vector; h < p.hidden; h += C.threads * C.vector) {
      f32 v[C.vector];
      load_f32<T, C.vector>(x + h, v);
      QN_UNROLL
      for (int j = 0; j < C.vector; ++j) v[j] = v[j] * factor;
      store_f32<T, C.vector>(out + h, v);
    }
  }
  ptx::grid_launch_dependents();
}

}  // namespace quern::mine
