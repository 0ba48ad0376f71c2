// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "quern/op/schema.h"
#include "quern/ops/activation/clamped_swiglu_backward.h"
#include "quern/ops/activation/gelu_backward.h"
#include "quern/ops/activation/gelu_tanh_backward.h"
#include "quern/ops/activation/relu2_backward.h"
#include "quern/ops/activation/silu_and_mul_backward.h"
#include "quern/ops/activation/silu_backward.h"
#include "quern/ops/activation/swiglu_backward.h"

namespace quern::activation {
namespace {

TensorView view(std::vector<float>& v, std::initializer_list<i64> shape) { return TensorView(v.data(), DType::f32, shape); }

/// f' of one value, by an op of one operand.
template <class Args, void (*op)(const Args&, const RunOptions&)> float slope(float x) {
  float dy = 1, dx = NAN;
  op({.dx = TensorView(&dx, DType::f32, {1, 1}), .dy = TensorView(&dy, DType::f32, {1, 1}), .x = TensorView(&x, DType::f32, {1, 1})}, {});
  return dx;
}
float silu_slope(float x) { return slope<SiluBackwardArgs, silu_backward>(x); }
float gelu_slope(float x) { return slope<GeluBackwardArgs, gelu_backward>(x); }
float gelu_tanh_slope(float x) { return slope<GeluTanhBackwardArgs, gelu_tanh_backward>(x); }
float relu2_slope(float x) { return slope<Relu2BackwardArgs, relu2_backward>(x); }

/// Difference quotients of the functions in double: what a mistake that formula and reference share would not pass.
TEST(activation_backward, are_the_slopes_of_the_functions) {
  const auto silu = [](double x) { return x / (1 + std::exp(-x)); };
  const auto gelu = [](double x) { return x * std::erfc(-x / std::sqrt(2.0)) / 2; };
  const auto gelu_tanh = [](double x) { return x / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x))); };
  const auto relu2 = [](double x) { return x > 0 ? x * x : 0; };
  const auto expect = [](float got, double x, const auto& f) { EXPECT_NEAR(got, (f(x + 1e-5) - f(x - 1e-5)) / 2e-5, 3e-6) << x; };
  for (const float x : {-6.f, -1.2784645f, -0.3f, 0.f, 0.7f, 2.f, 9.f}) {
    expect(silu_slope(x), x, silu), expect(gelu_slope(x), x, gelu), expect(gelu_tanh_slope(x), x, gelu_tanh);
    if (x != 0) expect(relu2_slope(x), x, relu2);
  }
}

/// Far out there is no overflow on the way, and NaN stays.
TEST(activation_backward, end_in_one_and_zero) {
  for (const float x : {200.f, 3e4f}) {
    EXPECT_EQ(silu_slope(x), 1.f);
    EXPECT_EQ(gelu_slope(x), 1.f);
    EXPECT_EQ(gelu_tanh_slope(x), 1.f);
    EXPECT_EQ(relu2_slope(x), 2 * x);
    EXPECT_EQ(silu_slope(-x), 0.f);
    EXPECT_LT(std::abs(gelu_slope(-x)), 1e-33f);  // the tail's fit ends at 14
    EXPECT_EQ(gelu_tanh_slope(-x), 0.f);
    EXPECT_EQ(relu2_slope(-x), 0.f);
  }
  EXPECT_TRUE(std::isnan(silu_slope(NAN)) && std::isnan(gelu_slope(NAN)) && std::isnan(gelu_tanh_slope(NAN)) &&
              std::isnan(relu2_slope(NAN)));
}

/// What was cut has no slope, a value at the limit has; NaN is not cut.
TEST(activation_backward, clamped_values_have_no_slope) {
  std::vector<float> x = {7, 8, 1, 1, NAN, /* ups */ 1, 1, -7, 7.5f, 1}, dy(5, 1.f), dx(10, NAN);
  clamped_swiglu_backward({.dx = view(dx, {1, 10}), .dy = view(dy, {1, 5}), .x = view(x, {1, 10})});
  EXPECT_NE(dx[0], 0);
  EXPECT_EQ(dx[1], 0);
  EXPECT_NE(dx[2], 0);
  EXPECT_NE(dx[7], 0);
  EXPECT_EQ(dx[8], 0);
  EXPECT_TRUE(std::isnan(dx[4]) && std::isnan(dx[9]));
  try {
    clamped_swiglu_backward({.dx = view(dx, {1, 10}), .dy = view(dy, {1, 5}), .x = view(x, {1, 10}), .limit = 0});
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "activation.clamped_swiglu_backward: `limit` is 0, expected a positive, finite number");
  }
}

/// Gradients may replace what they are of; rows that are one, of stride 0, are taken.
TEST(activation_backward, in_place_and_of_one_row) {
  std::vector<float> x(2 * 2 * 65), row(65), dy, dx(x.size(), NAN);
  for (size_t i = 0; i < x.size(); ++i) x[i] = float(int(i * 37 % 101) - 50) / 16;
  for (size_t i = 0; i < row.size(); ++i) row[i] = float(int(i * 53 % 89) - 44) / 16;
  dy = row, dy.insert(dy.end(), row.begin(), row.end());
  silu_and_mul_backward({.dx = view(dx, {2, 130}), .dy = view(dy, {2, 65}), .x = view(x, {2, 130})});
  TensorView one = view(row, {2, 65});
  one.strides[0] = 0;
  silu_and_mul_backward({.dx = view(x, {2, 130}), .dy = one, .x = view(x, {2, 130})});
  EXPECT_EQ(x, dx);
}

TEST(activation_backward, swiglu_has_two_results) {
  std::vector<float> x = {2, 3}, gate = {1, -1}, dy = {1, 10}, dx(2, NAN), dgate(2, NAN);
  swiglu_backward(
      {.dx = view(dx, {1, 2}), .dgate = view(dgate, {1, 2}), .dy = view(dy, {1, 2}), .x = view(x, {1, 2}), .gate = view(gate, {1, 2})});
  for (size_t i = 0; i < 2; ++i) {
    const double g = gate[i], s = 1 / (1 + std::exp(-g));
    EXPECT_NEAR(dx[i], dy[i] * g * s, 1e-5) << i;
    EXPECT_NEAR(dgate[i], dy[i] * x[i] * (s + g * s * (1 - s)), 1e-5) << i;
  }
}

}  // namespace
}  // namespace quern::activation
