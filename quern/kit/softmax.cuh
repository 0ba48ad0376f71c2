// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Online softmax (Milakov and Gimelshein, arXiv 1805.02867): running maximum and sum of one row, in base 2.
#pragma once
#include "quern/kit/world.cuh"

namespace quern {

/// The state of a row whose logits, in units of log2, have been seen in part. The empty row is {-inf, 0}.
struct SoftmaxState {
  f32 max;
  f32 sum;
};

QN_DEVICE f32 negative_infinity() { return ptx::f32_of_bits(0xff800000u); }
QN_DEVICE SoftmaxState empty_softmax() { return {negative_infinity(), f32(0.f)}; }

/// exp2(logit - max). Of a row with nothing seen (both -inf) it is 0; a NaN logit stays NaN beside any maximum, as fmax skips
/// NaN and the maximum of a row of NaNs is -inf.
QN_DEVICE f32 softmax_weight(f32 logit, f32 max) { return ptx::exp2_approx(logit - (max == negative_infinity() ? f32(0.f) : max)); }

/// exp2(logit - max + shift). The difference is taken first: beside a maximum of 1e8 a shift of 12 is lost, or becomes 16.
QN_DEVICE f32 shifted_weight(f32 logit, f32 max, f32 shift) {
  return ptx::exp2_approx(logit - (max == negative_infinity() ? f32(0.f) : max) + shift);
}

/// Raises the state's maximum to at least `max` and returns the factor for what was accumulated under the old one.
QN_DEVICE f32 raise_max(SoftmaxState& state, f32 max) {
  const f32 raised = ptx::fmax(state.max, max);
  const f32 factor = softmax_weight(state.max, raised);
  state.max = raised;
  state.sum = state.sum * factor;
  return factor;
}

/// log2 of the sum of exp2 of all logits seen; -inf for the empty row, NaN after a NaN logit.
QN_DEVICE f32 softmax_lse(const SoftmaxState& state) {
  return state.sum != f32(0.f) ? state.max + ptx::log2_approx(state.sum) : negative_infinity();
}

}  // namespace quern
