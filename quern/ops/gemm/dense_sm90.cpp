// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/gemm/dense_sm90.h"

#include "quern/ops/gemm/dense_call.h"

namespace quern::gemm {

using A = DenseArgs;

static const jit::Kernel<DenseSm90Config, DenseSm90Params> warp_specialised{"quern/ops/gemm/dense_warp_specialised_sm90.cuh", "dense_warp_specialised_sm90"};

constexpr i32 kTileM = 128;
static i64 tiles_of(const Problem& p, i32 tile_n) { return ceil_div<i64>(p[Axis::m], kTileM) * ceil_div<i64>(p[Axis::n], tile_n); }

Rejection rejects_sm90_operands(const Problem& p, const DeviceInfo& device) {
  if (device.arch.number != 90) return {"arch", device.arch.number, "{}: wgmma", 90};
  const i32 vector = min_of(p.vector(&A::a), p.vector(&A::b));
  if (vector < 8) return {"alignment of a and b", 2 * vector, "{} bytes for every row", 16};
  if (p.tensor(&A::out).alignment < 16) return {"alignment of out", p.tensor(&A::out).alignment, "{} bytes for every row", 16};
  if (p.tensor(&A::c).alignment < 16) return {"alignment of c", p.tensor(&A::c).alignment, "{} bytes for every row", 16};
  if (p[Axis::n] % 8 != 0) return {"n", p[Axis::n], "a multiple of {}", 8};
  if (p[Axis::k] == 0) return {"k", 0, "a positive one", 0};
  for (const Axis axis : {Axis::m, Axis::n, Axis::k})
    if (p[axis] > 0x7fffff00) return {name(axis), p[axis], "below 2^31", 0};
  // Of an M-major a the alignment is that of m, so it would depend on m which kernel a row meets
  if (p.variant < 0 && p.batch_invariant && p.tensor(&A::a).transposed) return {"a", "M-major", "K-major with batch_invariant"};
  return {};
}

bool few_rows(const Problem& p) { return p[Axis::m] <= kTileM || 2 * tiles_of(p, 128) < kSm90Sms; }

/// From row to row of a K-major operand; of one row the stride may be anything.
static i64 row_bytes(const TensorView& v) { return v.shape[0] > 1 ? v.strides[0] * size_of(v.dtype) : round_up<i64>(v.shape[1] * size_of(v.dtype), 16); }

TensorMapSpec sm90_operand(const TensorView& v, i32 rows, Major major) {
  const i64 element = size_of(v.dtype);
  if (major == Major::mn)
    return {.dtype = v.dtype, .rank = 2, .base = v.data, .shape = {v.shape[0], v.shape[1]}, .stride_bytes = {v.strides[1] * element},
            .box = {dense_sm90_box(rows), kDenseSm90TileK}, .swizzle = dense_sm90_swizzle(rows)};
  return {.dtype = v.dtype, .rank = 2, .base = v.data, .shape = {v.shape[1], v.shape[0]}, .stride_bytes = {row_bytes(v)}, .box = {i32(128 / element), rows},
          .swizzle = Swizzle::b128};
}

i32 sm90_few_rows(const Problem& p, i32 rows, Major major) { return major == Major::k ? i32(min_of<i64>(rows, p[Axis::m])) : rows; }

TensorMapSpec sm90_operand_in_turn(const TensorView& v, i32 rows, i32 chunks) {
  const i64 element = size_of(v.dtype), row_bytes = v.strides[0] * element;
  return {.dtype = v.dtype, .rank = 4, .base = v.data, .shape = {128 / element, 8, v.shape[1] * element / 128, v.shape[0] / 8}, .stride_bytes = {row_bytes, 128, 8 * row_bytes},
          .box = {i32(128 / element), 8, chunks, rows / 8}, .swizzle = Swizzle::b128};
}

TensorMapSpec sm90_few_rows_operand(const TensorView& v, i32 rows, i32 chunks) {
  const i64 element = size_of(v.dtype);
  return {.dtype = v.dtype, .rank = 3, .base = v.data, .shape = {128 / element, v.shape[0], v.shape[1] * element / 128}, .stride_bytes = {row_bytes(v), 128},
          .box = {i32(128 / element), rows, chunks}, .swizzle = Swizzle::b128};
}

TensorMapSpec sm90_results(const TensorView& v, const DenseSm90Config& tiles) {
  const i64 element = size_of(v.dtype), rows = v.shape[v.rank - 2], n = v.shape[v.rank - 1], matrices = v.rank == 3 ? v.shape[0] : 1;
  // Of a dimension of one the stride is not looked at, and may be anything
  const i64 row_bytes = rows > 1 ? v.strides[v.rank - 2] * element : round_up<i64>(n * element, 16), matrix_bytes = matrices > 1 ? v.strides[0] * element : row_bytes;
  return {.dtype = v.dtype, .rank = 3, .base = v.data, .shape = {n, rows, matrices}, .stride_bytes = {row_bytes, matrix_bytes},
          .box = {dense_sm90_boxes(tiles).columns, kSm90StoreRows, 1}, .swizzle = dense_sm90_boxes(tiles).swizzle};
}

DenseSm90Params sm90_params(const Call<DenseArgs>& c, const TensorMapSpec& map_of_a, i32 rows_b, i32 parts, i32 chunks) {
  const DenseArgs& a = c.args;
  return {.a = c.device.make_tensor_map(map_of_a),
          .b = c.device.make_tensor_map(chunks > 1 ? sm90_operand_in_turn(a.b, rows_b, chunks) : sm90_operand(a.b, rows_b, major_of(c.problem.tensor(&A::b)))),
          .bias = a.bias.data,
          .out = a.out.data,
          .out_stride = a.out.strides[0],
          .m = i32(c.problem[Axis::m]),
          .n = i32(c.problem[Axis::n]),
          .k = i32(c.problem[Axis::k]),
          .parts = parts,
          .pdl = c.problem.pdl,
          .bias_dtype = c.problem.dtype(&A::bias),
          .c = c_of(c)};
}

Rejection rejects_sm90(const Problem& p, const DeviceInfo& device) {
  if (const Rejection r = rejects_sm90_operands(p, device)) return r;
  // When it is not asked for
  if (p.variant < 0 && few_rows(p)) return {"m", p[Axis::m], "more tiles of 128 x 128 than half the multiprocessors", 0};
  return {};
}

/// `fold` keeps a second set of sums: up to 96 registers.
static const Sm90Tile& choose(const Problem& p, bool fold) {
  return least_time(kDenseSm90Tiles, p[Axis::k], kSm90StoreCost, [&](const Sm90Tile& t) {
    const bool fits = !(fold && (t.alternate || t.n > 192)) && !(p.tensor(&A::b).transposed && t.n % dense_sm90_box(t.n) != 0);
    return fits ? columns_in_rounds(t, tiles_of(p, t.n)) : 0;
  });
}

static DenseSm90Params params(const Call<DenseArgs>& c) {
  const auto& config = c.plan.launches[0].spec.config_as<DenseSm90Config>();
  DenseSm90Params params = sm90_params(c, sm90_operand(c.args.a, sm90_few_rows(c.problem, config.tile_m, config.a_major), config.a_major), config.tile_n, config.fold ? invariant_parts(c.problem, c.device.info()) : 1);
  if (dense_sm90_stores_boxes(config)) params.results = c.device.make_tensor_map(sm90_results(c.args.out, config));
  if (config.c_boxes) params.addend = c.device.make_tensor_map(sm90_results(c.args.c, config));
  return params;
}

Plan plan_sm90(const Problem& p, const DeviceInfo& device, const Knobs&) {
  const bool fold = p.batch_invariant && invariant_parts(p, device) > 1;
  const Sm90Tile& tile = choose(p, fold);
  const auto config = with_room(DenseSm90Config{.dtype = p.dtype(&A::a), .out_dtype = p.dtype(&A::out), .tile_m = kTileM, .tile_n = tile.n, .stages = tile.stages,
                                                .alternate = tile.alternate, .fold = fold, .threads = 3 * 128, .has_c = p.tensor(&A::c).present,
                                                .activation = i32(p.attr(&A::activation)), .a_major = major_of(p.tensor(&A::a)), .b_major = major_of(p.tensor(&A::b)),
                                                .c_boxes = p.tensor(&A::c).present && p.dtype(&A::out) != DType::f32 && p.dtype(&A::c) == p.dtype(&A::out)},
                                device);
  Plan plan;
  plan.launch<params>(warp_specialised, config, {.x = min_of<i64>(device.sms, tiles_of(p, tile.n)), .smem = block_bytes(config), .pdl = p.pdl});
  return plan;
}

}  // namespace quern::gemm
