// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What softmax makes of a row of logits: share_i = weight_i / sum of masses, weight_i = 2^(logit_i * log2(e) / temperature).
#pragma once
#include "quern/ops/sampling/filters/survivors.cuh"

namespace quern::sampling {

/// All that the share of an element depends on, but for its logit.
template <FilterLayout L> struct RowShares {
  ShareState state;
  i32 first;           ///< of the largest logit, the lowest of equal ones
  u32 key;             ///< and its key
  Weights<L> weights;  ///< where state is `all`
  RoundedTotal total;
};

/// The row is read twice. By the whole team, whose blocks get one result.
template <FilterLayout L> QN_DEVICE RowShares<L> shares_of(Team<L.row>& team, const Row<L.row>& row, f32 temperature) {
  static_assert(L.kind == RowKind::logits);
  const RowFacts facts = facts_of<L>(team, row);
  RowShares<L> s{ShareState::none, facts.first, facts.key, {}, {}};
  if (!facts.valid || !is_finite(temperature) || temperature < f32(0.f)) return s;
  s.state = ShareState::one;
  if (temperature < f32(kGreedyTemperature)) return s;
  s.state = ShareState::all;
  s.weights = weights_of<L>(temperature, facts.key);
  s.total = rounded_total(team_total(team, mass_of_thread(row, [&](i32, f32 x) { return mass_of(s.weights, x); })));
  return s;
}

/// The share of an element whose logit is x.
template <FilterLayout L> QN_DEVICE f32 share_at(const RowShares<L>& s, i64 index, f32 x) {
  if (s.state == ShareState::none) return value_of_key(0);
  if (s.state == ShareState::one) return f32(index == s.first ? 1.f : 0.f);
  return share_of_total(weight_of(s.weights, x), s.weights.top, s.total);
}
/// The largest of them, of a row that has shares: weights ascend with logits, and shares with weights.
template <FilterLayout L> QN_DEVICE f32 largest_share(const RowShares<L>& s) { return share_at(s, s.first, value_of_key(s.key)); }

template <FilterLayout L> QN_DEVICE void store_shares(StoredShares* to, const RowShares<L>& s) {
  *to = {s.state, s.first, s.key, s.weights.top, ptx::bits_of(s.total.mantissa), s.total.power};
}
template <FilterLayout L> QN_DEVICE RowShares<L> load_shares(const StoredShares* from, f32 temperature) {
  const StoredShares stored = *from;
  RowShares<L> s{stored.state, stored.first, stored.key, {{}, stored.top}, rounded_total(ptx::f32_of_bits(stored.mantissa), stored.power)};
  if (s.state == ShareState::all) s.weights.scale = logit_scale(temperature);
  return s;
}

}  // namespace quern::sampling
