// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The survivors of a row by sorting it.
#pragma once
#include <algorithm>
#include <numeric>
#include <vector>

#include "quern/ops/sampling/filters/mass_ref.h"
#include "quern/ops/sampling/filters_spec.h"

namespace quern::sampling {

struct FilterRef {
  float temperature = 1, top_p = 1, min_p = 0;
  i64 top_k = 0;
  FilterOrder order = FilterOrder::top_k_first;
  bool min_p_first = false;
  bool probs = false;
  FilterTies ties = FilterTies::lowest_ids;
};

/// The filter of row i of an op whose Args have temperature and filters.
template <class Args>
FilterRef filter_ref(const Args& a, i64 i) {
  FilterRef f{1, a.top_p, a.min_p, a.top_k, a.order, a.min_p_first, true, a.ties};
  if constexpr (requires { a.temperatures; }) {
    f.probs = false;
    f.temperature = a.temperatures.present() ? float(Ref(a.temperatures)(i)) : a.temperature;
  }
  if (a.top_ps.present()) f.top_p = float(Ref(a.top_ps)(i));
  if (a.min_ps.present()) f.min_p = float(Ref(a.min_ps)(i));
  if (a.top_ks.present()) f.top_k = Ref(a.top_ks).index(i);
  return f;
}

struct SurvivorsRef {
  bool valid = false;
  bool greedy = false;
  i64 first = 0;                  ///< of the largest value
  i64 top = 0;                    ///< the largest exponent
  std::vector<WeightRef> weight;  ///< of every token
  std::vector<bool> survives;
  u128 mass(size_t i) const { return survives[i] ? mass_ref(weight[i], top) : 0; }
  u128 total() const {
    u128 sum = 0;
    for (size_t i = 0; i < weight.size(); ++i) sum += mass(i);
    return sum;
  }
};

/// `row` as doubles, all of which f32 holds.
inline SurvivorsRef survivors_ref(const std::vector<double>& row, const FilterRef& f) {
  SurvivorsRef s;
  const size_t n = row.size();
  s.survives.assign(n, false);
  for (const double x : row)
    if (std::isnan(x) || (f.probs && x < 0)) return s;
  s.first = std::max_element(row.begin(), row.end()) - row.begin();  // the first of equal ones
  if (row[size_t(s.first)] == (f.probs ? 0 : -std::numeric_limits<double>::infinity())) return s;
  if (!(f.temperature >= 0) || std::isinf(f.temperature) || std::isnan(f.top_p) || std::isnan(f.min_p)) return s;
  s.valid = true;
  if (!f.probs && double(f.temperature) < kGreedyRef) {
    s.greedy = true;
    s.survives[size_t(s.first)] = true;
    return s;
  }
  if (f.probs)
    for (const double x : row) s.weight.push_back(prob_weight_ref(x));
  else {
    const LogitWeightsRef weight(f.temperature);
    for (const double x : row) s.weight.push_back(weight(float(x)));
  }
  s.top = s.weight[size_t(s.first)].e;
  const u128 least = f.min_p > 0 ? share_ref(std::min(1.0f, f.min_p), mass_ref(s.weight[size_t(s.first)], s.top)) : 0;
  const auto reaches = [&](size_t i) { return mass_ref(s.weight[i], s.top) >= least; };

  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t(0));
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return row[a] > row[b]; });
  if (f.min_p_first) std::erase_if(order, [&](size_t i) { return !reaches(i); });
  // So many of the first, and the equals of the last of them
  const auto with_ties = [&](size_t count) {
    while (f.ties == FilterTies::all && count > 0 && count < order.size() && row[order[count]] == row[order[count - 1]]) ++count;
    return count;
  };
  const size_t k = f.top_k > 0 && f.top_k < i64(n) ? with_ties(std::min(size_t(f.top_k), order.size())) : order.size();
  size_t kept = k;
  if (f.top_p < 1) {
    const size_t seen = f.order == FilterOrder::top_k_first ? k : order.size();
    u128 total = 0, sum = 0;
    for (size_t j = 0; j < seen; ++j) total += mass_ref(s.weight[order[j]], s.top);
    const u128 share = share_ref(f.top_p, total);
    size_t count = 0;
    while (sum < share) sum += mass_ref(s.weight[order[count++]], s.top);
    kept = std::min(k, with_ties(count));
  }
  for (size_t j = 0; j < kept; ++j) s.survives[order[j]] = f.min_p_first || reaches(order[j]);
  return s;
}

/// Shares of the survivors in f32; NaN of a row that is not valid.
inline std::vector<double> shares_ref(const SurvivorsRef& s) {
  std::vector<double> shares(s.survives.size(), std::numeric_limits<double>::quiet_NaN());
  if (!s.valid) return shares;
  const u128 total = s.greedy ? 0 : s.total();
  for (size_t i = 0; i < shares.size(); ++i)
    shares[i] = s.greedy ? double(s.survives[i]) : s.survives[i] ? double(share_f32_ref(s.weight[i], s.top, total)) : 0;
  return shares;
}

}  // namespace quern::sampling
