// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/sampling/renorm.h"

#include "quern/ops/sampling/filters/cases.h"
#include "quern/ops/sampling/filters/filters.h"
#include "quern/ops/sampling/renorm/ref.h"
#include "quern/ops/sampling/renorm/spec.h"

namespace quern::sampling {

using A = RenormArgs;

static const jit::Kernel<RenormConfig, RenormParams> row_kernel{"quern/ops/sampling/renorm/kernel.cuh", "renorm_row"};

static RenormParams params(const Call<A>& c) {
  const A& a = c.args;
  return {a.probs.data,    static_cast<float*>(a.out.data), filter_params(a), a.probs.strides[0], a.out.strides[0], a.probs.shape[0],
          a.probs.shape[1]};
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  static const Axis rows = axis_of("rows"), vocab = axis_of("vocab");
  const RowLayout layout = row_layout(p.dtype(&A::probs), p.vector(&A::probs), p[rows], p[vocab], device);
  const RenormConfig config{{layout, RowKind::probs}, store_width(layout, p.vector(&A::out), 4), layout.threads, resident_blocks(layout)};
  Plan plan;
  plan.launch<params>(row_kernel, config, row_grid(layout, p[rows], p[vocab], device, p.pdl));
  return plan;
}

static void generate(A& a, const Case& which, Random& random) {
  fill_sampling_rows(a.probs, which, true, random);
  fill_filters(a, a.probs.shape[0], a.probs.shape[1], random);
}

static void derive(Case& which) {
  derive_filters(which);
  if (which["probs.dtype"] != int(DType::f32)) which["out.in_place"] = 0;
}

QN_OP(renorm, A, "sampling.renorm")
    .doc("out = probs / the exact sum of those that survive top_k, top_p and min_p, 0 of those that do not")
    .in("probs", &A::probs, "rows vocab", {DType::f32, DType::f16, DType::bf16})
    .values(generated())
    .with(state_filter_tensors<A>)
    .out("out", &A::out, "rows vocab", {DType::f32})
    .may_be("probs")
    .with(state_filter_numbers<A>)
    .with(state_filter_order<A>)
    .rows(axis_of("rows"))
    .require(vocab_fits<A>)
    .require(filters_fit<A>)
    .plan(plan)
    .reference<renorm_ref>()
    .generate<generate>()
    .exact("results are quotients of integer masses: other number types have none")
    .cases({{"rows", {23, 1, 0, 5}},
            {"vocab", {1000, 1, 2, 7, 33, 128, 513, 4099}},
            {"probs.dtype", {DType::f32, DType::bf16, DType::f16}},
            {"tensors", {true, false}, "filters are tensors"},
            {"top_k", {0, 5, 100}},
            {"top_p", {1.0, 0.9, 0.3}},
            {"min_p", {0.0, 0.05}},
            {"order", {0, 1}},
            {"min_p_first", {false, true}},
            {"ties", {0, 1}},
            row_kinds(),
            {"probs.pad", {0, 8, 1}},
            {"out.pad", {0, 4, 1}}},
           derive)
    .bench({{{"rows", 1}, {"vocab", 128256}, {"data", 0}, {"tensors", 0}, {"top_p", 0.9}},
            {{"rows", 64}, {"vocab", 128256}, {"data", 0}, {"tensors", 0}, {"top_p", 0.9}},
            {{"rows", 256}, {"vocab", 128256}, {"data", 0}, {"tensors", 0}, {"top_p", 0.9}},
            {{"rows", 256}, {"vocab", 128256}, {"data", 0}, {"tensors", 0}, {"top_k", 50}}});

}  // namespace quern::sampling
