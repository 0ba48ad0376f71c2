// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/gemm/dense_sm90.h"

#include "quern/ops/gemm/dense.h"
#include "quern/ops/gemm/dense_sm90_spec.h"

namespace quern::gemm {

using A = DenseArgs;

static const jit::Kernel<DenseSm90Config, DenseSm90Params> warp_specialised{"quern/ops/gemm/dense_warp_specialised_sm90.cuh", "dense_warp_specialised_sm90"};

/// All have two warpgroups that multiply, and as many stages as 227 KB hold. `cost` is the time of a column of the tile beside
/// that of the widest one: shared memory is read at 80 bytes a clock for 256 columns, 85 for 192 and 96 for 128.
struct TileN {
  i32 n, stages;
  double cost;
};
constexpr TileN kTiles[] = {{256, 4, 1}, {192, 5, 1.02}, {128, 6, 1.1}};
constexpr i32 kTileM = 128;

static i64 tiles_of(const Problem& p, i32 tile_n) { return ceil_div<i64>(p[Axis::m], kTileM) * ceil_div<i64>(p[Axis::n], tile_n); }

Rejection rejects_sm90(const Problem& p, const DeviceInfo& device) {
  if (device.arch.number != 90) return {"arch", device.arch.number, "{}: wgmma", 90};
  if (p.batch_invariant) return {"batch_invariant", 1, "no batch_invariant, of which mma_ring has the order of sums", 0};
  const i32 vector = min_of(p.vector(&A::a), p.vector(&A::b));
  if (vector < 8) return {"alignment of a and b", 2 * vector, "{} bytes for every row", 16};
  if (p.tensor(&A::out).alignment < 16) return {"alignment of out", p.tensor(&A::out).alignment, "{} bytes for every row", 16};
  if (p[Axis::n] % 8 != 0) return {"n", p[Axis::n], "a multiple of {}", 8};
  if (p[Axis::k] == 0) return {"k", 0, "a positive one", 0};
  for (const Axis axis : {Axis::m, Axis::n, Axis::k})
    if (p[axis] > 0x7fffff00) return {name(axis), p[axis], "below 2^31", 0};
  // When it is not asked for: with fewer tiles than half the multiprocessors, splits of K go faster
  if (p.variant < 0 && (p[Axis::m] <= 128 || 2 * tiles_of(p, 128) < device.sms)) return {"m", p[Axis::m], "more tiles of 128 x 128 than half the multiprocessors", 0};
  return {};
}

/// The last round of tiles takes as long as a full one.
static const TileN& choose(const Problem& p, const DeviceInfo& device) {
  const TileN* best = nullptr;
  double best_time = 1e300;
  for (const TileN& t : kTiles) {
    const double time = double(ceil_div<i64>(tiles_of(p, t.n), device.sms)) * t.n * t.cost;
    if (time < best_time) best_time = time, best = &t;
  }
  return *best;
}

/// [rows, k], boxes of `box` rows and 64 columns.
static TensorMapSpec operand(const TensorView& v, i32 box) {
  const i64 row_bytes = v.shape[0] > 1 ? v.strides[0] * 2 : round_up<i64>(v.shape[1] * 2, 16);
  return {.dtype = v.dtype, .rank = 2, .base = v.data, .shape = {v.shape[1], v.shape[0]}, .stride_bytes = {row_bytes}, .box = {kDenseSm90TileK, box},
          .swizzle = Swizzle::b128};
}

static DenseSm90Params params(const Call<DenseArgs>& c) {
  const DenseArgs& a = c.args;
  const auto& config = c.plan.launches[0].spec.config_as<DenseSm90Config>();
  return {.a = c.device.make_tensor_map(operand(a.a, config.tile_m)),
          .b = c.device.make_tensor_map(operand(a.b, config.tile_n)),
          .bias = a.bias.data,
          .out = a.out.data,
          .out_stride = a.out.strides[0],
          .m = i32(c.problem[Axis::m]),
          .n = i32(c.problem[Axis::n]),
          .k = i32(c.problem[Axis::k]),
          .bias_dtype = c.problem.dtype(&A::bias)};
}

Plan plan_sm90(const Problem& p, const DeviceInfo& device, const Knobs&) {
  const TileN& tile = choose(p, device);
  const DenseSm90Config config{p.dtype(&A::a), p.dtype(&A::out), kTileM, tile.n, tile.stages, 128 + 2 * kTileM};
  Plan plan;
  plan.launch<params>(warp_specialised, config,
                      {.x = min_of<i64>(device.sms, tiles_of(p, tile.n)), .smem = dense_sm90_smem(config).bytes, .pdl = p.pdl});
  return plan;
}

}  // namespace quern::gemm
