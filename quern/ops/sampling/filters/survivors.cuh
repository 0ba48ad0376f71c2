// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Which tokens of a row survive its temperature and filters: a prefix of the order of values, less what min-p takes out. Exact.
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
  FilterTies ties;
};

QN_DEVICE Filter filter_of(const FilterParams& p, i64 row) {
  return {p.temperatures ? ptx::ld_global<f32>(p.temperatures + row) : f32(p.temperature),
          p.top_ps ? ptx::ld_global<f32>(p.top_ps + row) : f32(p.top_p),
          p.min_ps ? ptx::ld_global<f32>(p.min_ps + row) : f32(p.min_p),
          p.top_ks ? ptx::ld_global<i32>(p.top_ks + row) : p.top_k,
          p.order,
          p.min_p_first != 0,
          p.ties};
}
/// Numbers that mean something.
QN_DEVICE bool is_valid(const Filter& f) {
  return is_finite(f.temperature) && f.temperature >= f32(0.f) && !is_nan(f.top_p) && !is_nan(f.min_p);
}

/// What is known of a row once it was read.
struct RowFacts {
  bool bad;    ///< a NaN, or a number below 0 among probabilities
  bool valid;  ///< not bad, and a token that may be drawn
  i32 first;   ///< index of the largest value, the lowest of equal ones
  u32 key;     ///< and its key
  Largest largest;
};
template <FilterLayout L> constexpr u32 kKeyOfNothing = L.kind == RowKind::probs ? kKeyOfZero : kKeyOfNegativeInfinity;

