// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/sampling/softmax_backward.h"

#include <limits>

#include "quern/base/host_dtype.h"
#include "quern/bricks/rows/plan.h"
#include "quern/ops/sampling/filters/cases.h"
#include "quern/ops/sampling/filters/filters.h"
#include "quern/ops/sampling/softmax_backward/ref.h"
#include "quern/ops/sampling/softmax_backward/spec.h"

namespace quern::sampling {

using A = SoftmaxBackwardArgs;

static const char* const kSource = "quern/ops/sampling/softmax_backward/kernel.cuh";
static const jit::Kernel<SoftmaxBackwardConfig, SoftmaxBackwardParams> row_kernel{kSource, "softmax_backward_row"};
static const jit::Kernel<SoftmaxBackwardConfig, SoftmaxBackwardParams> dots_kernel{kSource, "softmax_backward_dots"};
static const jit::Kernel<SoftmaxResultsConfig, SoftmaxBackwardParams> results_kernel{kSource, "softmax_backward_results"};

/// For all launches: the chunks of a row, and their sums where there are several.
struct Dots {
  Region parts;
  i64 chunks = 1;
};

static SoftmaxBackwardParams params(const Call<A, Dots>& c) {
  const A& a = c.args;
  return {a.dy.data,
          a.out.data,
          floats(a.temperatures),
          a.dlogits.data,
          c.region(c.choice.parts),
          a.dy.strides[0],
          a.out.strides[0],
          a.dlogits.strides[0],
          a.dy.shape[0],
          a.dy.shape[1],
          c.choice.chunks,
          a.temperature,
          0};
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  static const Axis axis = axis_of("rows"), vocab = axis_of("vocab");
  const DType dtype = p.dtype(&A::dy), out_dtype = p.dtype(&A::dlogits);
  i32 widest = min_of(p.vector(&A::dy), p.vector(&A::out));
  // Wider results are stored by accesses of 16 bytes, where these are aligned
  const i32 alignment = p.tensor(&A::dlogits).alignment;
  if (alignment < min_of(16, widest * size_of(out_dtype))) widest = max_of(1, alignment / size_of(out_dtype));
  const rows::DotShape shape = rows::dot_shape(dtype, widest, p[vocab]);
  const SoftmaxBackwardConfig config{dtype, out_dtype, shape.dots, shape.threads};
  const Grid grid{.x = rows::dot_blocks(shape, p[axis], device), .smem = rows::row_dots_bytes(shape.dots, shape.threads), .pdl = p.pdl};
  Plan plan;
  if (shape.chunks == 1) {
    plan.launch<params>(row_kernel, config, grid, Dots{});
    return plan;
  }
  const Dots dots{plan.scratch("dot products of chunks", p[axis] * shape.chunks * 4), shape.chunks};
  plan.launch<params>(dots_kernel, config, grid, dots);
  const SoftmaxResultsConfig results{dtype, out_dtype, {shape.dots.vector, 2}, 128};
  plan.launch<params>(
      results_kernel, results,
      {.x = rows::chunk_blocks(results.chunks, results.threads, {p[axis], p[vocab]}, device), .pdl = i32(device.arch.number >= 90)}, dots);
  return plan;
}

/// One rounding of the result. Of |y| (|dy| + sum |dy y|) / temperature: a thread adds at most 16 products, a chunk's threads 5 and 32
/// sums, a lane one 32nd of the chunks, then 5; the difference, the reciprocal and two products round once more each.
static Budget budget(const Problem& p) {
  static const Axis vocab = axis_of("vocab");
  const double chunks = double(p[vocab]) * size_of(p.tensors[0].dtype) / 8192 / 32;
  return {.of_value = 0, .of_magnitude = (64 + chunks) * 0x1p-24};
}

/// Results of a softmax: positive, most of them small, of sum 1 or so. Some temperatures choose the largest, and then some rows are 0
/// and 1.
static void generate(A& a, const Case& which, Random& random) {
  const auto proof = which.find("proof");
  const double temperatures[] = {1, 0.7, 0, 2.5, 1e-6, 1e-5, 100};
  for (i64 row = 0; row < a.out.shape[0]; ++row) {
    if (a.temperatures.present()) set_value(a.temperatures, row, temperatures[random.below(7)]);
    if (proof != which.end() && proof->second != 0) continue;
    double sum = 0;
    for (const bool write : {false, true})
      for (i64 i = 0; i < a.out.shape[1]; ++i) {
        const i64 at[] = {row, i};
        const double v = load_value(a.out.at(at), a.out.dtype), share = std::exp(3 * v);
        if (write) store_value(a.out.at(at), a.out.dtype, share / sum);
        else sum += share;
      }
  }
}

static void derive(Case& which) {
  if (which["temperatures.present"] != 0) which["temperature"] = 1;
  const i64 other = i64(which["result"]);
  if (other != 0) which["dlogits.dtype"] = int(other == 1 ? DType::f32 : other == 2 ? DType::f16 : DType::bf16);
  if (other != 0 && which["dlogits.dtype"] != which["dy.dtype"]) which["dlogits.in_place"] = 0;
}

QN_OP(softmax_backward, A, "sampling.softmax_backward")
    .doc("dlogits = out (dy - sum(dy out)) / temperature, the sum over the row")
    .in("dy", &A::dy, "rows vocab", {DType::f32, DType::f16, DType::bf16})
    .meaning("the gradient of softmax's out")
    .in("out", &A::out, "rows vocab", like("dy"))
    .meaning("what softmax gave")
    .in("temperatures", &A::temperatures, "rows", {DType::f32})
    .optional()
    .values(generated())
    .meaning("in the place of temperature")
    .out("dlogits", &A::dlogits, "rows vocab", like("dy", {DType::f32, DType::f16, DType::bf16}))
    .may_be("dy")
    .attr("temperature", &A::temperature)
    .meaning("as softmax was given it; below 1e-5 the gradient is 0")
    .require(temperature_fits<A>)
    .rows(axis_of("rows"))
    .plan(plan)
    .reference<softmax_backward_ref<double>, softmax_backward_ref<OrderFree>>()
    .generate<generate>()
    .budget(budget)
    .cases({{"rows", {23, 1, 0, 5}},
            {"vocab", {1000, 1, 2, 7, 33, 65, 96, 160, 320, 768, 513, 4099, 20000, 66000}},
            {"dy.dtype", {DType::f32, DType::bf16, DType::f16}},
            {"result", {0, 1, 2, 3}, "dlogits is like dy (0), f32 (1), f16 (2) or bf16 (3)"},
            {"temperatures.present", {false, true}},
            {"temperature", {1.0, 0.6, 0.0}},
            {"dy.pad", {0, 8, 1}},
            {"out.pad", {0, 8, 1}},
            {"dlogits.pad", {0, 4, 1}}},
           derive)
    .bench({{{"rows", 1}, {"vocab", 128256}},
            {{"rows", 256}, {"vocab", 128256}},
            {{"rows", 2048}, {"vocab", 128}},
            {{"rows", 2048}, {"vocab", 4096}},
            {{"rows", 4}, {"vocab", 1048576}}});

}  // namespace quern::sampling
