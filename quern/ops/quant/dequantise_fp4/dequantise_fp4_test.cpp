// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/quant/dequantise_fp4.h"

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

/// 32 columns: all 16 values in order, twice; the even one is in the low bits.
struct quant_dequantise_fp4 : testing::Test {
  static constexpr float kValues[16] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.f, -0.5f, -1, -1.5f, -2, -3, -4, -6};
  std::vector<u8> x, scales;
  std::vector<float> out = std::vector<float>(32, -99.f);
  float global = 3.f;
  quant_dequantise_fp4() {
    for (int half = 0; half < 2; ++half)
      for (int i = 0; i < 8; ++i) x.push_back(u8(2 * i | (2 * i + 1) << 4));
  }
  DequantiseFp4Args args(i32 group, DType scale, std::vector<u8> bytes) {
    scales = std::move(bytes);
    return {.out = TensorView(out.data(), DType::f32, {1, 32}),
            .x = TensorView(x.data(), DType::u8, {1, 16}),
            .scales = TensorView(scales.data(), scale, {1, i64(scales.size())}),
            .group_size = group};
  }
};

TEST_F(quant_dequantise_fp4, nvfp4_has_a_scale_for_16_columns_and_one_for_all) {
  DequantiseFp4Args a = args(16, DType::e4m3, {0x38, 0xC4});  // 1 and -3
  dequantise_fp4(a);
  for (size_t j = 0; j < 32; ++j) EXPECT_EQ(out[j], kValues[j % 16] * (j < 16 ? 1.f : -3.f)) << j;
  EXPECT_TRUE(std::signbit(out[8]));
  a.global_scale = TensorView(&global, DType::f32, {1});
  dequantise_fp4(a);
  for (size_t j = 0; j < 32; ++j) EXPECT_EQ(out[j], kValues[j % 16] * (j < 16 ? 3.f : -9.f)) << j;
}

TEST_F(quant_dequantise_fp4, mxfp4_has_an_exponent_for_32_columns) {
  for (const int byte : {0, 1, 100, 127, 130, 254}) {
    dequantise_fp4(args(32, DType::u8, {u8(byte)}));
    for (size_t j = 0; j < 32; ++j) EXPECT_EQ(out[j], float(std::ldexp(double(kValues[j % 16]), byte - 127))) << byte << " " << j;
  }
  dequantise_fp4(args(32, DType::u8, {255}));
  for (const float v : out) EXPECT_TRUE(std::isnan(v));
}

TEST_F(quant_dequantise_fp4, groups_that_are_none) {
  EXPECT_EQ(error_of([&] { dequantise_fp4(args(8, DType::u8, {1, 1, 1, 1})); }),
            Pair(ErrorKind::value, "quant.dequantise_fp4: `group_size` is 8, expected 16 or 32"));
  EXPECT_EQ(error_of([&] { dequantise_fp4(args(32, DType::f32, {1})); }),
            Pair(ErrorKind::type, "quant.dequantise_fp4: `scales` is f32, expected e4m3 or u8"));
}

}  // namespace
}  // namespace quern::quant
