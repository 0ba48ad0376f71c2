// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[t] = table[ids[t]] * scale, or zeros
// A block takes a chunk of one row, then the next chunk a grid further: each_chunk.
#pragma once
#include "quern/bricks/rows/chunks.cuh"
#include "quern/ops/elementwise/gather_rows/spec.h"

namespace quern::elementwise {

template <DType kDType> struct Element {
  using type = dtype_t<kDType>;
};
template <> struct Element<DType::u8> {
  using type = u8;
};

template <class Raw> QN_DEVICE Raw zero_bits() {
  if constexpr (sizeof(Raw) == 16) return Raw{0, 0, 0, 0};
  else if constexpr (sizeof(Raw) == 8) return Raw{0, 0};
  else return Raw(0);
}

template <GatherRowsConfig C> QN_DEVICE void gather_rows_chunk(const GatherRowsParams& p) {
  using T = typename Element<C.dtype>::type;
  using Index = dtype_t<C.index_dtype>;
  constexpr int kVector = C.chunks.vector;
  using Row = Packed<T, kVector>;
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  rows::each_chunk<Row, C.chunks, C.threads>(
      p.tokens, p.columns,
      [&](i64 token, i64 column, Row& held) {
        const i64 id = i64(ptx::ld_global<Index>(static_cast<const Index*>(p.ids) + token));
        if (id >= 0 && id < p.rows) held = load_packed<T, kVector>(static_cast<const T*>(p.table) + id * p.table_stride + column);
        else held.raw = zero_bits<typename Row::Raw>();
      },
      [&](i64 token, i64 column, const Row& held) {
        T* to = static_cast<T*>(p.out) + token * p.out_stride + column;
        if constexpr (C.dtype == DType::u8) {
          store_packed<T, kVector>(to, held);
        } else {
          f32 x[kVector];
          unpack(held, x);
          QN_UNROLL
          for (int j = 0; j < kVector; ++j) x[j] = x[j] * f32(p.scale);
          store_f32<T, kVector>(to, x);
        }
      });
}

}  // namespace quern::elementwise
