// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/quant/packbits.h"

#include "quern/bricks/rows/plan.h"
#include "quern/op/schema.h"
#include "quern/ops/quant/packbits/ref.h"
#include "quern/ops/quant/packbits/spec.h"
#include "quern/ops/quant/values/values.h"

namespace quern::quant {

using A = PackbitsArgs;

static const jit::Kernel<PackbitsConfig, PackbitsParams> chunk_kernel{"quern/ops/quant/packbits/kernel.cuh", "packbits_chunk"};

static PackbitsParams params(const Call<A>& c) { return {c.args.x.data, c.args.out.data, c.args.x.shape[0]}; }

static Plan plan(const Problem& p, const DeviceInfo& device) {
  static const Axis bits = axis_of("bits");
  const PackbitsConfig config{p.attr(&A::bit_order), p.tensor(&A::x).alignment >= 8, {1, 4}, 128};
  Plan plan;
  plan.launch<params>(chunk_kernel, config,
                      {.x = rows::chunk_blocks(config.chunks, config.threads, {1, ceil_div<i64>(p[bits], 8)}, device), .pdl = p.pdl});
  return plan;
}

static void generate(A& args, const Case&, Random& random) { put_bools(args.x, random); }

QN_OP(packbits, A, "quant.packbits")
    .doc("out[i / 8] has x[i] != 0 as its bit 7 - i % 8 (big) or i % 8 (little); bits of no element are 0")
    .in("x", &A::x, "bits", {DType::u8})
    .values(generated())
    .contents(each_within("0", "255"))
    .meaning("bools as bytes; whatever is not 0 is 1")
    .out("out", &A::out, "ceil_div(bits,8)", {DType::u8})
    .attr("bit_order", &A::bit_order)
    .words({"big", "little"})
    .meaning("big: the first of eight elements is bit 7, as NumPy has it; little: bit 0, as masks have it")
    .plan(plan)
    .reference<packbits_ref>()
    .generate<generate>()
    .exact("bits are integers: other number types have none")
    .cases({{"bits", {1000, 0, 1, 7, 8, 9, 63, 64, 4096, 20001}}, {"bit_order", {0, 1}}, {"x.shift", {0, 1, 4, 8}}})
    .bench({{{"bits", 1 << 16}}, {{"bits", 1 << 22}}, {{"bits", 1 << 28}}});

}  // namespace quern::quant
