// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/bricks/gemm/sm90/plan.h"

namespace quern::gemm {

// ---- tensor maps ----

/// From row to row of a K-major operand; of one row the stride may be anything.
static i64 row_bytes(const TensorView& v) {
  return v.shape[0] > 1 ? v.strides[0] * size_of(v.dtype) : round_up<i64>(v.shape[1] * size_of(v.dtype), 16);
}

TensorMapSpec sm90_operand(const TensorView& v, i32 rows, Major major) {
  const i64 element = size_of(v.dtype);
  if (major == Major::mn)
    return {.dtype = v.dtype,
            .rank = 2,
            .base = v.data,
            .shape = {v.shape[0], v.shape[1]},
            .stride_bytes = {v.strides[1] * element},
            .box = {dense_sm90_box(rows), kDenseSm90TileK},
            .swizzle = dense_sm90_swizzle(rows)};
  return {.dtype = v.dtype,
          .rank = 2,
          .base = v.data,
          .shape = {v.shape[1], v.shape[0]},
          .stride_bytes = {row_bytes(v)},
          .box = {i32(128 / element), rows},
          .swizzle = Swizzle::b128};
}

i32 sm90_few_rows(i64 m, i32 rows, Major major) { return major == Major::k ? i32(min_of<i64>(rows, m)) : rows; }

TensorMapSpec sm90_operand_in_turn(const TensorView& v, i32 rows, i32 chunks) {
  const i64 element = size_of(v.dtype), row_bytes = v.strides[0] * element;
  return {.dtype = v.dtype,
          .rank = 4,
          .base = v.data,
          .shape = {128 / element, 8, v.shape[1] * element / 128, v.shape[0] / 8},
          .stride_bytes = {row_bytes, 128, 8 * row_bytes},
          .box = {i32(128 / element), 8, chunks, rows / 8},
          .swizzle = Swizzle::b128};
}

TensorMapSpec sm90_few_rows_operand(const TensorView& v, i32 rows, i32 chunks) {
  const i64 element = size_of(v.dtype);
  return {.dtype = v.dtype,
          .rank = 3,
          .base = v.data,
          .shape = {128 / element, v.shape[0], v.shape[1] * element / 128},
          .stride_bytes = {row_bytes(v), 128},
          .box = {i32(128 / element), rows, chunks},
          .swizzle = Swizzle::b128};
}

TensorMapSpec sm90_results(const TensorView& v, const BlockSm90& block) {
  const i64 element = size_of(v.dtype), rows = v.shape[v.rank - 2], n = v.shape[v.rank - 1], matrices = v.rank == 3 ? v.shape[0] : 1;
  // Of a dimension of one the stride is not looked at, and may be anything
  const i64 row_bytes = rows > 1 ? v.strides[v.rank - 2] * element : round_up<i64>(n * element, 16),
            matrix_bytes = matrices > 1 ? v.strides[0] * element : row_bytes;
  return {.dtype = v.dtype,
          .rank = 3,
          .base = v.data,
          .shape = {n, rows, matrices},
          .stride_bytes = {row_bytes, matrix_bytes},
          .box = {dense_sm90_boxes(block).columns, kSm90StoreRows, 1},
          .swizzle = dense_sm90_boxes(block).swizzle};
}

// ---- few rows, swapped ----

void fill_multiprocessor(SwapAbShape& c, const DeviceInfo& device, i32 (*bytes)(const SwapAbSm90&)) {
  const i32 reserved = device.smem_sm - device.smem_block;  // by CUDA for every block
  for (c.tiles.stages = 16; c.min_blocks * (bytes(c.tiles) + reserved) > device.smem_sm;) --c.tiles.stages;
}
void fill_multiprocessor(SwapAbShape& c, const DeviceInfo& device) {
  fill_multiprocessor(c, device, [](const SwapAbSm90& tiles) { return i32(dense_swap_smem(tiles).bytes); });
}

SwapAbShape swapped_tile(i64 m, i64 n, const DeviceInfo& device) {
  SwapAbShape c{};
  c.tiles.tile_m = m <= 16 ? 16 : m <= 32 ? 32 : m <= 64 ? 64 : 128;
  c.tiles.tile_n = n <= 64 * kSm90Sms ? 64 : n <= 192 * kSm90Sms && c.tiles.tile_m == 128 ? 192 : 128;
  c.min_blocks = c.tiles.tile_n == 128 ? 2 : 1;
  fill_multiprocessor(c, device);
  return c;
}

i64 swapped_tiles(const SwapAbSm90& c, i64 m, i64 n) { return ceil_div<i64>(m, c.tile_m) * ceil_div<i64>(n, c.tile_n); }

/// Time in ns, fitted on an H200: each multiprocessor has its share of memory's rate. One takes a ring full of a and b every 1400 ns,
/// beside what the ring holds at the start. Adding up splits takes 500 ns, and for each but the first 1250 ns for 8192 sums, growing
/// with the square.
static double estimate_ns(const SwapAbSm90& c, i64 n, i64 row_bytes, i32 splits, i64 sms, const Rates& rates) {
  const double memory_an_sm = rates.memory / kSm90Sms;
  const double ring = double(c.stages) * dense_swap_smem(c).stage, bytes = double(c.tile_n + c.tile_m) * double(row_bytes) / splits;
  const double memory = double(n) * double(row_bytes) / (double(sms) * memory_an_sm), sums = c.tile_m * c.tile_n / 8192.0;
  return max_of((bytes / ring - 1) * 1400, memory) + (splits > 1 ? 500 + 1250 * (splits - 1) * sums * sums : 0);
}

i32 swapped_splits(const SwapAbSm90& c, i64 m, i64 n, i64 row_bytes, i64 sms, const Rates& rates) {
  i32 best = 1;
  double best_ns = 1e300;
  for (i32 splits = 1; splits == 1 || (splits <= i32(kDenseSwapMaxSplits) && swapped_tiles(c, m, n) * splits <= sms); ++splits) {
    const double ns = estimate_ns(c, n, row_bytes, splits, sms, rates);
    if (ns < best_ns) best = splits, best_ns = ns;
  }
  return best;
}

// ---- few rows, narrow tiles ----

i32 narrow_columns(i64 n, i32 blocks, i32 passes, i32 multiple) {
  return i32(max_of<i64>(16 * blocks, round_up<i64>(ceil_div<i64>(n * blocks, i64(kSm90Sms) * passes), multiple)));
}
i32 narrow_share(i64 n) { return narrow_columns(n, 1); }

/// What the L2 sends of a, it does not send of b, nor has the ring room for it: of tiles of 16 columns a is the larger part, and so it is
/// of wider ones beside 128 rows. m = 64: (2112, 7168) 10.8 us with K in two and 12.2; m = 128: 12.9 and 17.5. Pairs and one tile of 128
/// rows: (7168, 16384) 60.5 and 65.2, (7168, 2048) 10.2 and 10.5, (5120, 5120) 16.0 and 18.2 of swap_ab, (12288, 2048), by one warpgroup
/// each, 16.8 and 15.4.
NarrowTiles narrow_tiles(i64 m, i64 n, i32 most_split, i32 most_of_pairs) {
  const i32 share = narrow_share(n), rows = m <= 64 ? 64 : 128;
  if (share <= (m <= 64 ? most_split : min_of(16, most_split))) return {rows, 2 * share, 1, 2};
  if (m > 64 && share <= most_of_pairs) return {64, narrow_columns(n, 2), 2, 1};
  return {rows, share, 1, 1};
}

}  // namespace quern::gemm
