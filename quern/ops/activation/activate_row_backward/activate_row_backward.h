// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What the backward ops of the family say to the host: plan, parameters, budgets, cases. A is an op's Args.
#pragma once
#include "quern/ops/activation/activate_row/activate_row.h"
#include "quern/ops/activation/activate_row_backward/spec.h"

namespace quern::activation {

extern const jit::Kernel<ActivateRowBackwardConfig, ActivateRowBackwardParams> activate_row_backward_kernel;

template <class A> ActivateRowBackwardParams backward_params(const Call<A>& c) {
  const A& a = c.args;
  ActivateRowBackwardParams p{};
  p.row.x = a.x.data, p.row.out = a.dx.data, p.dy = a.dy.data;
  p.row.x_stride = a.x.strides[0], p.row.out_stride = a.dx.strides[0], p.dy_stride = a.dy.strides[0];
  p.row.tokens = a.dy.shape[0], p.row.columns = a.dy.shape[1];
  if constexpr (kHasGate<A>)
    p.row.gate = a.gate.data, p.row.gate_stride = a.gate.strides[0], p.dgate = a.dgate.data, p.dgate_stride = a.dgate.strides[0];
  if constexpr (kIsClamped<A>) p.row.alpha = a.alpha, p.row.beta = a.beta, p.row.limit = a.limit;
  return p;
}

template <class A> Plan plan_backward(const Problem& p, const DeviceInfo& device, Function function, Operands operands) {
  const i64 tokens = p[Axis::tokens], columns = p[Axis::intermediate];
  // The up half starts at column `intermediate`, so an access divides it.
  i32 widest = min_of(min_of(p.vector(&A::x), p.vector(&A::dx)), p.vector(&A::dy));
  if constexpr (kHasGate<A>) widest = min_of(widest, min_of(p.vector(&A::gate), p.vector(&A::dgate)));
  const ActivateRowBackwardConfig config{p.dtype(&A::x), function, operands, {rows::vector_of(widest, columns), 2}, 128};
  Plan plan;
  plan.launch<backward_params<A>>(activate_row_backward_kernel, config,
                                  {.x = rows::chunk_blocks(config.chunks, config.threads, {tokens, columns}, device), .pdl = p.pdl});
  return plan;
}
template <class A, Function kFunction, Operands kOperands> Plan plan_backward_of(const Problem& p, const DeviceInfo& device) {
  return plan_backward<A>(p, device, kFunction, kOperands);
}

/// One rounding of the result. Of |dy up| s (1 + |x| (1 - s)), or |dy x| s: s is right to 1.14 * 2^-18 (as in silu) and so is 1 - s; each
/// enters once more by the other's exponential; with five products below 2^-16. A flushed exponential is below 2^-126, and below
/// 2^-119 times an |x| of up to 104; of s see kFlushedSigmoid.
inline Budget silu_backward_budget(const Problem& p) {
  return {.of_value = unit_roundoff(p.tensors[0].dtype), .of_magnitude = 0x1p-16, .absolute = 0x1p-119};
}
/// One rounding of the result. Of |dy up|, or |dy x|: the tail is within 4 * 2^-24, 1 less it rounds once; the density times x is at most
/// 0.242: its square and its argument round with a weight of 0.231 each, exp2 has 4 * 2^-24, the two products and the sum round; dy up and
/// its product twice more: below 10 * 2^-24.
inline Budget gelu_backward_budget(const Problem& p) {
  return {.of_value = unit_roundoff(p.tensors[0].dtype), .of_magnitude = 10 * 0x1p-24, .absolute = 0x1p-119};
}
/// One rounding of the result. Of |dy up|, or |dy x|, z being the sigmoid's argument: s has 5.2 roundings (as in gelu_tanh); x s (1 - s)
/// dz/dx is at most 1.1, and five roundings of z enter by 3 z^2 exp(-|z|) <= 1.6, exp2 and the reciprocal twice by 10, five products by 1.1
/// each; sums and the last products 3: below 40 * 2^-24.
inline Budget gelu_tanh_backward_budget(const Problem& p) {
  return {.of_value = unit_roundoff(p.tensors[0].dtype), .of_magnitude = 40 * 0x1p-24, .absolute = 0x1p-119};
}
/// The product with 2 max(x, 0) is rounded in f32, and then the result.
inline Budget relu2_backward_budget(const Problem& p) { return relu2_budget(p); }

/// What the cases of these ops have in common.
inline std::vector<CaseAxis> backward_cases(std::vector<CaseAxis> others = {}) {
  std::vector<CaseAxis> all = {{"tokens", {1, 0, 3, 64}},
                               {"intermediate", {2880, 1, 7, 65, 96, 160, 320, 768, 1025, 2056}},
                               {"x.dtype", {DType::bf16, DType::f16, DType::f32}},
                               {"x.pad", {0, 8, 3}},
                               {"dy.pad", {0, 8, 1}},
                               {"dx.pad", {0, 16, 1}},
                               {"wide", {0, 1}, "x reaches 27 instead of 3.4"}};
  all.insert(all.end(), others.begin(), others.end());
  return all;
}
inline std::vector<Case> backward_bench() {
  return {
      {{"tokens", 1}, {"intermediate", 14336}}, {{"tokens", 4096}, {"intermediate", 14336}}, {{"tokens", 16384}, {"intermediate", 14336}}};
}

}  // namespace quern::activation
