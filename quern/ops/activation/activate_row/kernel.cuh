// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[t, i] = f(x[t, i]), or f(gate[t, i]) * up[t, i]
// A block takes a chunk of threads * accesses * vector columns of one row, then the next chunk a grid further: each_chunk.
#pragma once
#include "quern/bricks/rows/chunks.cuh"
#include "quern/ops/activation/activate_row/function.cuh"

namespace quern::activation {

template <ActivateRowConfig C> QN_DEVICE void activate_row_chunk(const ActivateRowParams& p) {
  using T = dtype_t<C.dtype>;
  constexpr int kVector = C.chunks.vector;
  using Part = Held<C.dtype, kVector>;
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  rows::each_chunk<Part, C.chunks, C.threads>(
      p.tokens, p.columns, [&](i64 row, i64 column, Part& held) { load_operands<C, kVector>(p, row, column, held); },
      [&](i64 row, i64 column, const Part& held) {
        f32 y[kVector];
        results_of<C, kVector>(p, held, y);
        store_f32<T, kVector>(static_cast<T*>(p.out) + row * p.out_stride + column, y);
      });
}

}  // namespace quern::activation
