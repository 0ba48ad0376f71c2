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
#include "quern/ops/norm/fused_add_layer_norm.h"
#include "quern/ops/norm/fused_add_rms_norm.h"
#include "quern/ops/norm/layer_norm.h"
#include "quern/ops/norm/rms_norm.h"
#include "quern/ops/norm/rms_norm_heads.h"

namespace quern::norm {
namespace {

using Pair = std::pair<ErrorKind, std::string>;
template <class F> Pair error_of(F f) {
  try {
    f();
  } catch (const Error& e) { return {e.kind(), e.what()}; }
  return {ErrorKind::internal, "no error"};
}

std::vector<float> some(i64 n, int seed) {
  std::vector<float> v(static_cast<size_t>(n));
  for (i64 i = 0; i < n; ++i) v[size_t(i)] = float((i * 37 + seed * 11) % 101 - 50) / 16;
  return v;
}

/// Bit for bit: x is f32, so an f32 output is what was quantised. Rows of a warp, of a block, unaligned and too long to be held; residuals
/// are equal too.
TEST(norm_form, quantises_its_unrounded_result_with_one_scale_or_one_a_row) {
  for (const i64 hidden : {300, 2048, 2049, 9001}) {
    const i64 rows = 3, n = rows * hidden;
    std::vector<float> x = some(n, 1), first = some(n, 2), second = first, third = first, weight = some(hidden, 3), y(size_t(n), NAN),
                       scales(size_t(rows), NAN), fixed = {0.01f};
    std::fill(x.begin() + hidden, x.begin() + 2 * hidden, 0.f), std::fill(first.begin() + hidden, first.begin() + 2 * hidden, 0.f);
    second = third = first;
    std::vector<u8> by_token(size_t(n), 0xFF), by_tensor = by_token;
    const auto all = [&](void* data, DType dtype) { return TensorView(data, dtype, {rows, hidden}); };
    FusedAddRmsNormArgs a{.out = all(y.data(), DType::f32),
                          .residual = all(first.data(), DType::f32),
                          .x = all(x.data(), DType::f32),
                          .weight = TensorView(weight.data(), DType::f32, {hidden})};
    a.weight_bias = 1;  // so that all three are made by one kernel
    fused_add_rms_norm(a);
    a.out = all(by_token.data(), DType::e4m3), a.residual = all(second.data(), DType::f32),
    a.token_scales = TensorView(scales.data(), DType::f32, {rows});
    fused_add_rms_norm(a);
    a.out = all(by_tensor.data(), DType::e4m3), a.residual = all(third.data(), DType::f32), a.token_scales = {},
    a.static_scale = TensorView(fixed.data(), DType::f32, {1});
    fused_add_rms_norm(a);
    EXPECT_EQ(first, second);
    EXPECT_EQ(first, third);
    for (i64 t = 0; t < rows; ++t) {
      float amax = 1e-4f;
      for (i64 h = 0; h < hidden; ++h) amax = std::max(amax, std::fabs(y[size_t(t * hidden + h)]));
      const float scale = amax / 448.0f;
      ASSERT_EQ(scales[size_t(t)], scale) << hidden << ": " << t;
      for (i64 h = 0; h < hidden; ++h) {
        u8 expected = 0;
        store_value(&expected, DType::e4m3, y[size_t(t * hidden + h)] * (1.0f / scale));
        ASSERT_EQ(by_token[size_t(t * hidden + h)], expected) << hidden << ": " << t << " " << h;
        store_value(&expected, DType::e4m3, y[size_t(t * hidden + h)] * (1.0f / fixed[0]));
        ASSERT_EQ(by_tensor[size_t(t * hidden + h)], expected) << hidden << ": " << t << " " << h;
      }
    }
  }
}

/// Rows at odd addresses are read element by element, and have the bits of aligned ones.
TEST(norm_form, has_the_same_bits_at_any_alignment) {
  for (const i64 hidden : {96, 1000, 4096}) {
    std::vector<u16> x(size_t(hidden) + 8), moved = x, out = x, shifted = x;
    std::vector<float> weight = some(hidden + 1, 1), bias = some(hidden + 1, 2);
    for (i64 h = 0; h < hidden; ++h) x[size_t(h)] = moved[size_t(h) + 1] = u16(0x3f00 + (h * 37) % 256 + (h % 3 ? 0x8000 : 0));
    const auto row = [&](u16* data) { return TensorView(data, DType::bf16, {1, hidden}); };
    const TensorView w(weight.data(), DType::f32, {hidden}), b(bias.data(), DType::f32, {hidden});
    layer_norm({.out = row(out.data()), .x = row(x.data()), .weight = w, .bias = b});
    layer_norm({.out = row(shifted.data() + 1), .x = row(moved.data() + 1), .weight = w, .bias = b});
    EXPECT_TRUE(std::equal(out.begin(), out.begin() + hidden, shifted.begin() + 1)) << "hidden " << hidden;
    EXPECT_NE(out[0], 0);
  }
}

/// A large mean beside small deviations: mean of squares minus square of the mean would have nothing left in f32.
TEST(norm_layer_norm, centres_before_it_squares) {
  std::vector<float> x(64), out(64, NAN);
  for (size_t i = 0; i < 64; ++i) x[i] = 4096.f + (i % 2 ? 0.25f : -0.25f);
  layer_norm({.out = {out.data(), DType::f32, {1, 64}}, .x = {x.data(), DType::f32, {1, 64}}, .eps = 0});
  for (size_t i = 0; i < 64; ++i) EXPECT_NEAR(out[i], i % 2 ? 1 : -1, 1e-6) << i;
}

TEST(norm_layer_norm, a_row_of_one_value_gives_the_bias) {
  std::vector<float> x(12, 3.f), weight(6, 2.f), bias = {1, 2, 3, 4, 5, 6}, out(12, NAN), residual(12, 1.f);
  const TensorView w(weight.data(), DType::f32, {6}), b(bias.data(), DType::f32, {6});
  layer_norm({.out = {out.data(), DType::f32, {2, 6}}, .x = {x.data(), DType::f32, {2, 6}}, .weight = w, .bias = b});
  for (size_t i = 0; i < 12; ++i) EXPECT_EQ(out[i], bias[i % 6]);
  std::fill(out.begin(), out.end(), NAN);
  fused_add_layer_norm({.out = {out.data(), DType::f32, {2, 6}},
                        .residual = {residual.data(), DType::f32, {2, 6}},
                        .x = {x.data(), DType::f32, {2, 6}},
                        .bias = b});
  for (size_t i = 0; i < 12; ++i) EXPECT_EQ(out[i], bias[i % 6]);
  EXPECT_EQ(residual, std::vector<float>(12, 4.f));
}

TEST(norm_layer_norm, weight_and_bias_have_one_dtype) {
  std::vector<float> x(8), w(8), b(8);
  LayerNormArgs a{.out = {x.data(), DType::bf16, {1, 8}},
                  .x = {x.data(), DType::bf16, {1, 8}},
                  .weight = {w.data(), DType::f32, {8}},
                  .bias = {b.data(), DType::bf16, {8}}};
  EXPECT_EQ(error_of([&] { layer_norm(a); }), Pair(ErrorKind::value, "norm.layer_norm: `bias` is bf16, expected the dtype of weight"));
}

/// Heads of k within a QKV tensor: what lies beside them stays.
TEST(norm_rms_norm_heads, heads_of_a_part_of_a_tensor) {
  constexpr i64 kTokens = 3, kWidth = 40, kHeads = 2, kDim = 8, kFirst = 16;
  std::vector<float> qkv = some(kTokens * kWidth, 1), before = qkv, weight = some(kDim, 2);
  TensorView k(qkv.data() + kFirst, DType::f32, {kTokens, kHeads, kDim});
  k.strides[0] = kWidth;
  rms_norm_heads({.out = k, .x = k, .weight = {weight.data(), DType::f32, {kDim}}, .eps = 1e-5f, .weight_bias = 1});
  for (i64 t = 0; t < kTokens; ++t)
    for (i64 c = 0; c < kWidth; ++c) {
      const size_t at = size_t(t * kWidth + c);
      if (c < kFirst || c >= kFirst + kHeads * kDim) {
        EXPECT_EQ(qkv[at], before[at]);
        continue;
      }
      const i64 head = (c - kFirst) / kDim, d = (c - kFirst) % kDim;
      double squares = 0;
      for (i64 i = 0; i < kDim; ++i) squares += std::pow(double(before[size_t(t * kWidth + kFirst + head * kDim + i)]), 2);
      EXPECT_NEAR(qkv[at], before[at] / std::sqrt(squares / kDim + 1e-5) * (weight[size_t(d)] + 1), 1e-5) << t << " " << c;
    }
}

TEST(norm_form, one_kind_of_scales) {
  std::vector<float> memory(64, 1.f);
  std::vector<u8> q(16);
  const auto f = [&](std::initializer_list<i64> shape) { return TensorView(memory.data(), DType::f32, shape); };
  RmsNormArgs a{.out = TensorView(q.data(), DType::e4m3, {2, 8}), .x = f({2, 8}), .weight = f({8})};
  const auto said = [&] { return error_of([&] { rms_norm(a); }).second; };
  EXPECT_EQ(said(), "norm.rms_norm: `scales` is absent, expected a tensor: `out` is e4m3");
  std::vector<float> scales(2), token_scales(2), one(1, 1.f);
  a.scales = TensorView(scales.data(), DType::f32, {2, 1}), a.token_scales = TensorView(token_scales.data(), DType::f32, {2});
  EXPECT_EQ(said(), "norm.rms_norm: `token_scales` is given, expected none beside scales");
  a.static_scale = TensorView(one.data(), DType::f32, {1});
  EXPECT_EQ(said(), "norm.rms_norm: `scales` is given, expected none beside static_scale");
  a.scales = {};
  EXPECT_EQ(said(), "norm.rms_norm: `token_scales` is given, expected none beside static_scale");
  std::vector<float> out(16);
  a.token_scales = {}, a.out = TensorView(out.data(), DType::f32, {2, 8});
  EXPECT_EQ(said(), "norm.rms_norm: `static_scale` is given, expected none: `out` is not e4m3");
  a.static_scale = {}, a.weight_bias = NAN;
  EXPECT_EQ(said(), "norm.rms_norm: `weight_bias` is nan, expected a number from -1e30 to 1e30");
}

}  // namespace
}  // namespace quern::norm
