// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/sampling/argmax.h"

#include "quern/ops/sampling/argmax/ref.h"
#include "quern/ops/sampling/argmax/spec.h"
#include "quern/ops/sampling/filters/cases.h"
#include "quern/ops/sampling/filters/filters.h"

namespace quern::sampling {

using A = ArgmaxArgs;

static const jit::Kernel<ArgmaxConfig, ArgmaxParams> row_kernel{"quern/ops/sampling/argmax/kernel.cuh", "argmax_row"};

static ArgmaxParams params(const Call<A>& c) {
  const A& a = c.args;
  return {a.logits.data,    static_cast<i32*>(a.out.data), static_cast<u8*>(a.valid.data), a.logits.strides[0], a.logits.shape[0],
          a.logits.shape[1]};
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  static const Axis rows = axis_of("rows"), vocab = axis_of("vocab");
  const RowLayout layout = row_layout(p.dtype(&A::logits), p.vector(&A::logits), p[rows], p[vocab], device);
  const ArgmaxConfig config{{layout, RowKind::logits}, layout.threads, resident_blocks(layout)};
  Plan plan;
  plan.launch<params>(row_kernel, config, row_grid(layout, p[rows], p[vocab], device, p.pdl));
  return plan;
}

static void generate(A& a, const Case& which, Random& random) { fill_sampling_rows(a.logits, which, false, random); }

QN_OP(argmax, A, "sampling.argmax")
    .doc("out = the index of the largest logit, the lowest of equal ones")
    .in("logits", &A::logits, "rows vocab", {DType::f32, DType::f16, DType::bf16})
    .values(generated())
    .out("out", &A::out, "rows", {DType::i32})
    .out("valid", &A::valid, "rows", {DType::u8})
    .optional()
    .meaning("1, or 0 for a row with a NaN or without anything above -inf; out is 0 then")
    .rows(axis_of("rows"))
    .require(vocab_fits<A>)
    .plan(plan)
    .reference<argmax_ref>()
    .generate<generate>()
    .exact("indices are integers, found by the order of values: other number types have none")
    .cases({{"rows", {23, 1, 0, 5}},
            {"vocab", {1000, 1, 2, 7, 33, 128, 513, 4099}},
            {"logits.dtype", {DType::f32, DType::bf16, DType::f16}},
            {"valid.present", {true, false}},
            row_kinds(),
            {"logits.pad", {0, 8, 1}}})
    .bench({{{"rows", 1}, {"vocab", 128256}, {"data", 0}},
            {{"rows", 16}, {"vocab", 128256}, {"data", 0}},
            {{"rows", 64}, {"vocab", 128256}, {"data", 0}},
            {{"rows", 256}, {"vocab", 128256}, {"data", 0}},
            {{"rows", 256}, {"vocab", 262144}, {"data", 0}}});

}  // namespace quern::sampling
