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
#include "quern/ops/activation/silu_and_mul.h"

namespace quern::activation {
namespace {

/// 3 rows of 300: a group of 128 of them is the last one's 44.
struct activation_silu_and_mul : testing::Test {
  static constexpr i64 kRows = 3, kColumns = 300, kGroups = 3;
  std::vector<float> x = std::vector<float>(kRows * 2 * kColumns), y = std::vector<float>(kRows * kColumns),
                     scales = std::vector<float>(4 * kGroups, -1);
  std::vector<u8> q = std::vector<u8>(kRows * kColumns, 0xFF);

  void SetUp() override {
    for (size_t i = 0; i < x.size(); ++i) x[i] = float(int(i * 37 % 101) - 50) / 16;
  }
  SiluAndMulArgs f32() {
    return {.out = TensorView(y.data(), DType::f32, {kRows, kColumns}), .x = TensorView(x.data(), DType::f32, {kRows, 2 * kColumns})};
  }
  SiluAndMulArgs fp8() {
    SiluAndMulArgs a = f32();
    a.out = TensorView(q.data(), DType::e4m3, {kRows, kColumns});
    a.scales = TensorView(scales.data(), DType::f32, {kRows, kGroups});
    a.scales.strides[0] = 1, a.scales.strides[1] = 4;
    return a;
  }
  std::pair<ErrorKind, std::string> error(const SiluAndMulArgs& args) {
    try {
      silu_and_mul(args);
    } catch (const Error& e) { return {e.kind(), e.what()}; }
    return {ErrorKind::internal, "no error"};
  }
};
using Pair = std::pair<ErrorKind, std::string>;

/// Bit for bit: x is f32, so an f32 output is what was quantised.
TEST_F(activation_silu_and_mul, quantises_its_unrounded_result) {
  x[2 * kColumns + 130] = 0;  // row 1: a group of zeros
  for (i64 j = 128; j < 256; ++j) x[size_t(2 * kColumns + j)] = 0;
  x[2 * 2 * kColumns + 5] = NAN;
  silu_and_mul(f32());
  silu_and_mul(fp8());
  for (i64 t = 0; t < kRows; ++t)
    for (i64 g = 0; g < kGroups; ++g) {
      const float* row = &y[size_t(t * kColumns)];
      float amax = 1e-4f;
      bool nan = false;
      for (i64 j = g * 128; j < std::min<i64>(g * 128 + 128, kColumns); ++j)
        amax = std::max(amax, std::fabs(row[j])), nan |= std::isnan(row[j]);
      const float scale = nan ? NAN : amax / 448.0f, got = scales[size_t(g * 4 + t)];
      EXPECT_TRUE(nan ? std::isnan(got) : got == scale) << t << " " << g;
      for (i64 j = g * 128; j < std::min<i64>(g * 128 + 128, kColumns); ++j) {
        u8 expected = 0;
        store_value(&expected, DType::e4m3, row[j] * (1.0f / scale));
        EXPECT_EQ(q[size_t(t * kColumns + j)], expected) << t << " " << j;
      }
    }
  for (i64 g = 0; g < kGroups; ++g) EXPECT_EQ(scales[size_t(g * 4 + 3)], -1) << "padding";
}

TEST_F(activation_silu_and_mul, scales_come_with_an_fp8_output_and_only_then) {
  SiluAndMulArgs a = fp8();
  a.scales = {};
  EXPECT_EQ(error(a), Pair(ErrorKind::value, "activation.silu_and_mul: `scales` is absent, expected a tensor: `out` is e4m3"));
  a = f32();
  a.scales = fp8().scales;
  EXPECT_EQ(error(a), Pair(ErrorKind::value, "activation.silu_and_mul: `scales` is given, expected none: `out` is not e4m3"));
  a = fp8();
  a.scales.shape[1] = 4;
  EXPECT_EQ(
      error(a),
      Pair(
          ErrorKind::value,
          "activation.silu_and_mul: `scales` has shape [3, 4], expected ceil_div(intermediate,128)=3 at dim 1 (intermediate was set by `x` [3, 600])"));
}

}  // namespace
}  // namespace quern::activation
