// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Groups of other sizes, integers, and scales that are exponents; values/quant_test.cpp has the rest.
#include "quern/ops/quant/per_token_group.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "quern/op/schema.h"

namespace quern::quant {
namespace {

using Pair = std::pair<ErrorKind, std::string>;
template <class F> Pair error_of(F f) {
  try {
    f();
  } catch (const Error& e) { return {e.kind(), e.what()}; }
  return {ErrorKind::internal, "no error"};
}

/// Three rows of f32, and what quantising them to i8 gives.
struct quant_groups : testing::Test {
  static constexpr i64 m = 3, k = 200;
  std::vector<float> x = std::vector<float>(m * k);
  std::vector<i8> q = std::vector<i8>(m * k, 99);
  std::vector<float> scales;
  std::vector<u8> exponents;

  quant_groups() {
    u32 random = 12345;
    for (float& v : x) random = random * 1664525u + 1013904223u, v = float(i32(random)) * 0x1p-29f;
  }
  PerTokenGroupArgs args(i32 group, bool e8m0 = false) {
    const i64 groups = ceil_div<i64>(k, group);
    scales.assign(size_t(m * groups), -1.f), exponents.assign(size_t(m * groups), 77);
    return {.q = TensorView(q.data(), DType::i8, {m, k}),
            .scales = e8m0 ? TensorView(exponents.data(), DType::u8, {m, groups}) : TensorView(scales.data(), DType::f32, {m, groups}),
            .x = TensorView(x.data(), DType::f32, {m, k}),
            .group_size = group};
  }
};

TEST_F(quant_groups, integers_have_the_bits_that_the_formula_says) {
  for (const i32 group : {32, 64, 128}) {
    per_token_group(args(group));
    for (i64 i = 0; i < m; ++i)
      for (i64 g = 0; g < ceil_div<i64>(k, group); ++g) {
        float amax = 1e-4f;
        const i64 end = min_of<i64>(k, (g + 1) * group);
        for (i64 j = g * group; j < end; ++j) amax = std::max(amax, std::fabs(x[size_t(i * k + j)]));
        const float scale = amax / 127.f, inverse = 1.f / scale;
        EXPECT_EQ(scales[size_t(i * ceil_div<i64>(k, group) + g)], scale) << group;
        for (i64 j = g * group; j < end; ++j)
          EXPECT_EQ(float(q[size_t(i * k + j)]), std::nearbyint(x[size_t(i * k + j)] * inverse)) << group << " " << j;
      }
  }
}

/// The largest is 127, so that the scale is 1: halves lie between two integers.
TEST_F(quant_groups, halves_are_rounded_to_even) {
  x.assign(m * k, 0.f);
  const float halves[] = {0.5f, 1.5f, -0.5f, -1.5f, 2.5f, -2.5f, 126.5f, -126.5f, -127.f};
  const i8 rounded[] = {0, 2, 0, -2, 2, -2, 126, -126, -127};
  for (size_t j = 0; j < 9; ++j) x[j] = halves[j];
  per_token_group(args(32));
  EXPECT_EQ(scales[0], 1.f);
  for (size_t j = 0; j < 9; ++j) EXPECT_EQ(q[j], rounded[j]) << halves[j];
}

TEST_F(quant_groups, integers_have_no_nan) {
  x[0] = NAN;
  x[64] = INFINITY, x[65] = 1.f;
  per_token_group(args(64));
  EXPECT_TRUE(std::isnan(scales[0]));
  for (i64 j = 0; j < 64; ++j) EXPECT_EQ(q[size_t(j)], 0);
  EXPECT_EQ(scales[1], INFINITY);
  EXPECT_EQ(q[64], 0);
  EXPECT_EQ(q[65], 0);
}

TEST_F(quant_groups, exponents_are_those_of_scales_rounded_up) {
  x.assign(m * k, 0.f);
  x[0] = 127.f;     // scale 1
  x[32] = -127.5f;  // above 1: 2
  x[64] = 31.75f;   // 1 / 4
  x[96] = NAN;
  x[128] = INFINITY;
  PerTokenGroupArgs a = args(32, true);
  per_token_group(a);
  const u8 expected[] = {127, 128, 125, 255, 255, 107, 107};  // the least amax / 127 is 7.9e-7, below 2^-20
  for (size_t g = 0; g < 7; ++g) EXPECT_EQ(int(exponents[g]), expected[g]) << g;
  EXPECT_EQ(q[0], 127);
  EXPECT_EQ(q[32], -64);
  EXPECT_EQ(q[64], 127);
  a.amax_floor = 1e-30f;
  per_token_group(a);
  EXPECT_EQ(int(exponents[5]), 21);  // 1e-30 / 127 is between 2^-107 and 2^-106
}

/// Of small groups the reciprocal of a tiny scale may be large: q is cut, never -128.
TEST_F(quant_groups, a_lower_floor_keeps_small_values) {
  x.assign(m * k, 1e-8f);
  x[1] = -1e-8f;
  PerTokenGroupArgs a = args(128);
  per_token_group(a);
  EXPECT_EQ(q[0], 0);
  a.amax_floor = 1e-10f;
  per_token_group(a);
  EXPECT_EQ(scales[0], 1e-8f / 127.f);
  EXPECT_EQ(q[0], 127);
  EXPECT_EQ(q[1], -127);
}

TEST_F(quant_groups, sizes_and_floors_that_are_none) {
  for (const i32 group : {1, 16, 48, 256, -32}) {
    PerTokenGroupArgs a = args(32);
    a.group_size = group;
    EXPECT_EQ(error_of([&] { per_token_group(a); }).first, ErrorKind::value) << group;
  }
  PerTokenGroupArgs a = args(32);
  a.group_size = 16, a.scales.shape[1] = 13, a.scales.strides[0] = 13;
  EXPECT_EQ(error_of([&] { per_token_group(a); }),
            Pair(ErrorKind::value, "quant.per_token_group: `group_size` is 16, expected 32, 64 or 128"));
  a = args(64);
  a.group_size = 32;
  EXPECT_EQ(
      error_of([&] { per_token_group(a); }),
      Pair(
          ErrorKind::value,
          "quant.per_token_group: `scales` has shape [3, 4], expected ceil_div(k,group_size)=7 at dim 1 (k was set by `x` [3, 200]; group_size is 32)"));
  for (const float floor : {0.f, -1.f, NAN, INFINITY}) {
    a = args(64);
    a.amax_floor = floor;
    EXPECT_EQ(error_of([&] { per_token_group(a); }).first, ErrorKind::value) << floor;
  }
  a = args(64);
  a.amax_floor = 0.f;
  EXPECT_EQ(error_of([&] { per_token_group(a); }),
            Pair(ErrorKind::value, "quant.per_token_group: `amax_floor` is 0, expected a number from 1e-30 to 1e30"));
}

TEST_F(quant_groups, a_size_of_zero_is_an_error) {
  PerTokenGroupArgs a = args(32);
  a.group_size = 0;
  EXPECT_EQ(error_of([&] { per_token_group(a); }).first, ErrorKind::value) << error_of([&] { per_token_group(a); }).second;
}

}  // namespace
}  // namespace quern::quant
