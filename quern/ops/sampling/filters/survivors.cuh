// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Which tokens of a row survive its temperature and filters: a prefix of the order of values. Exact.
#pragma once
#include "quern/bricks/mass/mass.cuh"
#include "quern/bricks/select/threshold.cuh"
#include "quern/kit/float_class.cuh"
#include "quern/ops/sampling/filters/spec.h"

namespace quern::sampling {

/// A row's temperature and filters.
struct Filter {
  f32 temperature, top_p, min_p;
  i32 top_k;
  FilterOrder order;
  bool min_p_first;
};

QN_DEVICE Filter filter_of(const FilterParams& p, i64 row) {
  return {p.temperatures ? ptx::ld_global<f32>(p.temperatures + row) : f32(p.temperature), p.top_ps ? ptx::ld_global<f32>(p.top_ps + row) : f32(p.top_p),
          p.min_ps ? ptx::ld_global<f32>(p.min_ps + row) : f32(p.min_p), p.top_ks ? ptx::ld_global<i32>(p.top_ks + row) : p.top_k, p.order, p.min_p_first != 0};
}
/// Numbers that mean something.
QN_DEVICE bool is_valid(const Filter& f) { return is_finite(f.temperature) && f.temperature >= f32(0.f) && !is_nan(f.top_p) && !is_nan(f.min_p); }

/// What is known of a row once it was read.
struct RowFacts {
  bool bad;         ///< a NaN, or a number below 0 among probabilities
  bool valid;       ///< not bad, and a token that may be drawn
  i32 first;        ///< index of the largest value, the lowest of equal ones
  u32 key;          ///< and its key
  Largest largest;
};
template <FilterLayout L> constexpr u32 kKeyOfNothing = L.kind == RowKind::probs ? kKeyOfZero : kKeyOfNegativeInfinity;

template <FilterLayout L> QN_DEVICE RowFacts facts_of(Team<L.row>& team, const Row<L.row>& row) {
  RowFacts f{};
  const u64 best = read_for_largest<L.kind == RowKind::probs ? Bad::nan_and_negative : Bad::nan>(team, row, f.largest);
  f.key = u32(best >> 32), f.first = i32(~u32(best));
  f.bad = best == ~u64(0);  // no key has 32 ones
  f.valid = !f.bad && f.key > kKeyOfNothing<L>;
  return f;
}

/// Weights of a row's tokens.
template <FilterLayout L> struct Weights {
  LogitScale scale;
  i32 top;  ///< exponent of the largest weight
};
template <FilterLayout L> QN_DEVICE Weight weight_of(const Weights<L>& w, f32 x) {
  if constexpr (L.kind == RowKind::probs) return weight_of_prob(x);
  else return weight_of_logit(x, w.scale);
}
template <FilterLayout L> QN_DEVICE Mass mass_of(const Weights<L>& w, f32 x) { return mass_of(weight_of(w, x), w.top); }
template <FilterLayout L> QN_DEVICE Weights<L> weights_of(f32 temperature, u32 key) {
  Weights<L> w{{f32(0.f), f32(0.f)}, 0};
  if constexpr (L.kind == RowKind::logits) w.scale = logit_scale(temperature);
  w.top = weight_of(w, value_of_key(key)).exponent;
  return w;
}

/// Tokens that survive: a prefix of the order of values, as each filter keeps one.
template <FilterLayout L> struct Survivors {
  Weights<L> weights;
  Threshold kept;
};
template <FilterLayout L> QN_DEVICE bool survives(const Survivors<L>& s, i32 index, f32 x) { return keeps(s.kept, ordered_key(x), index); }
/// The mass of a token, 0 of one that does not survive.
template <FilterLayout L> QN_DEVICE Mass surviving_mass(const Survivors<L>& s, i32 index, f32 x) { return survives(s, index, x) ? mass_of(s.weights, x) : Mass{0, 0}; }

/// Bins of masses, the largest first: 32 to a power of two, so that all masses of a bin have the same.
constexpr i32 kBinsOfPower = 32, kMassBins = (kMassWindow + 1) * kBinsOfPower;
static_assert(kMassBins <= kSelectBins);
/// kMassBins: of no mass. Ascends as masses descend: a mass of fewer than 24 bits, which only the lowest exponent has, lies in the lowest bin of its power.
QN_DEVICE i32 bin_of(Mass m) {
  if (m.mantissa == 0 || m.by < 0) return kMassBins;
  return kMassBins - 1 - (m.by * kBinsOfPower + i32(m.mantissa >> 23 != 0 ? m.mantissa >> 18 & (kBinsOfPower - 1) : 0));
}
QN_DEVICE i32 power_of_bin(i32 bin) { return max_of(kMassBins - 1 - bin, 0) / kBinsOfPower; }

/// Where the last token that top-p keeps is, among those that `sees` keeps: in a bin of masses. 0 < p < 1.
template <FilterLayout L> QN_DEVICE KeyRange range_by_mass(Team<L.row>& team, const Row<L.row>& row, const Weights<L>& w, u32 largest, const Threshold& sees, f32 p, int& power) {
  clear_bins(team);
  each_element(row, [&](i32 index, f32 x) {
    if (!keeps(sees, ordered_key(x), index)) return;
    const Mass m = mass_of(w, x);
    const i32 bin = bin_of(m);
    if (bin < kMassBins) add_to_bin(team, u32(bin), m.mantissa);
  });
  const Found found = find_bin(team, [](u32 bin) { return power_of_bin(i32(bin)); }, [&](U128 total) { return share_of(p, total) - U128{1, 0}; });
  power = power_of_bin(i32(found.index));
  // The bin's keys end where those of the bins before it begin
  u32 begins[2];
  QN_NO_UNROLL
  for (int before = 0; before < 2; ++before) {
    const i32 last = i32(found.index) - before;
    const auto reaches = [&](u32 key) { return bin_of(mass_of(w, value_of_key(key))) <= last; };
    const u32 key = reaches(largest) ? first_key(kKeyOfNothing<L>, largest, reaches) : largest + 1;
    (before ? begins[1] : begins[0]) = key;
  }
  return {begins[0], begins[1] - 1, share_of(p, found.total) - found.before};
}

/// Of a valid row whose temperature is not one of kGreedyTemperature.
template <FilterLayout L> QN_DEVICE Survivors<L> survivors_of(Team<L.row>& team, const Row<L.row>& row, const Filter& f, const RowFacts& facts) {
  const Weights<L> w = weights_of<L>(f.temperature, facts.key);
  const Threshold all = keep_all(row.length);
  Threshold by_min_p = all, kept = all;
  if (f.min_p > f32(0.f)) {
    const U128 least = share_of(ptx::fmin(f.min_p, f32(1.f)), wide(mass_of(w, value_of_key(facts.key))));
    by_min_p.key = first_key(kKeyOfNothing<L>, facts.key, [&](u32 key) { return least <= wide(mass_of(w, value_of_key(key))); });
  }
  const bool by_k = f.top_k > 0 && f.top_k < row.length;
  // First top-k, then top-p, in one body of code. A rank beyond the tokens that min_p_first leaves keeps all of these, and more that min-p takes out
  QN_NO_UNROLL
  for (int by_mass = 0; by_mass < 2; ++by_mass) {
    if (by_mass ? f.top_p >= f32(1.f) : !by_k) continue;
    Threshold sees = by_mass && f.order == FilterOrder::top_k_first ? kept : all;
    KeyRange range{0, facts.key, {u64(f.top_k), 0}};
    int power = 0;
    bool few = false;
    if (!by_mass) {
      range.low = reached_by(team, facts.largest, u32(f.top_k));
    } else {
      if (f.min_p_first) sees = shorter(sees, by_min_p);
      few = by_k && f.order == FilterOrder::top_k_first && f.top_k <= kListed;  // all that are seen fit into the list
      if (few) range.low = sees.key;
      else range = range_by_mass(team, row, w, facts.key, sees, f.top_p, power);
    }
    bool listed = false;
    const Threshold here = search(team, row, range, [&](u32 key, i32 index) { return keeps(sees, key, index); },
                                  [&](u32 key) { return by_mass ? mass_of(w, value_of_key(key)) : Mass{1, 0}; }, power,
                                  [&](U128 total) { return few ? share_of(f.top_p, total) : range.rest; }, listed);
    kept = shorter(kept, here);
  }
  return {w, shorter(kept, by_min_p)};
}

}  // namespace quern::sampling
