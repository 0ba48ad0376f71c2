// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/sampling/softmax_backward.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "quern/op/schema.h"
#include "quern/ops/sampling/softmax.h"
#include "quern/testing/plain_rows.h"

namespace quern::sampling {
namespace {

using testing::some, testing::view;

/// Against difference quotients of the forward op's formula in double, also for long rows.
TEST(sampling_softmax_backward, is_the_derivative_of_softmax) {
  for (const i64 vocab : {3, 65, 9001}) {
    std::vector<float> logits = some(vocab, 1), dy = some(vocab, 2), y(logits.size()), dx(logits.size());
    const float temperature = 1.25f;
    softmax({.out = view(y, {1, vocab}), .logits = view(logits, {1, vocab}), .temperature = temperature});
    softmax_backward({.dlogits = view(dx, {1, vocab}), .dy = view(dy, {1, vocab}), .out = view(y, {1, vocab}), .temperature = temperature});
    const auto loss = [&](size_t at, double step) {
      double sum = 0, dot = 0;
      for (size_t i = 0; i < logits.size(); ++i) {
        const double e = std::exp((logits[i] + (i == at ? step : 0)) / temperature);
        sum += e, dot += e * dy[i];
      }
      return dot / sum;
    };
    for (size_t at = 0; at < logits.size(); at += 1 + logits.size() / 7) {
      const double slope = (loss(at, 1e-4) - loss(at, -1e-4)) / 2e-4;
      EXPECT_NEAR(dx[at], slope, 1e-6 + 1e-5 * std::abs(slope)) << vocab << ": " << at;
    }
  }
}

TEST(sampling_softmax_backward, where_the_largest_is_chosen_is_zero_and_nan_stays) {
  std::vector<float> y = {0, 1, 0, 0.25f, NAN, 0.5f}, dy = {1, 2, 3, 4, 5, 6}, dx(6, 7.f), temperatures = {0, 0};
  softmax_backward({.dlogits = view(dx, {2, 3}), .dy = view(dy, {2, 3}), .out = view(y, {2, 3}), .temperatures = view(temperatures, {2})});
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(dx[i], 0) << i;
  for (size_t i = 3; i < 6; ++i) EXPECT_TRUE(std::isnan(dx[i])) << i;
}

/// Rows of a few lanes, of a block, and long ones, whose sums are made in chunks: unaligned ones have the same bits, and rows those that
/// each has alone; a gradient that is one for all rows, of stride 0, is taken.
TEST(sampling_softmax_backward, has_the_same_bits_at_any_alignment_and_alone) {
  for (const i64 vocab : {7, 160, 1000, 9001}) {
    std::vector<float> y = some(3 * vocab, 1), dy = some(vocab, 2), moved_y(y.size() + 1), dx(y.size()), moved(y.size() + 1),
                       alone(dy.size());
    std::copy(y.begin(), y.end(), moved_y.begin() + 1);
    TensorView one = view(dy, {3, vocab});
    one.strides[0] = 0;
    const auto rows = [&](float* data, i64 n) { return TensorView(data, DType::f32, {n, vocab}); };
    softmax_backward({.dlogits = rows(dx.data(), 3), .dy = one, .out = rows(y.data(), 3)});
    softmax_backward({.dlogits = rows(moved.data() + 1, 3), .dy = one, .out = rows(moved_y.data() + 1, 3)});
    softmax_backward({.dlogits = rows(alone.data(), 1), .dy = rows(dy.data(), 1), .out = rows(y.data() + 2 * vocab, 1)});
    EXPECT_TRUE(std::equal(dx.begin(), dx.end(), moved.begin() + 1)) << vocab;
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), dx.begin() + 2 * vocab)) << vocab;
    EXPECT_NE(dx[0], 0);
  }
}

}  // namespace
}  // namespace quern::sampling
