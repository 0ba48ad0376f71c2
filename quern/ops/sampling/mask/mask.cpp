// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/sampling/mask.h"

#include "quern/ops/sampling/filters/cases.h"
#include "quern/ops/sampling/filters/filters.h"
#include "quern/ops/sampling/mask/ref.h"
#include "quern/ops/sampling/mask/spec.h"

namespace quern::sampling {

using A = MaskArgs;

static const jit::Kernel<MaskConfig, MaskParams> row_kernel{"quern/ops/sampling/mask/kernel.cuh", "mask_row"};

static MaskParams params(const Call<A>& c) {
  const A& a = c.args;
  return {a.logits.data, a.out.data, filter_params(a), a.logits.strides[0], a.out.strides[0], a.logits.shape[0], a.logits.shape[1]};
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  static const Axis rows = axis_of("rows"), vocab = axis_of("vocab");
  const RowLayout layout = row_layout(p.dtype(&A::logits), p.vector(&A::logits), p[rows], p[vocab], device);
  const MaskConfig config{
      {layout, RowKind::logits}, store_width(layout, p.vector(&A::out), size_of(layout.dtype)), layout.threads, resident_blocks(layout)};
  Plan plan;
  plan.launch<params>(row_kernel, config, row_grid(layout, p[rows], p[vocab], device, p.pdl));
  return plan;
}

static void generate(A& a, const Case& which, Random& random) {
  fill_sampling_rows(a.logits, which, false, random);
  fill_filters(a, a.logits.shape[0], a.logits.shape[1], random);
}

QN_OP(mask, A, "sampling.mask")
    .doc("out = logits of those that survive top_k, top_p and min_p, -inf of those that do not")
    .in("logits", &A::logits, "rows vocab", {DType::f32, DType::f16, DType::bf16})
    .values(generated())
    .in("temperatures", &A::temperatures, "rows", {DType::f32})
    .optional()
    .values(generated())
    .meaning("in the place of temperature; negative, infinite and NaN: the row becomes NaN")
    .with(state_filter_tensors<A>)
    .out("out", &A::out, "rows vocab", like("logits"))
    .may_be("logits")
    .attr("temperature", &A::temperature)
    .meaning("of the masses that top_p and min_p look at; below 1e-5 the largest alone survives")
    .with(state_filter_numbers<A>)
    .with(state_filter_order<A>)
    .rows(axis_of("rows"))
    .require(vocab_fits<A>)
    .require(temperature_fits<A>)
    .require(filters_fit<A>)
    .plan(plan)
    .reference<mask_ref>()
    .generate<generate>()
    .exact("survivors are chosen by integer masses: other number types have none")
    .cases({{"rows", {23, 1, 0, 5}},
            {"vocab", {1000, 1, 2, 7, 33, 128, 513, 4099}},
            {"logits.dtype", {DType::f32, DType::bf16, DType::f16}},
            {"tensors", {true, false}, "temperature and filters are tensors"},
            {"temperature", {0.8, 1.0, 0.0}},
            {"top_k", {0, 5, 100}},
            {"top_p", {1.0, 0.9, 0.3}},
            {"min_p", {0.0, 0.05}},
            {"order", {0, 1}},
            {"min_p_first", {false, true}},
            {"ties", {0, 1}},
            row_kinds(),
            {"logits.pad", {0, 8, 1}},
            {"out.pad", {0, 4, 1}}},
           derive_filters)
    .bench({{{"rows", 1}, {"vocab", 128256}, {"data", 0}, {"tensors", 0}, {"top_p", 0.9}},
            {{"rows", 64}, {"vocab", 128256}, {"data", 0}, {"tensors", 0}, {"top_p", 0.9}},
            {{"rows", 256}, {"vocab", 128256}, {"data", 0}, {"tensors", 0}, {"top_p", 0.9}},
            {{"rows", 256}, {"vocab", 128256}, {"data", 0}, {"tensors", 0}, {"top_k", 50}}});

}  // namespace quern::sampling
