// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[t, i] = silu(x[t, i]) * x[t, intermediate + i]
// A block takes a chunk of threads * accesses * vector columns of one row, then the next chunk a grid further.
#pragma once
#include "quern/kit/activation.cuh"
#include "quern/kit/kit.cuh"
#include "quern/ops/activation/silu_and_mul/spec.h"

namespace quern::activation {

template <SiluAndMulConfig C> QN_DEVICE void silu_and_mul_chunk(const SiluAndMulParams& p) {
  using T = dtype_t<C.dtype>;
  constexpr i64 kColumns = i64(C.threads) * C.accesses * C.vector;
  const i64 chunks = ceil_div(p.intermediate, kColumns);
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  for (i64 at = blockIdx.x; at < p.tokens * chunks; at += gridDim.x) {
    const i64 row = at / chunks;
    const i64 first = (at - row * chunks) * kColumns + i64(threadIdx.x) * C.vector;
    const T* gate = static_cast<const T*>(p.x) + row * p.x_stride;
    const T* up = gate + p.intermediate;
    T* out = static_cast<T*>(p.out) + row * p.out_stride;

    // All loads first: they are in flight together
    Packed<T, C.vector> packed_gate[C.accesses], packed_up[C.accesses];
    QN_UNROLL
    for (int a = 0; a < C.accesses; ++a) {
      const i64 i = first + i64(a) * C.threads * C.vector;
      if (i >= p.intermediate) continue;
      packed_gate[a] = load_packed<T, C.vector>(gate + i);
      packed_up[a] = load_packed<T, C.vector>(up + i);
    }
    QN_UNROLL
    for (int a = 0; a < C.accesses; ++a) {
      const i64 i = first + i64(a) * C.threads * C.vector;
      if (i >= p.intermediate) continue;
      f32 g[C.vector], u[C.vector], y[C.vector];
      unpack(packed_gate[a], g);
      unpack(packed_up[a], u);
      QN_UNROLL
      for (int j = 0; j < C.vector; ++j) y[j] = silu(g[j]) * u[j];
      store_f32<T, C.vector>(out + i, y);
    }
  }
}

}  // namespace quern::activation
