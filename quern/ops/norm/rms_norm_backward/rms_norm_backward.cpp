// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/norm/rms_norm_backward.h"

#include <cmath>

#include "quern/ops/norm/norm_form/norm_form.h"
#include "quern/ops/norm/rms_norm_backward/ref.h"
#include "quern/ops/norm/rms_norm_backward/spec.h"

namespace quern::norm {

using A = RmsNormBackwardArgs;

static const jit::Kernel<NormRowBackwardConfig, NormRowBackwardParams> row_kernel{"quern/ops/norm/rms_norm_backward/kernel.cuh", "norm_row_backward"};
static const jit::Kernel<NormSumPartsConfig, NormSumPartsParams> sum_kernel{"quern/ops/norm/rms_norm_backward/sum_parts.cuh", "norm_sum_parts"};

/// From dtype, alignment class and the bucket of hidden alone, so a row's bits do not depend on how many rows there are.
static NormRowBackwardConfig config_of(const Problem& p) {
  const DType dtype = p.dtype(&A::x);
  const i64 hidden = p[Axis::hidden], units = ceil_div<i64>(max_of<i64>(hidden, 1) * size_of(dtype), 16);
  i32 vector = min_of(min_of(p.vector(&A::dy), p.vector(&A::x)), min_of(p.vector(&A::weight), p.vector(&A::dx)));
  while (hidden % vector) vector /= 2;
  const bool narrow = vector * size_of(dtype) < 16;
  NormRowBackwardConfig c{dtype, p.tensor(&A::dw).present, vector, 1, 32, 256, 2};
  // A warp a row while 4 units a lane hold dy and x of it; then a block a row with 2 units a thread, which of the 128 registers
  // that 512 threads an SM may have leave some for the next row (4 units, or 1024 threads, spill 16 to 200 bytes). Longer rows are
  // read twice.
  if (units <= 32 * 4) {
    while (32 * c.held < units) c.held *= 2;
    // Each element of a narrow access takes a register; dw beside 4 units of bf16 takes 8 more than the 128 that two blocks leave a thread.
    if (narrow || (c.held == 4 && c.with_dw != 0 && dtype == DType::bf16)) c.min_blocks = 1;
    return c;
  }
  c.held = 2;
  c.threads = 128;
  while (c.threads < 512 && i64(c.threads) * c.held < units) c.threads *= 2;
  if (i64(c.threads) * c.held < units) c.threads = 1024, c.held = 0;
  if (narrow) c.held = 0;
  c.row_threads = c.threads;
  c.min_blocks = max_of(1, 512 / c.threads);
  return c;
}

/// Blocks, each of which makes a part of dw: as many as 512 threads an SM make. By the bucket of hidden, not by alignment: that
/// leaves the order of dw's sum alone.
static i64 blocks_of(const NormRowBackwardConfig& c, i64 tokens, i32 sms) {
  return min_of(ceil_div<i64>(tokens, c.threads / c.row_threads), i64(sms) * max_of(1, 512 / c.threads));
}

/// Parts are rows of whole 64 bytes.
static i64 part_stride(const Problem& p) { return round_up<i64>(p[Axis::hidden], 16); }
/// Sums of dw, one of each block of the first launch.
struct Parts {
  Region sums;
  i64 count = 0;
};

static NormRowBackwardParams row_params(const Call<A, Parts>& c) {
  const A& a = c.args;
  return {a.dy.data, a.x.data, a.weight.data, a.dx.data, c.region(c.choice.sums), a.dy.strides[0], a.x.strides[0], a.dx.strides[0], part_stride(c.problem),
          c.problem[Axis::tokens], c.problem[Axis::hidden], a.eps, a.weight_bias};
}

static NormSumPartsParams sum_params(const Call<A, Parts>& c) {
  return {c.region(c.choice.sums), c.args.dw.data, part_stride(c.problem), c.problem[Axis::hidden], c.choice.count};
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  const NormRowBackwardConfig config = config_of(p);
  const i64 blocks = blocks_of(config, p[Axis::tokens], device.sms);
  Plan plan;
  Parts parts;
  if (config.with_dw && blocks > 0) parts = {plan.scratch("parts of dw", blocks * part_stride(p) * 4), blocks};
  if (blocks > 0) plan.launch<row_params>(row_kernel, config, {.x = blocks, .smem = norm_row_backward_smem(config).bytes, .pdl = p.pdl}, parts);
  if (!config.with_dw) return plan;
  const NormSumPartsConfig sum{p.dtype(&A::dw), p[Axis::hidden] % 4 ? 1 : 4, 8, 256};
  // Where the GPU can (sm_90), its blocks are scheduled while the last rows are walked; they wait before they read
  plan.launch<sum_params>(sum_kernel, sum, {.x = ceil_div<i64>(p[Axis::hidden], sum.columns * sum.vector), .smem = norm_sum_parts_smem(sum),
                                            .pdl = plan.count > 0 ? i32(device.arch.number >= 90) : p.pdl}, parts);
  return plan;
}

/// One rounding of the result. Of the terms' magnitude, dx: r is right to 2^-19 (as in rms_norm) and enters the second term three
/// times; the mean of g * x is a tree of at most 64 roundings (2^-18), and there are fewer than 8 more; together under 2^-16.5.
/// dw: one r, and sums of independent roundings along the rows of a block, 32 lanes and at most a few hundred parts.
static Budget budget(const Problem& p) {
  return {.of_value = 0, .of_magnitude = max_of(0x1p-16, (96 + 2 * std::sqrt(double(p[Axis::tokens]))) * 0x1p-24)};
}

static void derive(Case& which) {
  if (which["dw_f32"] != 0) which["dw.dtype"] = int(DType::f32);
}

QN_OP(rms_norm_backward, RmsNormBackwardArgs, "norm.rms_norm_backward")
    .doc("dx = r (g - x r^2 mean(g x)); dw = sum_t dy x r; r = 1 / sqrt(mean(x^2) + eps), g = dy (weight + weight_bias)")
    .source("Zhang and Sennrich, Root Mean Square Layer Normalization, arXiv 1910.07467")
    .in("dy", &A::dy, "tokens hidden", {DType::f32, DType::f16, DType::bf16})
    .meaning("the gradient of rms_norm's out")
    .in("x", &A::x, "tokens hidden", like("dy"))
    .in("weight", &A::weight, "hidden", like("dy"))
    .out("dx", &A::dx, "tokens hidden", like("dy"))
    .may_be("dy")
    .out("dw", &A::dw, "hidden", like("weight", {DType::f32}))
    .optional()
    .attr("eps", &A::eps)
    .meaning("added to the mean square, from 0 to 1e30")
    .attr("weight_bias", &A::weight_bias)
    .meaning("as rms_norm adds it to the weight")
    .require(eps_fits<A>)
    .require(weight_bias_fits<A>)
    .rows(Axis::tokens)
    .plan(plan)
    .reference<rms_norm_backward_ref<double>, rms_norm_backward_ref<OrderFree>>()
    .budget(budget)
    .cases({{"tokens", {3, 0, 1, 64, 301}},
            {"hidden", {4096, 1, 7, 64, 96, 127, 768, 1023, 2056, 8192, 12000, 20000}},
            {"dy.dtype", {DType::bf16, DType::f16, DType::f32}},
            {"dw.present", {true, false}},
            {"dw_f32", {false, true}, "dw is f32"},
            {"weight_bias", {0.0, 1.0}},
            {"dy.pad", {0, 8, 3}},
            {"x.pad", {0, 8, 1}},
            {"dx.pad", {0, 16, 1}}},
           derive)
    .bench({{{"tokens", 1}, {"hidden", 4096}},
            {{"tokens", 64}, {"hidden", 4096}},
            {{"tokens", 256}, {"hidden", 8192}},
            {{"tokens", 8192}, {"hidden", 4096}},
            {{"tokens", 16384}, {"hidden", 8192}},
            {{"tokens", 65536}, {"hidden", 4096}}});

}  // namespace quern::norm
