// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/quant/dequantise_fp4.h"

#include "quern/bricks/rows/plan.h"
#include "quern/op/schema.h"
#include "quern/ops/quant/dequantise_fp4/ref.h"
#include "quern/ops/quant/dequantise_fp4/spec.h"

namespace quern::quant {

using A = DequantiseFp4Args;

static const jit::Kernel<DequantiseFp4Config, DequantiseFp4Params> chunk_kernel{"quern/ops/quant/dequantise_fp4/kernel.cuh",
                                                                                "dequantise_fp4_chunk"};

static i64 pairs_of(const Problem& p) {
  static const Axis pairs = axis_of("pairs");
  return p[pairs];
}

static DequantiseFp4Params params(const Call<A>& c) {
  const A& a = c.args;
  return {.x = a.x.data,
          .scales = a.scales.data,
          .global_scale = a.global_scale.data,
          .out = a.out.data,
          .x_stride = a.x.strides[0],
          .out_stride = a.out.strides[0],
          .scale_strides = {a.scales.strides[0], a.scales.strides[1]},
          .m = a.x.shape[0],
          .pairs = a.x.shape[1]};
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  // 8 bytes of x are 32 of bf16: a thread stores as much as others load
  const i32 vector = rows::vector_of(min_of(8, p.vector(&A::x)), pairs_of(p));
  const DequantiseFp4Config config{.out_dtype = p.dtype(&A::out),
                                   .e8m0 = p.dtype(&A::scales) == DType::u8,
                                   .group = p.attr(&A::group_size),
                                   .has_global = p.tensor(&A::global_scale).present,
                                   .chunks = {vector, 2},
                                   .store = min_of(2 * vector, p.vector(&A::out)),
                                   .threads = 128};
  Plan plan;
  plan.launch<params>(chunk_kernel, config,
                      {.x = rows::chunk_blocks(config.chunks, config.threads, {p[Axis::m], pairs_of(p)}, device), .pdl = p.pdl});
  return plan;
}

static Rejection group_fits(const Problem& p) {
  const i32 group = p.attr(&A::group_size);
  return group == 16 || group == 32 ? Rejection{} : Rejection{"group_size", group, "16 or 32", 0};
}

/// All bytes; scales from 2^-10 to 2^10, with the word `special` also zeros, the least, the largest and NaN.
static void generate(A& a, const Case& which, Random& random) {
  const auto at = which.find("special");
  const bool special = at != which.end() && at->second != 0, e8m0 = a.scales.dtype == DType::u8;
  for (i64 i = 0; i < a.x.shape[0]; ++i) {
    for (i64 j = 0; j < a.x.shape[1]; ++j) {
      const i64 here[] = {i, j};
      *static_cast<u8*>(a.x.at(here)) = u8(random.below(256));
    }
    for (i64 g = 0; g < a.scales.shape[1]; ++g) {
      const i64 here[] = {i, g};
      u8& scale = *static_cast<u8*>(a.scales.at(here));
      if (e8m0) scale = u8(117 + random.below(21));
      if (!special || random.below(2)) continue;
      const u8 exponents[] = {0, 1, 254, 255}, small[] = {0x00, 0x01, 0x7e, 0x7f};  // of e4m3: 0, 2^-9, 448 and NaN
      scale = e8m0 ? exponents[random.below(4)] : small[random.below(4)];
    }
  }
}

QN_OP(dequantise_fp4, A, "quant.dequantise_fp4")
    .doc(
        "out[i, j] = e2m1(x[i, j]) * scales[i, j / group_size] * global_scale; elements 2 j and 2 j + 1 are the low and high four bits of a byte")
    .source("Open Compute Project, OCP Microscaling Formats (MX) Specification, version 1.0")
    .in("x", &A::x, "m pairs", {DType::u8})
    .values(generated())
    .contents(each_within("0", "255"))
    .meaning("two elements a byte: a sign and one of 0, 0.5, 1, 1.5, 2, 3, 4, 6")
    .attr("group_size", &A::group_size)
    .meaning("columns that share a scale: 16 of NVFP4, 32 of MXFP4")
    .in("scales", &A::scales, "m ceil_div(2*pairs,group_size)", {DType::e4m3, DType::u8})
    .strided()
    .meaning("u8: E8M0, the byte e of 2^(e - 127); 255 is NaN")
    .in("global_scale", &A::global_scale, "1", {DType::f32})
    .optional()
    .meaning("a factor of all; absent: 1")
    .out("out", &A::out, "m 2*pairs", {DType::bf16, DType::f16, DType::f32})
    .require(group_fits)
    .rows(Axis::m)
    .plan(plan)
    .reference<dequantise_fp4_ref>()
    .generate<generate>()
    .exact("FP4 is decoded by its bits: other number types have none")
    .cases({{"m", {5, 0, 1, 64}},
            {"pairs", {512, 0, 1, 3, 8, 20, 64, 1000, 3584}},
            {"group_size", {16, 32}},
            {"scales.dtype", {DType::e4m3, DType::u8}},
            {"global_scale.present", {false, true}},
            {"out.dtype", {DType::bf16, DType::f16, DType::f32}},
            {"special", {0, 1}, "scales are also 0, the least, the largest and NaN"},
            {"scales.transposed", {false, true}},
            {"scales.pad", {0, 3}},
            {"x.pad", {0, 8, 3}},
            {"out.pad", {0, 8, 1}}})
    .bench({{{"m", 1}, {"pairs", 3584}},
            {{"m", 4096}, {"pairs", 3584}, {"global_scale.present", 1}},
            {{"m", 16384}, {"pairs", 3584}, {"group_size", 32}, {"scales.dtype", DType::u8}}});

}  // namespace quern::quant
