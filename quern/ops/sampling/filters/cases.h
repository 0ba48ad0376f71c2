// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Rows and parameters for cases: each kind of row that has been drawn from wrongly somewhere, in turn.
#pragma once
#include <cmath>
#include <limits>

#include "quern/op/schema.h"
#include "quern/ops/sampling/filters/spec.h"

namespace quern::sampling {

/// One row of logits: normal, flat, plateaus of few values, one token that holds nearly all, a third of -inf, zeros of both signs, all
/// -inf, a NaN, some +inf, a span that f32's exp underflows over, subnormal numbers. Of probabilities the same kinds, none below 0 but in
/// the one with NaN.
constexpr int kRowKinds = 11;
inline void fill_sampling_row(const TensorView& rows, i64 row, int kind, bool probs, Random& random) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const i64 n = rows.shape[1], chosen = random.below(n);
  for (i64 i = 0; i < n; ++i) {
    const double normal = 2 * (random.uniform() + random.uniform() + random.uniform());
    double x = probs ? std::exp(normal) / double(n) : normal;
    if (kind == 1) x = probs ? 0.25 : -1.5;
    if (kind == 2) x = probs ? double(1 + random.below(3)) / 8 : double(random.below(4)) / 2;
    if (kind == 3) x = i == chosen ? (probs ? 0.99 : 12.0) : (probs ? 0.01 / double(n) : normal);
    if (kind == 4 && random.below(3) == 0) x = probs ? 0 : -inf;
    if (kind == 5) x = random.below(2) ? 0.0 : -0.0;
    if (kind == 5 && probs && i == chosen) x = 0.5;
    if (kind == 6) x = probs ? 0 : -inf;
    if (kind == 7 && i == chosen) x = probs && random.below(2) ? -0.25 : nan;
    if (kind == 8 && (i == chosen || random.below(16) == 0)) x = inf;
    if (kind == 9) x = probs ? std::exp(-90 * std::fabs(random.uniform())) : 60 * random.uniform();
    if (kind == 10) x = std::ldexp(double(1 + random.below(1 << 20)), -149);
    const i64 at[] = {row, i};
    store_element(rows, at, x);
  }
}

/// All rows, of the kind that the case's word `data` says; -1: of each in turn.
inline void fill_sampling_rows(const TensorView& rows, const Case& which, bool probs, Random& random) {
  const auto at = which.find("data");
  const i64 data = at == which.end() ? -1 : i64(at->second), begin = random.below(kRowKinds);
  for (i64 row = 0; row < rows.shape[0]; ++row)
    fill_sampling_row(rows, row, int(data < 0 ? (begin + row) % kRowKinds : data), probs, random);
}
/// That word in an op's cases.
inline CaseAxis row_kinds() {
  return {"data",
          {-1},
          "kind of rows: normal, flat, plateaus, one token, -inf, zeros, all -inf, NaN, +inf, underflow, subnormal; -1: each in turn"};
}

inline void set_value(const TensorView& v, i64 i, double x) {
  const i64 at[] = {i};
  store_element(v, at, x);
}

/// Parameters of rows, with their ends and what is no parameter.
template <class Args>
concept HasTemperature = requires(Args a) { a.temperatures; };
template <class Args> void fill_filters(Args& a, i64 rows, i64 vocab, Random& random) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double temperatures[] = {1, 0.7, 0, 2.5, 1e-6, 1e-5, 1e-4, 0.3, 100, nan, -1, std::numeric_limits<double>::infinity()};
  const double top_ps[] = {0.9, 1, 0, 0.5, 0.99, 1e-9, -0.5, 1.5, 0.999999, 0.1, nan, 1e-45};
  const double min_ps[] = {0, 0.1, 0.02, 1, 1e-6, -1, 0.5, 2, 1e-30, 0.001, nan, 1e-45};
  for (i64 i = 0; i < rows; ++i) {
    const i64 top_ks[] = {0, 1, 2, 5, vocab - 1, vocab, vocab + 3, -1, vocab / 2, 40, 2147483647, -2147483648ll};
    const auto pick = [&] { return random.below(random.below(4) ? 8 : 12); };
    if constexpr (HasTemperature<Args>)
      if (a.temperatures.present()) set_value(a.temperatures, i, temperatures[pick()]);
    if (a.top_ps.present()) set_value(a.top_ps, i, top_ps[pick()]);
    if (a.min_ps.present()) set_value(a.min_ps, i, min_ps[pick()]);
    if (a.top_ks.present()) {
      const i64 at[] = {i};
      store_integer(a.top_ks.at(at), DType::i32, top_ks[random.below(12)]);
    }
  }
}

/// Heeds the word tensors of the cases: temperature and filters are tensors, or numbers.
inline void derive_filters(Case& which) {
  const bool tensors = which["tensors"] != 0;
  for (const char* name : {"top_ks", "top_ps", "min_ps"}) which[std::string(name) + ".present"] = tensors;
  if (which.contains("temperature")) which["temperatures.present"] = tensors;
  if (tensors && which.contains("temperature")) which["temperature"] = 1;
  if (tensors) which["top_p"] = 1, which["top_k"] = which["min_p"] = 0;
  which.erase("tensors");
}

}  // namespace quern::sampling
