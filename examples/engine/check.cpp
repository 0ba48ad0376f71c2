// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "check.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "quern/base/host_dtype.h"
#include "quern/ops/sampling/sample.h"

namespace engine {

LogitsCheck::LogitsCheck(const ModelConfig& config, const Weights& weights, quern::Device& device)
    : reference_(config, weights, device),
      device_(device),
      memory_(device),
      row_(memory_.tensor(DType::f32, {1, config.vocab}, "a row of logits")),
      seed_(memory_.tensor(DType::i64, {1}, "seed")),
      offset_(memory_.tensor(DType::i64, {1}, "offset")),
      token_(memory_.tensor(DType::i32, {1}, "token")),
      least_(2 * quern::unit_roundoff(config.dtype) * std::sqrt(2.0 * double(config.layers) + 1)) {}

i32 LogitsCheck::token_of(const std::vector<float>& logits, const Request& request, i64 position) {
  if (request.temperature == 0) return i32(std::max_element(logits.begin(), logits.end()) - logits.begin());
  device_.copy(row_.data, logits.data(), logits.size() * sizeof(float), {});
  device_.copy(seed_.data, &request.seed, sizeof(i64), {});
  device_.copy(offset_.data, &position, sizeof(i64), {});
  quern::sampling::sample({.out = token_,
                           .logits = row_,
                           .seeds = seed_,
                           .offsets = offset_,
                           .temperature = request.temperature,
                           .top_k = request.top_k,
                           .top_p = request.top_p,
                           .min_p = request.min_p},
                          {.device = &device_});
  i32 token = -1;
  device_.copy(&token, token_.data, sizeof token, {});
  device_.synchronize({});
  return token;
}

static double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double squares = 0;
  for (size_t i = 0; i < a.size(); ++i) squares += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(squares);
}

void LogitsCheck::add(const Engine& engine, const std::vector<Request>& requests) {
  const std::vector<StepReport::Row>& rows = engine.last_step().rows;
  for (size_t i = 0; i < rows.size(); ++i) {
    const StepReport::Row& row = rows[i];
    std::vector<i32> tokens;
    for (i64 p = row.first; p < row.first + row.count; ++p) tokens.push_back(engine.token(row.request, p));
    double scale = 0, other = 0;
    const std::vector<double> expected = reference_.advance(exact_[row.request], tokens, Reference::Rounding::exact, scale);
    const std::vector<double> rounded = reference_.advance(as_stored_[row.request], tokens, Reference::Rounding::as_stored, other);
    if (!row.sampled) continue;
    const std::vector<float> logits = engine.logits(i64(i));
    const std::vector<double> got(logits.begin(), logits.end());
    const double error = scale > 0 ? distance(got, expected) / scale : distance(got, expected);
    worst_ = std::isfinite(error) ? std::max(worst_, error) : std::numeric_limits<double>::infinity();
    if (scale > 0) rounded_ = std::max(rounded_, distance(rounded, expected) / scale);
    same_largest_ +=
        std::max_element(got.begin(), got.end()) - got.begin() == std::max_element(expected.begin(), expected.end()) - expected.begin();
    wrong_tokens_ += row.drawn && row.token != token_of(logits, requests[size_t(row.request)], row.first + row.count);
    ++rows_;
  }
}

}  // namespace engine
