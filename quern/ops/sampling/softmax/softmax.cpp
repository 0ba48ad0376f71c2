// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/sampling/softmax.h"

#include "quern/ops/sampling/filters/cases.h"
#include "quern/ops/sampling/filters/filters.h"
#include "quern/ops/sampling/softmax/ref.h"
#include "quern/ops/sampling/softmax/spec.h"

namespace quern::sampling {

using A = SoftmaxArgs;

static const jit::Kernel<SoftmaxConfig, SoftmaxParams> row_kernel{"quern/ops/sampling/softmax/kernel.cuh", "softmax_row"};

static SoftmaxParams params(const Call<A>& c) {
  const A& a = c.args;
  return {a.logits.data,
          static_cast<float*>(a.out.data),
          floats(a.temperatures),
          a.temperature,
          0,
          a.logits.strides[0],
          a.out.strides[0],
          a.logits.shape[0],
          a.logits.shape[1]};
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  static const Axis rows = axis_of("rows"), vocab = axis_of("vocab");
  const RowLayout layout = row_layout(p.dtype(&A::logits), p.vector(&A::logits), p[rows], p[vocab], device, {.threads = kMostRowThreads});
  const SoftmaxConfig config{{layout, RowKind::logits}, store_width(layout, p.vector(&A::out), 4), layout.threads, resident_blocks(layout)};
  Plan plan;
  plan.launch<params>(row_kernel, config, row_grid(layout, p[rows], p[vocab], device, p.pdl));
  return plan;
}

static void generate(A& a, const Case& which, Random& random) {
  const double inf = std::numeric_limits<double>::infinity(),
               temperatures[] = {1, 0.7, 0, 2.5, 1e-6, 1e-5, 1e-4, 100, std::numeric_limits<double>::quiet_NaN(), -1, inf};
  const bool alone = a.logits.shape[0] == 1;  // then a row whose results are numbers: where all are NaN, nothing is compared
  const auto data = which.find("data");
  if (alone && (data == which.end() || data->second < 0)) fill_sampling_row(a.logits, 0, int(random.below(6)), false, random);
  else fill_sampling_rows(a.logits, which, false, random);
  for (i64 row = 0; row < a.logits.shape[0]; ++row)
    if (a.temperatures.present()) set_value(a.temperatures, row, temperatures[random.below(alone || random.below(4) ? 8 : 11)]);
}

static void derive(Case& which) {
  if (which["temperatures.present"] != 0) which["temperature"] = 1;
  if (which["logits.dtype"] != int(DType::f32)) which["out.in_place"] = 0;
}

QN_OP(softmax, A, "sampling.softmax")
    .doc("out = exp(logits / temperature) / sum of these over the row, the sum exact")
    .in("logits", &A::logits, "rows vocab", {DType::f32, DType::f16, DType::bf16})
    .values(generated())
    .in("temperatures", &A::temperatures, "rows", {DType::f32})
    .optional()
    .values(generated())
    .meaning("in the place of temperature; negative, infinite and NaN: the row becomes NaN")
    .out("out", &A::out, "rows vocab", {DType::f32})
    .may_be("logits")
    .attr("temperature", &A::temperature)
    .meaning("logits are divided by it; below 1e-5 the result is 1 at the largest")
    .rows(axis_of("rows"))
    .backward("sampling.softmax_backward", {{"dy", "out"}, {"dlogits", "logits"}})
    .require(vocab_fits<A>)
    .require(temperature_fits<A>)
    .plan(plan)
    .reference<softmax_ref>()
    .generate<generate>()
    .exact("results are quotients of integer masses: other number types have none")
    .cases({{"rows", {23, 1, 0, 5}},
            {"vocab", {1000, 1, 2, 7, 33, 128, 513, 4099}},
            {"logits.dtype", {DType::f32, DType::bf16, DType::f16}},
            {"temperatures.present", {true, false}},
            {"temperature", {1.0, 0.6, 0.0}},
            row_kinds(),
            {"logits.pad", {0, 8, 1}},
            {"out.pad", {0, 4, 1}}},
           derive)
    .bench({{{"rows", 1}, {"vocab", 128256}, {"data", 0}},
            {{"rows", 16}, {"vocab", 128256}, {"data", 0}},
            {{"rows", 64}, {"vocab", 128256}, {"data", 0}},
            {{"rows", 256}, {"vocab", 128256}, {"data", 0}},
            {{"rows", 256}, {"vocab", 262144}, {"data", 0}}});

}  // namespace quern::sampling
