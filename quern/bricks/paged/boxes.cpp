// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/bricks/paged/boxes.h"

namespace quern::paged {

/// The map of a tensor whose dim `token` is the boxes' rows. Of a dimension of one the stride may be anything, and one without elements is
/// never copied from.
static TensorMapSpec boxes_of(const TensorView& v, const int* dims, i32 rows) {
  const i64 element = size_of(v.dtype), head_dim = v.shape[v.rank - 1];
  const BoxTile tile{v.dtype, i32(head_dim), rows};
  TensorMapSpec spec{.dtype = v.dtype,
                     .rank = v.rank,
                     .base = v.data,
                     .shape = {head_dim},
                     .stride_bytes = {},
                     .box = {i32(column_bytes(tile) / element), rows, 1, 1},
                     .swizzle = swizzle_of(tile),
                     .fetched = row_bytes(tile) >= 256 ? 256 : 128};
  for (int d = 1; d < v.rank; ++d) {
    const int from = dims[d - 1];
    spec.shape[d] = max_of<i64>(1, v.shape[from]);
    spec.stride_bytes[d - 1] = v.shape[from] > 1 ? v.strides[from] * element : round_up<i64>(head_dim * element, 16);
  }
  return spec;
}

TensorMapSpec paged_boxes(const TensorView& cache, i32 tokens) {
  constexpr int kDims[] = {1, 2, 0};
  return boxes_of(cache, kDims, box_rows(cache.shape[1], tokens));
}

TensorMapSpec contiguous_boxes(const TensorView& keys, i32 tokens) {
  constexpr int kDims[] = {0, 1};
  return boxes_of(keys, kDims, tokens);
}

}  // namespace quern::paged
