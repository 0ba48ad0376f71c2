// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/quant/per_token.h"

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

struct quant_per_token : testing::Test {
  static constexpr i64 m = 2, k = 6;
  std::vector<float> x = {1, -2, 3, 0.25f, 0, 63.5f, 1, 2, 3, 4, 5, -6};
  std::vector<i8> q = std::vector<i8>(m * k, 99);
  std::vector<float> scales = {-1, -1};
  float bound = 0;
  PerTokenArgs args(DType dtype) {
    return {.q = TensorView(q.data(), dtype, {m, k}),
            .scales = TensorView(scales.data(), DType::f32, {m, 1}),
            .x = TensorView(x.data(), DType::f32, {m, k})};
  }
};

TEST_F(quant_per_token, a_row_has_a_scale) {
  per_token(args(DType::i8));
  EXPECT_EQ(scales, (std::vector<float>{0.5f, 6.f / 127.f}));
  EXPECT_EQ(q, (std::vector<i8>{2, -4, 6, 0, 0, 127, 21, 42, 64, 85, 106,
                                -127}));  // 0.25 / 0.5 is a half: to even; 3 / (6 / 127) is 63.5 and a little
  x[5] = 448, x[11] = -448;
  per_token(args(DType::e4m3));
  EXPECT_EQ(scales, (std::vector<float>{1, 1}));
  EXPECT_EQ(q, (std::vector<i8>{0x38, i8(0xC0), 0x44, 0x28, 0, 0x7E, 0x38, 0x40, 0x44, 0x48, 0x4A, i8(0xFE)}));
}

TEST_F(quant_per_token, a_bound_cuts_what_is_larger) {
  bound = 2.f;
  PerTokenArgs a = args(DType::i8);
  a.scale_upper_bound = TensorView(&bound, DType::f32, {1});
  x[4] = -INFINITY;
  per_token(a);
  EXPECT_EQ(scales, (std::vector<float>{2.f / 127.f, 2.f / 127.f}));
  EXPECT_EQ(q[1], -127);
  EXPECT_EQ(q[2], 127);
  EXPECT_EQ(q[4], -127);
  bound = 1e-6f;  // below the floor
  per_token(a);
  EXPECT_EQ(scales[0], 1e-4f / 127.f);
  x[4] = NAN, bound = 2.f;
  per_token(a);
  EXPECT_TRUE(std::isnan(scales[0]));
  EXPECT_EQ(scales[1], 2.f / 127.f);
}

TEST_F(quant_per_token, rows_without_columns_have_scales) {
  PerTokenArgs a = args(DType::e5m2);
  a.q.shape[1] = a.x.shape[1] = 0;
  a.amax_floor = 57344.f;
  per_token(a);
  EXPECT_EQ(scales, (std::vector<float>{1, 1}));
}

TEST_F(quant_per_token, scales_of_another_shape) {
  PerTokenArgs a = args(DType::i8);
  a.scales = TensorView(scales.data(), DType::f32, {2});
  EXPECT_EQ(error_of([&] { per_token(a); }), Pair(ErrorKind::value, "quant.per_token: `scales` has shape [2], expected 2 dims [m 1]"));
  a = args(DType::u8);
  EXPECT_EQ(error_of([&] { per_token(a); }), Pair(ErrorKind::type, "quant.per_token: `q` is u8, expected e4m3, e5m2 or i8"));
}

/// Short rows by a warp, long ones by a block, longer than registers: read twice.
TEST(quant_per_token_plan, holds_rows_in_registers_while_they_fit) {
  const auto kernel_of = [](i64 k) {
    PerTokenArgs a;
    const auto fake = [](i64 which) { return reinterpret_cast<void*>(which << 44); };
    a.x = TensorView(fake(1), DType::bf16, {16, k});
    a.q = TensorView(fake(2), DType::e4m3, {16, k});
    a.scales = TensorView(fake(3), DType::f32, {16, 1});
    const Op& op = find_op("quant.per_token");
    const Plan plan = make_plan(op, bind(op, &a, {}), device_info_of(Arch::parse("sm_90a")));
    return jit::print(plan.launches[0].spec);
  };
  EXPECT_EQ(kernel_of(1024), "per_token_row<x_dtype=bf16, q_dtype=e4m3, bounded=0, vector=8, held=4, row_threads=32, threads=256>");
  EXPECT_EQ(kernel_of(7168), "per_token_row<x_dtype=bf16, q_dtype=e4m3, bounded=0, vector=8, held=2, row_threads=448, threads=448>");
  EXPECT_EQ(kernel_of(28672), "per_token_row<x_dtype=bf16, q_dtype=e4m3, bounded=0, vector=8, held=0, row_threads=1024, threads=1024>");
}

}  // namespace
}  // namespace quern::quant
