// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "check.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace engine {

void LogitsCheck::add(const Engine& engine) {
  const std::vector<StepReport::Row>& rows = engine.last_step().rows;
  for (size_t i = 0; i < rows.size(); ++i) {
    std::vector<i32> tokens;
    for (i64 p = rows[i].first; p < rows[i].first + rows[i].count; ++p) tokens.push_back(engine.token(rows[i].request, p));
    const std::vector<double> expected = reference_.advance(sequences_[rows[i].request], tokens);
    if (!rows[i].sampled) continue;
    const std::vector<float> got = engine.logits(i64(i));
    double difference = 0, magnitude = 0;
    for (size_t t = 0; t < got.size(); ++t) {
      difference += (double(got[t]) - expected[t]) * (double(got[t]) - expected[t]);
      magnitude += expected[t] * expected[t];
    }
    const double error = std::sqrt(difference / magnitude);
    worst_ = std::isfinite(error) ? std::max(worst_, error) : std::numeric_limits<double>::infinity();
    same_largest_ += std::max_element(got.begin(), got.end()) - got.begin() == std::max_element(expected.begin(), expected.end()) - expected.begin();
    ++rows_;
  }
}

}  // namespace engine
