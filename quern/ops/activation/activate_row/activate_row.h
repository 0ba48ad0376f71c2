// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What the ops of the family say to the host: plan, parameters, budgets, cases. A is an op's Args.
#pragma once
#include <cmath>

#include "quern/base/host_dtype.h"
#include "quern/bricks/rows/plan.h"
#include "quern/op/fp8_output.h"
#include "quern/op/schema.h"
#include "quern/ops/activation/activate_row/spec.h"

namespace quern::activation {

extern const jit::Kernel<ActivateRowConfig, ActivateRowParams> activate_row_kernel;
extern const jit::Kernel<ActivateRowGroupsConfig, ActivateRowGroupsParams> activate_row_groups_kernel;

template <class A> constexpr bool kHasGate = requires(const A& a) { a.gate; };
template <class A> constexpr bool kIsClamped = requires(const A& a) { a.limit; };

template <class A> ActivateRowParams row_params(const Call<A>& c) {
  const A& a = c.args;
  ActivateRowParams p{};
  p.x = a.x.data, p.out = a.out.data;
  p.x_stride = a.x.strides[0], p.out_stride = a.out.strides[0];
  p.tokens = a.out.shape[0], p.columns = a.out.shape[1];
  if constexpr (kHasGate<A>) p.gate = a.gate.data, p.gate_stride = a.gate.strides[0];
  if constexpr (kIsClamped<A>) p.alpha = a.alpha, p.beta = a.beta, p.limit = a.limit;
  return p;
}
template <class A> ActivateRowGroupsParams row_groups_params(const Call<A>& c) {
  const TensorView& scales = c.args.scales;
  return {row_params<A>(c), scales.data, {scales.strides[0], scales.strides[1]}, c.args.amax_floor, 0};
}

template <class A> Plan plan_rows(const Problem& p, const DeviceInfo& device, Function function, Operands operands) {
  const i64 tokens = p[Axis::tokens], columns = p[Axis::intermediate];
  // The up half starts at column `intermediate`, so an access divides it.
  i32 widest = min_of(p.vector(&A::x), p.vector(&A::out));
  if constexpr (kHasGate<A>) widest = min_of(widest, p.vector(&A::gate));
  const i32 vector = rows::vector_of(widest, columns);
  const DType dtype = p.dtype(&A::x);
  Plan plan;
  if (p.tensor(&A::scales).present) {
    // 64 bytes of 16-bit gate and up a step and lane; two steps of f32 would take 250 registers
    const ActivateRowGroupsConfig config{dtype, p.dtype(&A::out), function, operands, vector, size_of(dtype) == 2 ? 2 : 1, 128};
    const i64 bands = ceil_div<i64>(tokens, 32 / kFp8GroupLanes * config.steps);
    const i64 across = ceil_div<i64>(columns, i64(kFp8Group) * (config.threads / 32));
    plan.launch<row_groups_params<A>>(activate_row_groups_kernel, config, {.x = bands * across, .pdl = p.pdl});
  } else {
    const ActivateRowConfig config{dtype, function, operands, {vector, 2}, 128};
    plan.launch<row_params<A>>(activate_row_kernel, config,
                               {.x = rows::chunk_blocks(config.chunks, config.threads, {tokens, columns}, device), .pdl = p.pdl});
  }
  return plan;
}
template <class A, Function kFunction, Operands kOperands> Plan plan_of(const Problem& p, const DeviceInfo& device) {
  return plan_rows<A>(p, device, kFunction, kOperands);
}

template <class A> Rejection clamped_attributes_fit(const Problem& p) {
  if (!std::isfinite(p.attr(&A::alpha))) return {"alpha", p.attr(&A::alpha), "a finite number"};
  if (!std::isfinite(p.attr(&A::beta))) return {"beta", p.attr(&A::beta), "a finite number"};
  const float limit = p.attr(&A::limit);
  if (!(limit > 0) || limit - limit != 0) return {"limit", limit, "a positive, finite number"};
  return {};
}

template <class A> Schema<A>& state_clamped_attributes(Schema<A>& schema) {
  return schema.attr("interleaved", &A::interleaved)
      .meaning("gate and up are the pairs (2i, 2i + 1) of x, as gpt-oss has them, instead of its halves")
      .attr("alpha", &A::alpha)
      .meaning("factor within the sigmoid")
      .attr("beta", &A::beta)
      .meaning("what is added to up")
      .attr("limit", &A::limit)
      .meaning("bound of gate, and of up on both sides; positive and finite");
}

/// The tensor scales; the op states its budget behind it.
template <class A> Schema<A>& state_scales(Schema<A>& schema) { return state_group_scales(schema, "tokens ceil_div(intermediate,128)"); }

/// One rounding of the result. The exponent's argument x * log2(e) is at most 126, which is rounded by 2^-18, times ln 2; log2(e) in f32 is
/// off by 2^-26.2 of itself, times 87; exp2 has 2^-22, the reciprocal 2^-23, a sum and two products 2^-24 each: below 1.14 * 2^-18. A
/// reciprocal below 2^-126 is flushed to 0, where x < -87: 2^-126 of |x up|. A result below 2^-126 may be.
inline Budget silu_budget(const Problem& p) {
  return {.of_value = unit_roundoff(p.tensors[0].dtype) + 1.14 * 0x1p-18, .of_magnitude = 0x1p-126, .absolute = 0x1p-126};
}
constexpr Budget kSiluScales = {.of_value = 0x1p-17, .of_magnitude = 0x1p-126};

/// One rounding of the result. Of |x up|, as torch's erf also has it: the kit's gelu is within 8 * 2^-24, the product rounds once more.
inline Budget gelu_budget(const Problem& p) { return {.of_value = unit_roundoff(p.tensors[0].dtype), .of_magnitude = 9 * 0x1p-24}; }
/// One rounding of the result. Of |x up|, s being the sigmoid of z = 2 sqrt(2 / pi) (x + 0.044715 x^3): z has five roundings (square, two
/// constants, fma, product), and s' |z| is at most 0.224; exp2's 2^-22 enters by s (1 - s) <= 1/4; sum, reciprocal (2 roundings) and two
/// products: 1.2 + 1 + 1 + 2 + 2 roundings of 2^-24. What is flushed is below 2^-119.
inline Budget gelu_tanh_budget(const Problem& p) {
  return {.of_value = unit_roundoff(p.tensors[0].dtype), .of_magnitude = 8 * 0x1p-24, .absolute = 0x1p-119};
}
/// The same of (|up| + |beta|) |gate|: the argument has three roundings, times 0.224; exp2 1, the sum 1, the reciprocal 2, up + beta 1, two
/// products 2: less than 8.
inline Budget clamped_swiglu_budget(const Problem& p) { return gelu_tanh_budget(p); }
/// Scales of groups of these: the error above, and a quotient.
constexpr Budget kGeluScales = {.of_value = 0x1p-23, .of_magnitude = 0x1p-20};

/// The square is rounded, and then the result.
inline Budget relu2_budget(const Problem& p) {
  const DType dtype = p.tensors[0].dtype;
  return {.of_value = unit_roundoff(dtype) + (dtype == DType::f32 ? 0 : 0x1p-24)};
}
constexpr Budget kRelu2Scales = {.of_value = 0x1p-22};

/// Where the case's word `wide` is 1, every third element of x is 8 times as large: cases reach the functions' ends.
template <class A> void widen(A& args, const Case& which, Random&) {
  const auto wide = which.find("wide"), proof = which.find("proof");
  if (wide == which.end() || wide->second == 0 || (proof != which.end() && proof->second != 0)) return;
  const TensorView& x = args.x;
  for (i64 t = 0; t < x.shape[0]; ++t)
    for (i64 i = t % 3; i < x.shape[1]; i += 3) {
      const i64 at[] = {t, i};
      store_value(x.at(at), x.dtype, 8 * load_value(x.at(at), x.dtype));
    }
}

/// What the cases of the family's ops have in common; `pads` are those of other inputs.
inline std::vector<CaseAxis> activation_cases(std::vector<CaseAxis> others = {}) {
  std::vector<CaseAxis> all = {{"tokens", {1, 0, 3, 64}},
                               {"intermediate", {2880, 1, 7, 64, 127, 768, 1025, 2056}},
                               {"x.dtype", {DType::bf16, DType::f16, DType::f32}},
                               {"x.pad", {0, 8, 3}},
                               {"out.pad", {0, 16, 1}},
                               {"wide", {0, 1}, "x reaches 27 instead of 3.4"},
                               {"fp8", {0, 1, 2}, "out is e4m3, with scales as the FP8 GEMM reads them (1) or row-major (2)"}};
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

}  // namespace quern::activation
