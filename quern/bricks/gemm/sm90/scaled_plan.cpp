// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/bricks/gemm/sm90/scaled_plan.h"

namespace quern::gemm {

ScaleBoxes scale_boxes(const TensorView& v, i64 rows, i64 k, Device& device) {
  const i64 columns = ceil_div<i64>(k, kScaledGroup), matrices = v.rank == 3 ? v.shape[0] : 1;
  if (v.shape[v.rank - 2] != rows || v.shape[v.rank - 1] != columns) return {};
  const i64 own = v.strides[v.rank - 1], column = columns > 1 ? own
                                                  : matrices > 1
                                                      ? v.strides[0]
                                                      : round_up<i64>(rows, 4);  // of a dimension of one the stride may be anything
  const i64 matrix = matrices > 1 ? v.strides[0] : columns * column;
  if ((rows > 1 && v.strides[v.rank - 2] != 1) || reinterpret_cast<uintptr_t>(v.data) % 16 != 0) return {};
  if (column < rows || column % 4 != 0 || matrix % column != 0 || matrix / column < columns || matrix / column * matrices > 0x7fffff00)
    return {};
  return {device.make_tensor_map({.dtype = DType::f32,
                                  .rank = 2,
                                  .base = v.data,
                                  .shape = {rows, matrix / column * (matrices - 1) + columns},
                                  .stride_bytes = {4 * column},
                                  .box = {kScaleBoxRows, 1},
                                  .swizzle = Swizzle::none}),
          i32(matrix / column), 1};
}

SwapAbShape scaled_swapped_tile(i64 m, i64 n, const DeviceInfo& device) {
  SwapAbShape c = swapped_tile(m, n, device);
  if (c.tiles.tile_m < 128) c.min_blocks = 2;
  fill_multiprocessor(c, device, scaled_swap_bytes);
  return c;
}

}  // namespace quern::gemm
