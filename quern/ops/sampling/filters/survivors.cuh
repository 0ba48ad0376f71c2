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
};

QN_DEVICE Filter filter_of(const FilterParams& p, i64 row) {
  return {p.temperatures ? ptx::ld_global<f32>(p.temperatures + row) : f32(p.temperature), p.top_ps ? ptx::ld_global<f32>(p.top_ps + row) : f32(p.top_p),
          p.min_ps ? ptx::ld_global<f32>(p.min_ps + row) : f32(p.min_p), p.top_ks ? ptx::ld_global<i32>(p.top_ks + row) : p.top_k, p.order, p.min_p_first != 0};
}
/// Numbers that mean something.
QN_DEVICE bool is_valid(const Filter& f) { return is_finite(f.temperature) && f.temperature >= f32(0.f) && !is_nan(f.top_p) && !is_nan(f.min_p); }

/// What is known of a row once it was read.
struct RowFacts {
  bool bad;       ///< a NaN, or a number below 0 among probabilities
  bool valid;     ///< not bad, and a token that may be drawn
  i32 first;      ///< index of the largest value, the lowest of equal ones
  u32 key;        ///< and its key
};

template <FilterLayout L> QN_DEVICE RowFacts facts_of(const SelectMemory& m, const Row<L.row>& row) {
  constexpr u64 kBad = ~u64(0);  // no key has 32 ones
  u64 best = 0;
  each_element<Instructions::few>(row, [&](i32 index, f32 x) {
    const bool bad = is_nan(x) || (L.kind == RowKind::probs && x < f32(0.f));
    best = max_of(best, bad ? kBad : u64(ordered_key(x)) << 32 | u32(~u32(index)));
  });
  best = block_max<L.row.threads>(m, best);
  const u32 key = u32(best >> 32), nothing = L.kind == RowKind::probs ? 0x80000000u : kKeyOfNegativeInfinity;
  return {best == kBad, best != kBad && key > nothing, i32(~u32(best)), key};
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
template <FilterLayout L> QN_DEVICE U128 mass_of(const Weights<L>& w, f32 x) { return mass_of(weight_of(w, x), w.top); }
template <FilterLayout L> QN_DEVICE Weights<L> weights_of(f32 temperature, u32 key) {
  Weights<L> w{{f32(0.f), f32(0.f)}, 0};
  if constexpr (L.kind == RowKind::logits) w.scale = logit_scale(temperature);
  w.top = weight_of(w, value_of_key(key)).exponent;
  return w;
}

template <FilterLayout L> struct Survivors {
  Weights<L> weights;
  Threshold kept;
  U128 least;  ///< mass that min-p asks for
};
template <FilterLayout L> QN_DEVICE bool survives(const Survivors<L>& s, i32 index, f32 x) {
  return keeps(s.kept, ordered_key(x), index) && (is_zero(s.least) || s.least <= mass_of(s.weights, x));
}
/// The mass of a token, 0 of one that does not survive.
template <FilterLayout L> QN_DEVICE U128 surviving_mass(const Survivors<L>& s, i32 index, f32 x) {
  if (!keeps(s.kept, ordered_key(x), index)) return {0, 0};
  const U128 mass = mass_of(s.weights, x);
  return s.least <= mass ? mass : U128{0, 0};
}

/// Of a valid row whose temperature is not one of kGreedyTemperature.
template <FilterLayout L> QN_DEVICE Survivors<L> survivors_of(const SelectMemory& m, const Row<L.row>& row, const Filter& f, const RowFacts& facts) {
  Survivors<L> s{weights_of<L>(f.temperature, facts.key), keep_all(row.length), {0, 0}};
  const U128 largest = mass_of(s.weights, value_of_key(facts.key));
  if (f.min_p > f32(0.f)) s.least = share_of(ptx::fmin(f.min_p, f32(1.f)), largest);
  const U128 least_first = f.min_p_first ? s.least : U128{0, 0};
  const auto seen = [&](f32 x) { return is_zero(least_first) || least_first <= mass_of(s.weights, x); };

  Threshold by_rank = keep_all(row.length);
  if (f.top_k > 0 && f.top_k < row.length)
    by_rank = select_prefix(m, row, [&](i32, f32 x) { return U128{u64(seen(x)), 0}; }, [&](U128) { return U128{u64(f.top_k), 0}; });
  s.kept = by_rank;
  if (f.top_p < f32(1.f)) {
    const Threshold sees = f.order == FilterOrder::top_k_first ? by_rank : keep_all(row.length);
    const auto mass = [&](i32 index, f32 x) {
      if (!keeps(sees, ordered_key(x), index)) return U128{0, 0};
      const U128 mass = mass_of(s.weights, x);
      return least_first <= mass ? mass : U128{0, 0};
    };
    s.kept = shorter(by_rank, select_prefix(m, row, mass, [&](U128 total) { return share_of(f.top_p, total); }));
  }
  return s;
}

}  // namespace quern::sampling
