// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/rope/frequencies.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "quern/base/error.h"

namespace quern::rope {

namespace {

constexpr double kTwoPi = 6.283185307179586476925287;

std::string text(double x) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.9g", x);
  return buffer;
}

[[noreturn]] void fail(const char* argument, double got, const std::string& expected) {
  throw Error(ErrorKind::value, "rope.frequencies", argument, "is " + text(got), expected);
}

void within(const char* argument, double x, double least, double most) {
  if (!(x >= least && x <= most)) fail(argument, x, "a number from " + text(least) + " to " + text(most));
}

void check(FrequencyKind kind, const FrequencyOptions& o) {
  if (kind < FrequencyKind::plain || kind > FrequencyKind::longrope)
    fail("kind", double(int(kind)), "plain, linear, llama3, yarn or longrope");
  if (o.rotary_dim < 2 || o.rotary_dim > 256 || o.rotary_dim % 2) fail("rotary_dim", o.rotary_dim, "an even number from 2 to 256");
  within("theta", o.theta, 1, 1e30);
  if (kind != FrequencyKind::plain) within("factor", o.factor, kind == FrequencyKind::linear ? 0.125 : 1, 1e30);
  const bool stretched = kind == FrequencyKind::llama3 || kind == FrequencyKind::yarn || kind == FrequencyKind::longrope;
  if (stretched && !(o.original_max > 1 && o.original_max <= 1e30)) fail("original_max", o.original_max, "more than 1, up to 1e30");
  if (kind == FrequencyKind::llama3) {
    within("low_freq_factor", o.low_freq_factor, 1e-30, 1e30);
    if (!(o.high_freq_factor > o.low_freq_factor && o.high_freq_factor <= 1e30))
      fail("high_freq_factor", o.high_freq_factor, "more than low_freq_factor, up to 1e30");
  }
  if (kind == FrequencyKind::yarn) {
    if (!(o.theta > 1)) fail("theta", o.theta, "more than 1: bounds of yarn are divided by its logarithm");
    within("beta_slow", o.beta_slow, 1e-30, 1e30);
    if (!(o.beta_fast > o.beta_slow && o.beta_fast <= 1e30)) fail("beta_fast", o.beta_fast, "more than beta_slow, up to 1e30");
    within("attn_factor", o.attn_factor, 1e-30, 1e30);
    within("mscale", o.mscale, 0, 1e3);
    within("mscale_all_dim", o.mscale_all_dim, 0, 1e3);
  }
  if (kind != FrequencyKind::longrope) {
    if (!o.divisors.empty()) fail("divisors", double(o.divisors.size()), "none: kind is not longrope");
    return;
  }
  if (o.divisors.size() != size_t(o.rotary_dim / 2))
    fail("divisors", double(o.divisors.size()), "rotary_dim / 2 = " + std::to_string(o.rotary_dim / 2) + " numbers");
  for (const double divisor : o.divisors) within("divisors", divisor, 0.125, 1e30);
}

/// What is left of a pair's own frequency, from 0 (stretched by factor) to 1.
double kept_of(FrequencyKind kind, const FrequencyOptions& o, i32 pair, double f) {
  if (kind == FrequencyKind::llama3) {
    const double turns = f * o.original_max / kTwoPi;  // within the original context
    return std::clamp((turns - o.low_freq_factor) / (o.high_freq_factor - o.low_freq_factor), 0.0, 1.0);
  }
  const auto pair_that_turns = [&](double turns) {
    return o.rotary_dim * std::log(o.original_max / (kTwoPi * turns)) / (2 * std::log(o.theta));
  };
  double low = pair_that_turns(o.beta_fast), high = pair_that_turns(o.beta_slow);
  if (o.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0), high = std::min(high, o.rotary_dim - 1.0);
  if (low == high) high += 0.001;
  return 1 - std::clamp((pair - low) / (high - low), 0.0, 1.0);
}

}  // namespace

Frequencies frequencies(FrequencyKind kind, const FrequencyOptions& o) {
  check(kind, o);
  Frequencies made;
  made.turns.reserve(size_t(o.rotary_dim));
  for (i32 i = 0; i < o.rotary_dim / 2; ++i) {
    double f = std::pow(o.theta, -2.0 * i / o.rotary_dim);
    if (kind == FrequencyKind::linear) f /= o.factor;
    if (kind == FrequencyKind::longrope) f /= o.divisors[size_t(i)];
    if (kind == FrequencyKind::llama3 || kind == FrequencyKind::yarn) {
      const double kept = kept_of(kind, o, i, f);
      f *= kept + (1 - kept) / o.factor;
    }
    const double turns = f / kTwoPi;
    made.turns.push_back(float(turns));
    made.turns.push_back(float(turns - double(float(turns))));
  }
  const auto mscale = [&](double m) { return 0.1 * m * std::log(o.factor) + 1; };
  if (kind == FrequencyKind::yarn) {
    made.cos_sin_scale = float(o.attn_factor * mscale(o.mscale) / mscale(o.mscale_all_dim));
    made.softmax_scale = float(mscale(o.mscale_all_dim) * mscale(o.mscale_all_dim));
  }
  if (kind == FrequencyKind::longrope) made.cos_sin_scale = float(std::sqrt(1 + std::log(o.factor) / std::log(o.original_max)));
  return made;
}

}  // namespace quern::rope
