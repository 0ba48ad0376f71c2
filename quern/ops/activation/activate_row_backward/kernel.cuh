// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// dx[t, i] = dy[t, i] * f'(x[t, i]), or dgate = dy * up * f'(gate) and dup = dy * f(gate), which lie as gate and up do
// A block takes a chunk of threads * accesses * vector columns of one row, then the next chunk a grid further: each_chunk.
#pragma once
#include "quern/bricks/rows/chunks.cuh"
#include "quern/ops/activation/activate_row_backward/slopes.cuh"
#include "quern/ops/activation/activate_row_backward/spec.h"

namespace quern::activation {

/// An access of the operands and of dy.
template <ActivateRowBackwardConfig C> struct HeldWithGradient {
  Held<C.dtype, C.chunks.vector> operands;
  Packed<dtype_t<C.dtype>, C.chunks.vector> dy;
};

/// Stores gradients of gates and ups where these lie.
template <ActivateRowBackwardConfig C>
QN_DEVICE void store_gradients(const ActivateRowBackwardParams& p, i64 row, i64 column, const f32 (&gate)[C.chunks.vector],
                               const f32 (&up)[C.chunks.vector]) {
  using T = dtype_t<C.dtype>;
  constexpr int kVector = C.chunks.vector;
  T* const dx = static_cast<T*>(p.row.out) + row * p.row.out_stride;
  if constexpr (C.operands == Operands::alone) {
    store_f32<T, kVector>(dx + column, gate);
  } else if constexpr (C.operands == Operands::halves) {
    store_f32<T, kVector>(dx + column, gate);
    store_f32<T, kVector>(dx + p.row.columns + column, up);
  } else if constexpr (C.operands == Operands::pairs) {
    f32 pairs[2][kVector];
    QN_UNROLL
    for (int j = 0; j < kVector; ++j) {
      pairs[2 * j / kVector][2 * j % kVector] = gate[j];
      pairs[(2 * j + 1) / kVector][(2 * j + 1) % kVector] = up[j];
    }
    store_f32<T, kVector>(dx + 2 * column, pairs[0]);
    store_f32<T, kVector>(dx + 2 * column + kVector, pairs[1]);
  } else {
    store_f32<T, kVector>(static_cast<T*>(p.dgate) + row * p.dgate_stride + column, gate);
    store_f32<T, kVector>(dx + column, up);
  }
}

template <ActivateRowBackwardConfig C> QN_DEVICE void activate_row_backward_chunk(const ActivateRowBackwardParams& p) {
  using T = dtype_t<C.dtype>;
  constexpr int kVector = C.chunks.vector;
  using Part = HeldWithGradient<C>;
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  rows::each_chunk<Part, C.chunks, C.threads>(
      p.row.tokens, p.row.columns,
      [&](i64 row, i64 column, Part& held) {
        load_operands<C, kVector>(p.row, row, column, held.operands);
        held.dy = load_packed<T, kVector>(static_cast<const T*>(p.dy) + row * p.dy_stride + column);
      },
      [&](i64 row, i64 column, const Part& held) {
        f32 dy[kVector], gate[kVector], up[kVector];
        unpack(held.dy, dy);
        gates_and_ups<C, kVector>(held.operands, gate, up);
        QN_UNROLL
        for (int j = 0; j < kVector; ++j) {
          const GateUp gradients = gradients_of<C>(p.row, dy[j], gate[j], up[j]);
          gate[j] = gradients.gate, up[j] = gradients.up;
        }
        store_gradients<C>(p, row, column, gate, up);
      });
}

}  // namespace quern::activation
