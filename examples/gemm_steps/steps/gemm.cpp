// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// One op, and each step of docs/gemm_tutorial.md as a variant of it, the last one first: a call takes the first that its
// operands and the GPU allow.
#include "steps/gemm.h"

#include <cmath>

#include "quern/base/host_dtype.h"
#include "quern/op/schema.h"
#include "steps/gemm_ref.h"
#include "steps/gemm_spec.h"

namespace quern::steps {

using A = GemmArgs;

static const jit::Kernel<GemmConfig, GemmParams> thread_kernel{"steps/step1_thread.cuh", "gemm_thread"};
static const jit::Kernel<GemmConfig, GemmParams> shared_kernel{"steps/step2_shared.cuh", "gemm_shared"};
static const jit::Kernel<GemmConfig, GemmParams> mma_kernel{"steps/step3_mma.cuh", "gemm_mma"};
static const jit::Kernel<GemmConfig, GemmMapParams> wgmma_kernel{"steps/step4_wgmma.cuh", "gemm_wgmma"};
static const jit::Kernel<GemmConfig, GemmMapParams> ring_kernel{"steps/step5_ring.cuh", "gemm_ring"};
static const jit::Kernel<GemmConfig, GemmMapParams> persistent_kernel{"steps/step6_persistent.cuh", "gemm_persistent"};

static GemmParams params(const Call<A>& c) {
  const A& a = c.args;
  return {.a = a.a.data,
          .b = a.b.data,
          .out = a.out.data,
          .a_stride = a.a.strides[0],
          .b_stride = a.b.strides[0],
          .out_stride = a.out.strides[0],
          .m = c.problem[Axis::m],
          .n = c.problem[Axis::n],
          .k = c.problem[Axis::k]};
}

/// Boxes of `rows` rows and 128 bytes, swizzled as wgmma reads them; what lies outside of the matrix arrives as zeros.
static TensorMapSpec map_of(const TensorView& v, i32 rows) {
  const i64 row_bytes = v.shape[0] > 1 ? v.strides[0] * 2 : round_up<i64>(v.shape[1] * 2, 16);
  return {.dtype = v.dtype,
          .rank = 2,
          .base = v.data,
          .shape = {v.shape[1], v.shape[0]},
          .stride_bytes = {row_bytes},
          .box = {64, rows},
          .swizzle = Swizzle::b128};
}

static GemmMapParams map_params(const Call<A>& c) {
  const auto& config = c.config<GemmConfig>();
  return {.a = c.device.make_tensor_map(map_of(c.args.a, config.tile_m)),
          .b = c.device.make_tensor_map(map_of(c.args.b, config.tile_n)),
          .out = c.args.out.data,
          .out_stride = c.args.out.strides[0],
          .m = i32(c.problem[Axis::m]),
          .n = i32(c.problem[Axis::n]),
          .k = i32(c.problem[Axis::k])};
}

static Rejection needs_aligned_rows(const Problem& p, const DeviceInfo&) {
  const i32 vector = min_of(p.vector(&A::a), p.vector(&A::b));
  if (vector < 8) return {"alignment of a and b", 2 * vector, "{} bytes for every row", 16};
  return {};
}

static Rejection needs_hopper(const Problem& p, const DeviceInfo& device) {
  if (device.arch.number != 90) return {"arch", device.arch.number, "{}: wgmma", 90};
  if (const Rejection r = needs_aligned_rows(p, device)) return r;
  if (p.vector(&A::out) < 2 || p[Axis::n] % 2 != 0) return {"n", p[Axis::n], "even, and rows of out aligned to {} bytes", 4};
  if (p[Axis::k] == 0) return {"k", 0, "a positive one", 0};
  for (const Axis axis : {Axis::m, Axis::n, Axis::k})
    if (p[axis] > 0x7fffff00) return {name(axis), p[axis], "below 2^31", 0};
  return {};
}

static i64 tiles_of(const Problem& p, const GemmConfig& c) {
  return ceil_div<i64>(p[Axis::m], c.tile_m) * ceil_div<i64>(p[Axis::n], c.tile_n);
}

static Plan plan_thread(const Problem& p, const DeviceInfo&) {
  const GemmConfig c{p.dtype(&A::a), 1, 1, 1, 1, 256};
  Plan plan;
  plan.launch<params>(thread_kernel, c, {.x = ceil_div<i64>(p[Axis::m] * p[Axis::n], c.threads)});
  return plan;
}

static Plan plan_shared(const Problem& p, const DeviceInfo&) {
  const GemmConfig c{p.dtype(&A::a), 64, 64, 16, 1, 256};
  Plan plan;
  plan.launch<params>(shared_kernel, c, {.x = tiles_of(p, c), .smem = c.tile_k * (c.tile_m + 1 + c.tile_n + 1) * 4});
  return plan;
}

static Plan plan_mma(const Problem& p, const DeviceInfo&) {
  const GemmConfig c{p.dtype(&A::a), 128, 128, 64, 1, 128};
  Plan plan;
  plan.launch<params>(mma_kernel, c, {.x = tiles_of(p, c), .smem = gemm_smem(c).bytes});
  return plan;
}

static Plan plan_wgmma(const Problem& p, const DeviceInfo&) {
  const GemmConfig c{p.dtype(&A::a), 128, 128, 64, 1, 128};
  Plan plan;
  plan.launch<map_params>(wgmma_kernel, c, {.x = tiles_of(p, c), .smem = gemm_smem(c).bytes});
  return plan;
}

static Plan plan_ring(const Problem& p, const DeviceInfo&) {
  const GemmConfig c{p.dtype(&A::a), 128, 256, 64, 4, 384};
  Plan plan;
  plan.launch<map_params>(ring_kernel, c, {.x = tiles_of(p, c), .smem = gemm_smem(c).bytes});
  return plan;
}

static Plan plan_persistent(const Problem& p, const DeviceInfo& device) {
  const GemmConfig c{p.dtype(&A::a), 128, 256, 64, 4, 384};
  Plan plan;
  plan.launch<map_params>(persistent_kernel, c, {.x = min_of<i64>(device.sms, tiles_of(p, c)), .smem = gemm_smem(c).bytes});
  return plan;
}

/// One rounding of the result; sums of k products in f32, in an order of the kernel's, are off by about sqrt(k) roundings.
static Budget budget(const Problem& p) {
  return {.of_value = unit_roundoff(p.dtype(&A::out)), .of_magnitude = (8 + 2 * std::sqrt(double(p[Axis::k]))) * 0x1p-24};
}

static Cost cost(const Problem& p, const A&) {
  const double m = double(p[Axis::m]), n = double(p[Axis::n]), k = double(p[Axis::k]);
  return {.bytes = (m + n) * k * 2 + m * n * 2, .flops = 2 * m * n * k};
}

QN_OP(gemm, GemmArgs, "steps.gemm")
    .doc("out[i, j] = sum_x a[i, x] b[j, x]")
    .in("a", &A::a, "m k", {DType::bf16, DType::f16})
    .in("b", &A::b, "n k", like("a"))
    .out("out", &A::out, "m n", like("a"))
    .variants({{"persistent", needs_hopper, plan_persistent},
               {"ring", needs_hopper, plan_ring},
               {"wgmma", needs_hopper, plan_wgmma},
               {"mma", needs_aligned_rows, plan_mma},
               {"shared", nullptr, plan_shared},
               {"thread", nullptr, plan_thread}})
    .reference<gemm_ref>()
    .cost<cost>()
    .budget(budget)
    .rows(Axis::m)
    .cases({{"m", {65, 0, 1, 127, 129, 200}},
            {"n", {264, 0, 1, 65, 130, 520}},
            {"k", {136, 0, 1, 64, 65, 320}},
            {"a.dtype", {DType::bf16, DType::f16}},
            {"a.pad", {0, 8, 3}},
            {"b.pad", {0, 8}},
            {"out.pad", {0, 2, 1}}})
    .bench({{{"m", 4096}, {"n", 4096}, {"k", 4096}}});

}  // namespace quern::steps
