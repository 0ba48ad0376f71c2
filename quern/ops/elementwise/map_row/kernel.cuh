// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[t, h] = f(x[t, h], y[t, h]), or f(x[t, h], y[t])
// A block takes a chunk of one row, then the next chunk a grid further: each_chunk.
#pragma once
#include "quern/bricks/rows/chunks.cuh"
#include "quern/kit/tanh.cuh"
#include "quern/ops/elementwise/map_row/spec.h"

namespace quern::elementwise {

/// An access of each input, as it lies in memory. Of diag_scale, y is one element.
template <MapRowConfig C> struct MapOperands {
  Packed<dtype_t<C.dtype>, C.chunks.vector> x;
  Packed<dtype_t<C.dtype>, C.map == Map::diag_scale ? 1 : C.chunks.vector> y;
};

/// The row of x that an access is of, where all rows may be taken as one.
QN_DEVICE i64 row_of_x(const MapRowParams& p, i64 row, i64 column) {
  if (p.row_columns == 0) return row;
  // A division of 32 bits takes a fraction of one of 64; rows that are taken as one are short
  return column >> 32 == 0 ? i64(u32(column) / u32(p.row_columns)) : column / p.row_columns;
}

template <MapRowConfig C> QN_DEVICE f32 mapped(const MapRowParams& p, f32 x, f32 y) {
  if constexpr (C.map == Map::scale) return x * f32(p.value);
  else if constexpr (C.map == Map::soft_cap) return f32(p.value) * accurate_tanh(ptx::div(x, f32(p.value)));
  else if constexpr (C.map == Map::diag_scale) return x * y;
  else return x + y;
}

template <MapRowConfig C> QN_DEVICE void map_row_chunk(const MapRowParams& p) {
  using T = dtype_t<C.dtype>;
  constexpr int kVector = C.chunks.vector;
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  rows::each_chunk<MapOperands<C>, C.chunks, C.threads>(
      p.rows, p.columns,
      [&](i64 row, i64 column, MapOperands<C>& held) {
        held.x = load_packed<T, kVector>(static_cast<const T*>(p.x) + row * p.x_stride + column);
        if constexpr (C.map == Map::diag_scale)
          held.y = load_packed<T, 1>(static_cast<const T*>(p.y) + row_of_x(p, row, column) * p.y_stride);
        if constexpr (C.map == Map::add) held.y = load_packed<T, kVector>(static_cast<const T*>(p.y) + row * p.y_stride + column);
      },
      [&](i64 row, i64 column, const MapOperands<C>& held) {
        f32 x[kVector], y[kVector] = {};
        unpack(held.x, x);
        if constexpr (C.map == Map::add) unpack(held.y, y);
        if constexpr (C.map == Map::diag_scale) {
          f32 of_row[1];
          unpack(held.y, of_row);
          QN_UNROLL
          for (int j = 0; j < kVector; ++j) y[j] = of_row[0];
        }
        QN_UNROLL
        for (int j = 0; j < kVector; ++j) x[j] = mapped<C>(p, x[j], y[j]);
        store_f32<T, kVector>(static_cast<T*>(p.out) + row * p.out_stride + column, x);
      });
}

}  // namespace quern::elementwise
