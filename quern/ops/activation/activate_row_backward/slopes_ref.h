// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The derivatives of the family's functions by their definitions, and the walk of their references.
#pragma once
#include <cmath>

#include "quern/ops/activation/activate_row/functions_ref.h"

namespace quern::activation {

/// f(x) and f'(x), and what their errors are relative to.
template <class Real> struct SlopeTerm {
  Real value, slope, value_size, slope_size;
};

/// 1 - s where s = 1 / (1 + exp(-h)). In order-free numbers as the kernels have it, whose result has no exponent either.
inline double rest_ref(double h) { return 1 / (1 + std::exp(h)); }
inline OrderFree rest_ref(OrderFree h) { return exp(-h) * (OrderFree(1) / (OrderFree(1) + exp(-h))); }

/// s + factor s (1 - s), whose limit is s where s (1 - s) is 0.
template <class Real> Real sigmoid_slope_of(Real s, Real rest, Real factor) {
  const Real both = s * rest;
  return both == Real(0) ? s : s + factor * both;
}

/// What s counts as at least in what errors are relative to. A reciprocal below 2^-126 is flushed to 0; the budgets of slopes by a sigmoid
/// have at least 40 * 2^-24 (gelu_tanh_backward_budget) of this.
constexpr double kFlushedSigmoid = 0x1p-107;

/// x s(factor x).
template <class Real> SlopeTerm<Real> sigmoid_slope_ref(Real x, Real factor) {
  using std::abs, std::exp;
  const Real h = x * factor, s = Real(1) / (Real(1) + exp(-h)), rest = rest_ref(h), size = s + Real(kFlushedSigmoid);
  return {x * s, sigmoid_slope_of(s, rest, h), abs(x) * size, sigmoid_slope_of(size, rest, abs(h))};
}
template <class Real> SlopeTerm<Real> silu_slope_ref(Real x) { return sigmoid_slope_ref(x, Real(1)); }
inline SlopeTerm<double> gelu_slope_ref(double x) {
  const double below = std::erfc(-x / std::sqrt(2.0)) / 2, density = std::exp(-x * x / 2) / std::sqrt(2 * std::acos(-1.0));
  return {x * below, below + x * density, std::abs(x), 1};
}
/// As the kernels have it: order-free numbers know no erf.
inline SlopeTerm<OrderFree> gelu_slope_ref(OrderFree x) {
  const OrderFree size = fabs(x), last = kGeluLast, y = last < size ? last : size;
  OrderFree log2_tail = 0, power = 1;
  for (int i = 0; i < kGeluTerms; ++i, power *= y) log2_tail += OrderFree(gelu_tail(i)) * power;
  const OrderFree tail = exp2(log2_tail), below = x < OrderFree(0) ? tail : OrderFree(1) - tail;
  return {(x < OrderFree(0) ? OrderFree(0) : x) - y * tail,
          below + x * OrderFree(0.3989422804014327f) * exp2(x * x * OrderFree(-0.7213475204444817f)), 0, 0};
}
inline SlopeTerm<double> gelu_tanh_slope_ref(double x) {
  const double c = 2 * std::sqrt(2 / std::acos(-1.0)), z = c * (x + 0.044715 * x * x * x), s = 1 / (1 + std::exp(-z)), rest = rest_ref(z);
  return {x * s, sigmoid_slope_of(s, rest, x * c * (1 + 3 * 0.044715 * x * x)), std::abs(x), 1};
}
/// Constants as the kernels have them, in f32.
inline SlopeTerm<OrderFree> gelu_tanh_slope_ref(OrderFree x) {
  const OrderFree z = x * (x * x * OrderFree(0.1029432395800235f) + OrderFree(2.302208198144325f)), one = 1;
  const OrderFree s = one / (one + exp2(-z)), rest = exp2(-z) * s;
  return {x * s, sigmoid_slope_of(s, rest, x * (x * x * OrderFree(0.2140644488178f) + OrderFree(1.5957691216057308f))), 0, 0};
}
template <class Real> SlopeTerm<Real> relu2_slope_ref(Real x) {
  const Real positive = x < Real(0) ? Real(0) : x;
  return {positive * positive, positive + positive, positive * positive, positive + positive};
}

/// Writes dx of ops of one operand: dy f'(x).
template <class Real, class Args, class F> void backward_alone_ref(const Args& a, const Args& magnitudes, const F& slope) {
  using std::abs;
  const Ref<Real> dy(a.dy), x(a.x);
  const RefOut<Real> dx(a.dx), size(magnitudes.dx);
  for (i64 t = 0; t < x.dim(0); ++t)
    for (i64 i = 0; i < x.dim(1); ++i) {
      const SlopeTerm<Real> at = slope(x(t, i));
      dx.set(dy(t, i) * at.slope, t, i), size.set(abs(dy(t, i)) * at.slope_size, t, i);
    }
}

/// Writes the gradients of gates and ups where gate(i) and up(i) tell their columns of dgate and dup: dy up f'(gate) and dy f(gate).
template <class Real, class Args, class F, class G, class U>
void backward_gated_ref(const Args& a, const TensorView& gates, const TensorView& dgates, const TensorView& dgate_sizes,
                        const Args& magnitudes, const F& slope, const G& gate, const U& up) {
  using std::abs;
  const Ref<Real> dy(a.dy), x(a.x), g(gates);
  const RefOut<Real> dx(a.dx), size(magnitudes.dx), dgate(dgates), dgate_size(dgate_sizes);
  for (i64 t = 0; t < dy.dim(0); ++t)
    for (i64 i = 0; i < dy.dim(1); ++i) {
      const SlopeTerm<Real> at = slope(g(t, gate(i)));
      const Real d = dy(t, i), u = x(t, up(i));
      dgate.set(d * u * at.slope, t, gate(i)), dgate_size.set(abs(d * u) * at.slope_size, t, gate(i));
      dx.set(d * at.value, t, up(i)), size.set(abs(d) * at.value_size, t, up(i));
    }
}
template <class Real, class Args, class F> void backward_halves_ref(const Args& a, const Args& magnitudes, const F& slope) {
  const i64 n = a.dy.shape[1];
  backward_gated_ref<Real>(a, a.x, a.dx, magnitudes.dx, magnitudes, slope, [](i64 i) { return i; }, [n](i64 i) { return n + i; });
}

}  // namespace quern::activation
