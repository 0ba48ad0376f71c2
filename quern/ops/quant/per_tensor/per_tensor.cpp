// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/quant/per_tensor.h"

#include "quern/op/schema.h"
#include "quern/ops/quant/per_tensor/ref.h"
#include "quern/ops/quant/per_tensor/spec.h"
#include "quern/ops/quant/values/values.h"

namespace quern::quant {

static const jit::Kernel<PerTensorAmaxConfig, PerTensorParams> amax_kernel{"quern/ops/quant/per_tensor/kernel.cuh", "per_tensor_amax"};
static const jit::Kernel<PerTensorConfig, PerTensorParams> quantise_kernel{"quern/ops/quant/per_tensor/kernel.cuh", "per_tensor_quantise"};

/// Rows and columns as the kernels walk over them.
struct Extents {
  i64 m, k;
};
static Extents extents_of(const Problem& p) {
  const bool flat = p.tensor(&PerTensorArgs::x).contiguous && p.tensor(&PerTensorArgs::q).contiguous;
  return flat ? Extents{1, p[Axis::m] * p[Axis::k]} : Extents{p[Axis::m], p[Axis::k]};
}

/// Maxima of x, one of each block of the first launch; none with a static_scale.
struct Partials {
  Region maxima;
  i64 count = 0;
};

static PerTensorParams params(const Call<PerTensorArgs, Partials>& c) {
  const PerTensorArgs& a = c.args;
  const Extents e = extents_of(c.problem);
  return {.x = a.x.data,
          .q = a.q.data,
          .scale = a.scale.data,
          .static_scale = a.static_scale.data,
          .partials = c.region(c.choice.maxima),
          .x_stride = a.x.strides[0],
          .q_stride = a.q.strides[0],
          .m = e.m,
          .k = e.k,
          .partial_count = c.choice.count,
          .amax_floor = a.amax_floor,
          .unused = 0};
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  using A = PerTensorArgs;
  const Extents e = extents_of(p);
  const bool dynamic = !p.tensor(&A::static_scale).present;
  i32 vector = min_of(p.vector(&A::x), p.vector(&A::q));
  while (e.k % vector) vector /= 2;
  const PerTensorConfig config{p.dtype(&A::x), p.dtype(&A::q), vector, 4, 128, dynamic};
  const i64 chunks = e.m * ceil_div<i64>(e.k, i64(config.threads) * config.accesses * vector);
  // Where blocks begin with a reduction they are few and walk over x; 16 of them have 64 bytes a thread in flight on all of an SM.
  const i64 walkers = max_of<i64>(1, min_of<i64>(chunks, i64(device.sms) * 16));
  const i32 smem = per_tensor_smem_bytes(config.threads);
  Plan plan;
  if (dynamic) {
    const Partials partials{plan.scratch("maxima", walkers * 4), walkers};
    plan.launch<params>(amax_kernel, PerTensorAmaxConfig{config.x_dtype, vector, config.accesses, config.threads},
                        {.x = walkers, .smem = smem, .pdl = p.pdl}, partials);
    plan.launch<params>(quantise_kernel, config, {.x = walkers, .smem = smem, .pdl = device.arch.number >= 90}, partials);
  } else {
    plan.launch<params>(quantise_kernel, config,
                        {.x = max_of<i64>(1, min_of<i64>(chunks, i64(device.sms) << 16)), .smem = smem, .pdl = p.pdl}, Partials{});
  }
  return plan;
}

/// Of the cases: special puts values of values.h into x, in columns of 128; a NaN only beside a static_scale, as without it
/// nothing would be written but NaN, which outputs hold before. static_scale is made a positive number with which x saturates.
static void generate(PerTensorArgs& args, const Case& which, Random& random) {
  put_special_values(args.x, max_of<i64>(1, args.x.shape[0]), 128, which, args.static_scale.present());
  if (args.static_scale.present() && which.at("proof") == 0)
    store_value(args.static_scale.data, DType::f32, 0.001 + 0.001 * random.uniform());
}

QN_OP(per_tensor, PerTensorArgs, "quant.per_tensor")
    .doc("scale = static_scale or max(max |x|, amax_floor) / largest(q); q = x * (1 / scale), rounded to nearest even")
    .in("x", &PerTensorArgs::x, "m k", {DType::bf16, DType::f16, DType::f32})
    .in("static_scale", &PerTensorArgs::static_scale, "1", {DType::f32})
    .optional()
    .meaning("positive; absent: the scale follows from x, which is then read twice")
    .out("q", &PerTensorArgs::q, "m k", {DType::e4m3, DType::e5m2, DType::i8})
    .meaning("-128 is no value of i8")
    .out("scale", &PerTensorArgs::scale, "1", {DType::f32})
    .meaning("of q: static_scale where that is given")
    .with(state_amax_floor<PerTensorArgs>)
    .plan(plan)
    .reference<per_tensor_ref<double>, per_tensor_ref<OrderFree>>()
    .generate<generate>()
    .budget(exact)
    .cases({{"m", {5, 0, 1, 3, 64}},
            {"k", {1024, 0, 1, 7, 64, 127, 129, 1000, 20000}},
            {"static_scale.present", {false, true}},
            {"x.dtype", {DType::bf16, DType::f16, DType::f32}},
            {"q.dtype", {DType::e4m3, DType::e5m2, DType::i8}},
            {"amax_floor", {1e-4, 1e-10}},
            {"special", {0, 1}, "x has blocks of zeros, tiny and largest values, infinities and NaN"},
            {"x.pad", {0, 8, 3}},
            {"q.pad", {0, 16, 1}}})
    .bench({{{"m", 1}, {"k", 7168}, {"static_scale.present", 1}},
            {{"m", 4096}, {"k", 7168}, {"static_scale.present", 1}},
            {{"m", 16384}, {"k", 7168}, {"static_scale.present", 1}},
            {{"m", 1}, {"k", 7168}},
            {{"m", 1024}, {"k", 7168}},
            {{"m", 16384}, {"k", 7168}}});

}  // namespace quern::quant
