// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "quern/base/host_dtype.h"
#include "quern/op/schema.h"
#include "quern/ops/activation/clamped_swiglu.h"
#include "quern/ops/activation/gelu.h"
#include "quern/ops/activation/gelu_and_mul.h"
#include "quern/ops/activation/gelu_tanh.h"
#include "quern/ops/activation/relu2.h"
#include "quern/ops/activation/silu.h"
#include "quern/ops/activation/silu_and_mul.h"
#include "quern/ops/activation/swiglu.h"

namespace quern::activation {
namespace {

using Pair = std::pair<ErrorKind, std::string>;
template <class F> Pair error_of(F f) {
  try {
    f();
  } catch (const Error& e) { return {e.kind(), e.what()}; }
  return {ErrorKind::internal, "no error"};
}

const std::vector<float> kEnds = {NAN, INFINITY, -INFINITY, 1e30f, -1e30f, 100.f, -100.f, 0.f, -0.f, 1e-40f, 14.5f, -14.5f};

template <class Args, class F> std::vector<float> of_ends(F f) {
  std::vector<float> x = kEnds, out(x.size(), -7);
  const i64 n = i64(x.size());
  Args a;
  a.out = TensorView(out.data(), DType::f32, {1, n});
  a.x = TensorView(x.data(), DType::f32, {1, n});
  f(a, RunOptions{});
  return out;
}

TEST(activation, ends_of_the_functions) {
  const std::vector<float> silu_of = of_ends<SiluArgs>(silu), gelu_of = of_ends<GeluArgs>(gelu), tanh_of = of_ends<GeluTanhArgs>(gelu_tanh),
                           relu2_of = of_ends<Relu2Args>(relu2);
  for (const std::vector<float>& y : {silu_of, gelu_of, tanh_of, relu2_of}) {
    EXPECT_TRUE(std::isnan(y[0]));
    EXPECT_EQ(y[1], INFINITY);
    EXPECT_EQ(y[7], 0.f);
    EXPECT_EQ(y[8], 0.f);
    EXPECT_GE(y[9], 0.f);
    EXPECT_LE(y[9], 1e-40f);
  }
  for (const std::vector<float>& y : {silu_of, gelu_of, tanh_of}) {
    EXPECT_EQ(y[3], 1e30f);
    EXPECT_NEAR(y[4], 0.f, 1e-2f) << "of -1e30: 1e30 times what is left of a probability of 0";
    EXPECT_EQ(y[5], 100.f);
    EXPECT_NEAR(y[6], 0.f, 1e-30f);
    EXPECT_NEAR(y[10], 14.5f, 1e-5f);
    EXPECT_NEAR(y[11], 0.f, 1e-5f);
  }
  EXPECT_EQ(relu2_of[2], 0.f);
  EXPECT_EQ(relu2_of[3], INFINITY);
  EXPECT_EQ(relu2_of[5], 10000.f);
  EXPECT_EQ(relu2_of[6], 0.f);
}

TEST(activation, two_tensors_are_the_halves_of_one) {
  constexpr i64 kRows = 3, kColumns = 37;
  std::vector<float> x(kRows * 2 * kColumns), one(kRows * kColumns, -1), two = one;
  for (size_t i = 0; i < x.size(); ++i) x[i] = float(int(i * 37 % 101) - 50) / 16;
  silu_and_mul({.out = {one.data(), DType::f32, {kRows, kColumns}}, .x = {x.data(), DType::f32, {kRows, 2 * kColumns}}});
  TensorView gate(x.data(), DType::f32, {kRows, kColumns}), up(x.data() + kColumns, DType::f32, {kRows, kColumns});
  gate.strides[0] = up.strides[0] = 2 * kColumns;
  swiglu({.out = {two.data(), DType::f32, {kRows, kColumns}}, .x = up, .gate = gate});
  EXPECT_EQ(one, two);
}

struct activation_clamped_swiglu : testing::Test {
  std::vector<float> x, out;
  ClampedSwigluArgs args(i64 columns) {
    out.assign(size_t(columns), -1);
    return {.out = TensorView(out.data(), DType::f32, {1, columns}), .x = TensorView(x.data(), DType::f32, {1, 2 * columns})};
  }
};

TEST_F(activation_clamped_swiglu, pairs_are_halves_in_another_order) {
  constexpr i64 kColumns = 24;
  std::vector<float> halves(2 * kColumns);
  for (i64 i = 0; i < 2 * kColumns; ++i) halves[size_t(i)] = float(int(i * 37 % 101) - 50) / 4;
  x = halves;
  clamped_swiglu(args(kColumns));
  const std::vector<float> expected = out;
  for (i64 i = 0; i < kColumns; ++i) x[size_t(2 * i)] = halves[size_t(i)], x[size_t(2 * i + 1)] = halves[size_t(kColumns + i)];
  ClampedSwigluArgs a = args(kColumns);
  a.interleaved = true;
  clamped_swiglu(a);
  EXPECT_EQ(out, expected);
}

TEST_F(activation_clamped_swiglu, cuts_as_stated_and_keeps_nan) {
  x = {100, -100, NAN, 1, 1, /* ups */ 1, 1, 1, NAN, 100};
  clamped_swiglu(args(5));
  const auto formula = [](double gate, double up) { return (up + 1) * gate / (1 + std::exp(-1.702 * gate)); };
  EXPECT_NEAR(out[0], formula(7, 1), 1e-5) << "gate is cut from above";
  EXPECT_NEAR(out[1], 0, 1e-30) << "and not from below";
  EXPECT_TRUE(std::isnan(out[2]));
  EXPECT_TRUE(std::isnan(out[3]));
  EXPECT_NEAR(out[4], formula(1, 7), 1e-5);
  x = {1, -100};
  clamped_swiglu(args(1));
  EXPECT_NEAR(out[0], formula(1, -7), 1e-5) << "up is cut on both sides";
  ClampedSwigluArgs a = args(1);
  a.limit = 1e30f;
  clamped_swiglu(a);
  EXPECT_NEAR(out[0], formula(1, -100), 1e-4);
}

TEST_F(activation_clamped_swiglu, refuses_attributes_that_make_no_sense) {
  x = {1, 1};
  ClampedSwigluArgs a = args(1);
  a.limit = 0;
  EXPECT_EQ(error_of([&] { clamped_swiglu(a); }),
            Pair(ErrorKind::value, "activation.clamped_swiglu: `limit` is 0, expected a positive, finite number"));
  a = args(1), a.limit = NAN;
  EXPECT_EQ(error_of([&] { clamped_swiglu(a); }).first, ErrorKind::value);
  a = args(1), a.alpha = INFINITY;
  EXPECT_EQ(error_of([&] { clamped_swiglu(a); }),
            Pair(ErrorKind::value, "activation.clamped_swiglu: `alpha` is inf, expected a finite number"));
  a = args(1), a.beta = NAN;
  EXPECT_EQ(error_of([&] { clamped_swiglu(a); }).first, ErrorKind::value);
}

/// A group of small values: its scale follows from them with a small floor, and from the floor with a large one.
TEST(activation, amax_floor_bounds_the_scales_of_small_groups) {
  std::vector<float> x(256, 1e-6f), scales(1, -1);
  std::vector<u8> q(128, 0xFF);
  x[5] = 2e-6f;
  for (i64 i = 128; i < 256; ++i) x[size_t(i)] = 1.f;
  GeluAndMulArgs a{.out = TensorView(q.data(), DType::e4m3, {1, 128}),
                   .scales = TensorView(scales.data(), DType::f32, {1, 1}),
                   .x = TensorView(x.data(), DType::f32, {1, 256})};
  gelu_and_mul(a);
  EXPECT_EQ(scales[0], 1e-4f / 448.0f);
  a.amax_floor = 1e-10f;
  gelu_and_mul(a);
  EXPECT_NEAR(scales[0] * 448, 1e-6, 1e-11);
  EXPECT_EQ(load_value(&q[5], DType::e4m3), 448);
  a.amax_floor = 0;
  EXPECT_EQ(error_of([&] { gelu_and_mul(a); }),
            Pair(ErrorKind::value, "activation.gelu_and_mul: `amax_floor` is 0, expected a number from 1e-30 to 1e30"));
}

TEST(activation, a_plain_function_may_replace_its_input) {
  std::vector<float> x = {-1, 2, 3};
  const TensorView view(x.data(), DType::f32, {1, 3});
  relu2({.out = view, .x = view});
  EXPECT_EQ(x, (std::vector<float>{0, 4, 9}));
}

}  // namespace
}  // namespace quern::activation