template <FilterLayout L> QN_DEVICE RowFacts facts_of(Team<L.row>& team, const Row<L.row>& row) {
  RowFacts f{};
  const u64 best = read_for_largest < L.kind == RowKind::probs ? Bad::nan_and_negative : Bad::nan > (team, row, f.largest);
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

/// What min-p keeps: tokens of at least a mass. Weights all but ascend with logits (2^f of neighbouring f may descend by a last bit), so
/// keys tell but for a few, whose masses are asked.
struct MinP {
  u32 low;   ///< keys below it have less
  u32 sure;  ///< keys from it on have enough
  U128 least;
};
template <FilterLayout L> QN_DEVICE bool has_mass(const MinP& m, const Weights<L>& w, u32 key) {
  return key >= m.sure || (key >= m.low && m.least <= wide(mass_of(w, value_of_key(key))));
}
template <FilterLayout L> QN_DEVICE MinP min_p_of(const Weights<L>& w, u32 largest, f32 min_p) {
  MinP m{0, 0, {0, 0}};
  if (!(min_p > f32(0.f))) return m;
  m.least = share_of(ptx::fmin(min_p, f32(1.f)), wide(mass_of(w, value_of_key(largest))));
  const U128 room = shifted_right(m.least, 19) + U128{16, 0};  // 16 last bits of a weight and more
  const U128 lower = room < m.least ? m.least - room : U128{1, 0}, upper = m.least + room;
  const auto reaches = [&](u32 key, const U128& least) { return least <= wide(mass_of(w, value_of_key(key))); };
  QN_NO_UNROLL
  for (int sure = 0; sure < 2; ++sure) {
    const U128 least = sure ? upper : lower;
    const u32 key = reaches(largest, least) ? first_key(kKeyOfNothing<L>, largest, [&](u32 k) { return reaches(k, least); })
                    : sure                  ? largest + 1
                                            : largest;
    (sure ? m.sure : m.low) = key;
  }
  return m;
}

/// Tokens that survive: a prefix of the order of values, less those that min-p takes out.
template <FilterLayout L> struct Survivors {
  Weights<L> weights;
  Threshold kept;
  MinP min_p;
};
template <FilterLayout L> QN_DEVICE bool survives(const Survivors<L>& s, i32 index, f32 x) {
  const u32 key = ordered_key(x);
  return keeps(s.kept, key, index) && has_mass(s.min_p, s.weights, key);
}
/// The mass of a token, 0 of one that does not survive.
template <FilterLayout L> QN_DEVICE Mass surviving_mass(const Survivors<L>& s, i32 index, f32 x) {
  return survives(s, index, x) ? mass_of(s.weights, x) : Mass{0, 0};
}

/// Bins of masses, the largest first: 32 to a power of two, so that all masses of a bin have the same.
constexpr i32 kBinsOfPower = 32, kMassBins = (kMassWindow + 1) * kBinsOfPower;
static_assert(kMassBins <= kSelectBins);
/// kMassBins: of no mass. Ascends as values descend, also where a weight descends by a last bit: a test looks at the edges of the bins
/// (mass_test.cpp). A mass of fewer than 24 bits, which only the lowest exponent has, lies in the lowest bin of its power.
QN_DEVICE i32 bin_of(Mass m) {
  if (m.mantissa == 0 || m.by < 0) return kMassBins;
  return kMassBins - 1 - (m.by * kBinsOfPower + i32(m.mantissa >> 23 != 0 ? m.mantissa >> 18 & (kBinsOfPower - 1) : 0));
}
QN_DEVICE i32 power_of_bin(i32 bin) { return max_of(kMassBins - 1 - bin, 0) / kBinsOfPower; }

/// Where the last token that top-p keeps is, among those that pass: in a bin of masses. 0 < p < 1.
template <FilterLayout L, class Passes> QN_DEVICE KeyRange range_by_mass(Team<L.row>& team, const Row<L.row>& row, const Weights<L>& w,
                                                                         u32 largest, Passes passes, f32 p, int& power) {
  clear_bins(team);
  each_element(row, [&](i32 index, f32 x) {
    if (!passes(ordered_key(x), index)) return;
    const Mass m = mass_of(w, x);
    const i32 bin = bin_of(m);
    if (bin < kMassBins) add_to_bin(team, u32(bin), m.mantissa);
  });
  const Found found =
      find_bin(team, [](u32 bin) { return power_of_bin(i32(bin)); }, [&](U128 total) { return share_of(p, total) - U128{1, 0}; });
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
template <FilterLayout L> QN_DEVICE Survivors<L> survivors_of(Team<L.row>& team, const Row<L.row>& row, const Filter& f,
                                                              const RowFacts& facts) {
  const Weights<L> w = weights_of<L>(f.temperature, facts.key);
  const MinP min_p = min_p_of(w, facts.key, f.min_p);
  const MinP first = f.min_p_first ? min_p : MinP{0, 0, {0, 0}};
  const Threshold all = keep_all(row.length);
  Threshold kept = all;
  const bool by_k = f.top_k > 0 && f.top_k < row.length;
  // First top-k, then top-p, in one body of code. A rank beyond the tokens that min_p_first leaves keeps all of these, and more that min-p
  // takes out
  QN_NO_UNROLL
  for (int by_mass = 0; by_mass < 2; ++by_mass) {
    if (by_mass ? f.top_p >= f32(1.f) : !by_k) continue;
    const Threshold sees = by_mass && f.order == FilterOrder::top_k_first ? kept : all;
    const auto passes = [&](u32 key, i32 index) { return keeps(sees, key, index) && (!by_mass || has_mass(first, w, key)); };
    KeyRange range{0, facts.key, {u64(f.top_k), 0}};
    int power = 0;
    bool few = false;
    if (!by_mass) {
      range.low = reached_by(team, facts.largest, u32(f.top_k));
    } else {
      // All that are seen fit into the list
      few = by_k && f.order == FilterOrder::top_k_first && f.top_k <= L.row.listed && f.ties == FilterTies::lowest_ids;
      if (few) range.low = sees.key;
      else range = range_by_mass(team, row, w, facts.key, passes, f.top_p, power);
    }
    Threshold here = search(
        team, row, range, passes, [&](u32 key) { return by_mass ? mass_of(w, value_of_key(key)) : Mass{1, 0}; }, power,
        [&](U128 total) { return few ? share_of(f.top_p, total) : range.rest; });
    if (f.ties == FilterTies::all) here.end = i32(row.length);
    kept = shorter(kept, here);
  }
  return {w, kept, min_p};
}

}  // namespace quern::sampling
