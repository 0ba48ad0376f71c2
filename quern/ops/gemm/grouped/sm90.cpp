// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/gemm/grouped/sm90.h"

namespace quern::gemm {

i32 rows_to_next(const TensorView& v) {
  const i64 rows = v.shape[v.rank - 2], matrices = v.rank == 3 ? v.shape[0] : 1;
  if (matrices == 1) return i32(rows);
  const auto [group, row] = strides_of(v);
  return row > 0 && group == rows * row && rows * matrices <= 0x7fffff00 ? i32(rows) : 0;
}
TensorMapSpec grouped_operand(const TensorView& v, i32 box, i32 fetched) {
  const i64 element = size_of(v.dtype), rows = v.shape[v.rank - 2], k = v.shape[v.rank - 1], matrices = v.rank == 3 ? v.shape[0] : 1;
  // Of a dimension of one the stride is not looked at, and may be anything
  const i64 row_bytes = rows > 1 ? strides_of(v).row * element : round_up<i64>(k * element, 16);
  TensorMapSpec map{.dtype = v.dtype,
                    .rank = 2,
                    .base = v.data,
                    .shape = {k, i64(rows_to_next(v)) * (matrices - 1) + rows},
                    .stride_bytes = {row_bytes},
                    .box = {i32(128 / element), box},
                    .swizzle = Swizzle::b128,
                    .fetched = fetched};
  if (rows_to_next(v) == 0)
    map.rank = 3, map.shape[1] = rows, map.shape[2] = matrices, map.stride_bytes[1] = strides_of(v).group * element, map.box[2] = 1;
  return map;
}
TensorMapSpec grouped_n_major(const TensorView& v, i32 rows) {
  const i64 element = size_of(v.dtype), groups = v.shape[0], row_bytes = v.strides[2] * element;
  // Of a dimension of one the stride is not looked at, and may be anything
  return {.dtype = v.dtype,
          .rank = 3,
          .base = v.data,
          .shape = {v.shape[1], v.shape[2], groups},
          .stride_bytes = {row_bytes, groups > 1 ? v.strides[0] * element : row_bytes},
          .box = {dense_sm90_box(rows), kDenseSm90TileK, 1},
          .swizzle = dense_sm90_swizzle(rows)};
}

template <class Args>
Rejection rejects_grouped_sm90(const Problem& p, const DeviceInfo& device) {
  if (device.arch.number != 90) return {"arch", device.arch.number, "{}: wgmma", 90};
  const i32 alignment = min_of(p.tensor(&Args::a).alignment, p.tensor(&Args::b).alignment);
  if (alignment < 16) return {"alignment of a and b", alignment, "{} bytes for every row", 16};
  if (p.tensor(&Args::out).alignment < 16) return {"alignment of out", p.tensor(&Args::out).alignment, "{} bytes for every row", 16};
  if (p[Axis::n] % 8 != 0) return {"n", p[Axis::n], "a multiple of {}", 8};
  for (const Axis axis : {Axis::k, Axis::groups})
    if (p[axis] == 0) return {name(axis), 0, "a positive one", 0};
  for (const Axis axis : {Axis::n, Axis::k})
    if (p[axis] > 0x7fffff00) return {name(axis), p[axis], "below 2^31", 0};
  // A tile's last row is counted in 31 bits
  if (const i64 rows = sizes_of<Args>(p).rows; rows > 0x7fffff00) return {"rows", rows, "at most {}", 0x7fffff00};
  if (const i64 tiles = most_tiles(sizes_of<Args>(p), 16, 64); tiles > 0x7fffff00) return {"tiles of 16 x 64", tiles, "below 2^31", 0};
  return {};
}

template Rejection rejects_grouped_sm90<GroupedContiguousArgs>(const Problem&, const DeviceInfo&);
template Rejection rejects_grouped_sm90<GroupedMaskedArgs>(const Problem&, const DeviceInfo&);

}  // namespace quern::gemm
