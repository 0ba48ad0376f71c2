// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <vector>

#include "quern/op/schema.h"
#include "quern/ops/quant/per_block.h"
#include "quern/ops/quant/per_tensor.h"
#include "quern/ops/quant/per_token_group.h"
#include "quern/ops/quant/transform_scales.h"

namespace quern::quant {
namespace {

using Pair = std::pair<ErrorKind, std::string>;
Pair error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) { return {e.kind(), e.what()}; }
  return {ErrorKind::internal, "no error"};
}

// 39 with amax 104: the product with the rounded reciprocal of the scale is just above 168, between 160 and 176; the quotient
// by the scale is 168 and would be rounded to 160.
constexpr float kTieAmax = 104, kTie = 39;
constexpr u8 kTieQ = 0x73;  // 176

/// Some rows of f32 and what quantising them gives.
struct quant_per_token_group : testing::Test {
  i64 m = 0, k = 0;
  std::vector<float> x;
  std::vector<u8> q;
  std::vector<float> scales;

  /// Every element is `value`; scales lie MN-major in columns of `column` floats, which are -1 before the call.
  PerTokenGroupArgs args(i64 rows, i64 columns, float value, i64 column) {
    m = rows, k = columns;
    x.assign(size_t(m * k), value);
    q.assign(size_t(m * k), 0xFF);
    const i64 groups = ceil_div<i64>(k, 128);
    scales.assign(size_t(groups * column), -1.0f);
    PerTokenGroupArgs a{.q = TensorView(q.data(), DType::e4m3, {m, k}),
                        .scales = TensorView(scales.data(), DType::f32, {m, groups}),
                        .x = TensorView(x.data(), DType::f32, {m, k})};
    a.scales.strides[0] = 1, a.scales.strides[1] = column;
    return a;
  }
  float& at(i64 i, i64 j) { return x[size_t(i * k + j)]; }
  int q_at(i64 i, i64 j) const { return q[size_t(i * k + j)]; }
};

TEST_F(quant_per_token_group, has_the_bits_that_the_formula_says) {
  const PerTokenGroupArgs a = args(1, 256, 1.0f, 1);
  at(0, 5) = -3.5f;   // 3.5 / 448 is 2^-7
  at(0, 200) = 3.0f;  // 3 / 448 is no power of two: the product of 3 and the rounded reciprocal is 448 to within 2^-22
  per_token_group(a);
  EXPECT_EQ(scales[0], 0x1p-7f);
  EXPECT_EQ(q_at(0, 5), 0xFE);  // -448
  EXPECT_EQ(q_at(0, 0), 0x70);  // 128
  EXPECT_EQ(scales[1], 3.0f / 448.0f);
  EXPECT_EQ(q_at(0, 200), 0x7E);
  EXPECT_EQ(q_at(0, 128), 0x71);  // 149.33 lies between 144 and 160
  at(0, 0) = kTie, at(0, 5) = kTieAmax;
  per_token_group(a);
  EXPECT_EQ(q_at(0, 0), kTieQ);
}

TEST_F(quant_per_token_group, rounds_scales_up_to_powers_of_two) {
  PerTokenGroupArgs a = args(1, 256, 3.5f, 1);
  at(0, 130) = 3.6f;
  a.power_of_two = true;
  per_token_group(a);
  EXPECT_EQ(scales[0], 0x1p-7f);  // is one
  EXPECT_EQ(scales[1], 0x1p-6f);
  EXPECT_EQ(q_at(0, 0), 0x7E);    // 448
  EXPECT_EQ(q_at(0, 128), 0x76);  // 224
}

TEST_F(quant_per_token_group, zeros_nan_and_infinities_stay_in_their_group) {
  const PerTokenGroupArgs a = args(1, 512, 0.0f, 1);
  at(0, 128 + 3) = NAN;
  for (i64 j = 256; j < 384; ++j) at(0, j) = 2.0f;
  at(0, 300) = -INFINITY;
  at(0, 400) = 1e-5f;  // below the least amax
  per_token_group(a);
  EXPECT_EQ(scales[0], 1e-4f / 448.0f);
  EXPECT_TRUE(std::isnan(scales[1]));
  EXPECT_EQ(scales[2], INFINITY);
  EXPECT_EQ(scales[3], 1e-4f / 448.0f);
  for (i64 j = 0; j < 512; ++j) {
    if (j < 128) {
      EXPECT_EQ(q_at(0, j), 0) << j;
    } else if (j < 256 || j == 300) {
      EXPECT_EQ(q_at(0, j) & 0x7F, 0x7F) << j;
    } else if (j == 400) {
      EXPECT_EQ(q_at(0, j), 0x63) << j;  // 44.8 is rounded to 44
    } else EXPECT_EQ(q_at(0, j), 0) << j;
  }
}

/// 5 rows in columns of 8: every scale at its place, nothing between columns.
TEST_F(quant_per_token_group, writes_columns_and_leaves_the_padding_alone) {
  const PerTokenGroupArgs a = args(5, 300, 0.0f, 8);
  for (i64 i = 0; i < 5; ++i)
    for (i64 g = 0; g < 3; ++g) at(i, g * 128 + 7) = 448.0f * float(1 + i + 10 * g);
  per_token_group(a);
  for (i64 g = 0; g < 3; ++g)
    for (i64 i = 0; i < 8; ++i) EXPECT_EQ(scales[size_t(g * 8 + i)], i < 5 ? float(1 + i + 10 * g) : -1.0f) << i << " " << g;
}

TEST_F(quant_per_token_group, rejects_scales_of_another_count_or_dtype) {
  PerTokenGroupArgs a = args(2, 300, 1.0f, 2);
  a.scales.shape[1] = 2;
  EXPECT_EQ(
      error_of([&] { per_token_group(a); }),
      Pair(
          ErrorKind::value,
          "quant.per_token_group: `scales` has shape [2, 2], expected ceil_div(k,group_size)=3 at dim 1 (k was set by `x` [2, 300]; group_size is 128)"));
  a = args(2, 300, 1.0f, 2);
  a.scales.dtype = DType::e4m3;
  EXPECT_EQ(error_of([&] { per_token_group(a); }), Pair(ErrorKind::type, "quant.per_token_group: `scales` is e4m3, expected f32 or u8"));
  a = args(2, 300, 1.0f, 1);
  EXPECT_EQ(error_of([&] { per_token_group(a); }),
            Pair(ErrorKind::value, "quant.per_token_group: `scales` has stride 1 at dim 1, so that its rows overlap, expected at least 2"));
}

TEST_F(quant_per_token_group, plans_one_launch_of_wide_accesses) {
  PerTokenGroupArgs a;
  const auto fake = [](i64 which) { return reinterpret_cast<void*>(which << 44); };
  a.x = TensorView(fake(1), DType::bf16, {16384, 7168});
  a.q = TensorView(fake(2), DType::e4m3, {16384, 7168});
  a.scales = TensorView(fake(3), DType::f32, {16384, 56});
  const Op& op = find_op("quant.per_token_group");
  const Plan plan = make_plan(op, bind(op, &a, {}), device_info_of(Arch::parse("sm_90a")));
  EXPECT_EQ(plan.count, 1);
  EXPECT_EQ(jit::print(plan.launches[0].spec),
            "per_token_group_tile<x_dtype=bf16, q_dtype=e4m3, vector=8, steps=2, threads=128, group=128, e8m0=0>");
  EXPECT_EQ(plan.launches[0].config.grid[0], 2048u * 14);
}

/// 130 x 130: four blocks, three of them of two rows or columns.
TEST(quant_per_block, gives_each_block_its_own_scale) {
  std::vector<float> x(130 * 130, 0.5f), scales(4, -1.0f);
  std::vector<u8> q(130 * 130, 0xFF);
  const size_t where[4] = {5 * 130 + 5, 5 * 130 + 129, 128 * 130 + 127, 129 * 130 + 128};
  for (size_t b = 0; b < 4; ++b) x[where[b]] = 448.0f * float(2 << b);
  per_block({.q = TensorView(q.data(), DType::e4m3, {130, 130}),
             .scales = TensorView(scales.data(), DType::f32, {2, 2}),
             .x = TensorView(x.data(), DType::f32, {130, 130})});
  EXPECT_THAT(scales, testing::ElementsAre(2, 4, 8, 16));
  for (size_t b = 0; b < 4; ++b) EXPECT_EQ(q[where[b]], 0x7E);
  EXPECT_EQ(q[0], 0x28);  // 0.25
  x[0] = kTie, x[where[0]] = kTieAmax;
  per_block({.q = TensorView(q.data(), DType::e4m3, {130, 130}),
             .scales = TensorView(scales.data(), DType::f32, {2, 2}),
             .x = TensorView(x.data(), DType::f32, {130, 130})});
  EXPECT_EQ(q[0], kTieQ);
}

struct quant_per_tensor : testing::Test {
  std::vector<float> x = std::vector<float>(3 * 5, 1.0f);
  std::vector<u8> q = std::vector<u8>(3 * 5, 0xFF);
  float scale = -1, given = 0.5f;
  PerTensorArgs args() {
    return {.q = TensorView(q.data(), DType::e4m3, {3, 5}),
            .scale = TensorView(&scale, DType::f32, {1}),
            .x = TensorView(x.data(), DType::f32, {3, 5})};
  }
};

TEST_F(quant_per_tensor, takes_the_scale_from_x_or_from_the_caller) {
  x[7] = -1000.0f;
  PerTensorArgs a = args();
  per_tensor(a);
  EXPECT_EQ(scale, 1000.0f / 448.0f);
  EXPECT_EQ(q[7], 0xFE);
  EXPECT_EQ(q[0], 0x2E);  // 0.448 lies between 0.4375 and 0.46875
  a.static_scale = TensorView(&given, DType::f32, {1});
  per_tensor(a);
  EXPECT_EQ(scale, 0.5f);
  EXPECT_EQ(q[7], 0xFE);  // saturates
  EXPECT_EQ(q[0], 0x40);  // 2
  x[0] = kTie, x[7] = kTieAmax;
  per_tensor(args());
  EXPECT_EQ(q[0], kTieQ);
}
TEST_F(quant_per_tensor, zeros_nan_and_infinities) {
  x.assign(15, 0.0f);
  per_tensor(args());
  EXPECT_EQ(scale, 1e-4f / 448.0f);
  EXPECT_THAT(q, testing::Each(0));
  x[3] = INFINITY, x[4] = 2.0f;
  per_tensor(args());
  EXPECT_EQ(scale, INFINITY);
  EXPECT_EQ(q[3] & 0x7F, 0x7F);
  EXPECT_EQ(q[4], 0);
  x[9] = NAN;
  per_tensor(args());
  EXPECT_TRUE(std::isnan(scale));
  for (const u8 byte : q) EXPECT_EQ(byte & 0x7F, 0x7F);
  PerTensorArgs a = args();
  a.static_scale = TensorView(&given, DType::f32, {1});
  per_tensor(a);
  EXPECT_EQ(scale, 0.5f);
  EXPECT_EQ(q[3], 0x7E);
  EXPECT_EQ(q[4], 0x48);  // 4
  EXPECT_EQ(q[9] & 0x7F, 0x7F);
}
/// 127 is the scale's numerator; -128 is no value, and a NaN is 0.
TEST_F(quant_per_tensor, integers_are_symmetric) {
  x[3] = -31.75f, x[4] = 0.375f;
  PerTensorArgs a = args();
  a.q.dtype = DType::i8;
  per_tensor(a);
  EXPECT_EQ(scale, 0.25f);
  EXPECT_EQ(i8(q[3]), -127);
  EXPECT_EQ(i8(q[4]), 2);  // 1.5
  EXPECT_EQ(i8(q[0]), 4);
  a.static_scale = TensorView(&given, DType::f32, {1});
  x[3] = -INFINITY, x[4] = 64.f, x[5] = NAN, x[6] = -63.75f;
  per_tensor(a);
  EXPECT_EQ(i8(q[3]), -127);
  EXPECT_EQ(i8(q[4]), 127);
  EXPECT_EQ(i8(q[5]), 0);
  EXPECT_EQ(i8(q[6]), -127);  // -127.5
}
TEST_F(quant_per_tensor, the_floor_is_the_callers) {
  x.assign(15, 1e-9f);
  PerTensorArgs a = args();
  a.amax_floor = 1e-10f;
  per_tensor(a);
  EXPECT_EQ(scale, 1e-9f / 448.0f);
  a.amax_floor = 2e30f;
  EXPECT_EQ(error_of([&] { per_tensor(a); }),
            Pair(ErrorKind::value, "quant.per_tensor: `amax_floor` is 2e+30, expected a number from 1e-30 to 1e30"));
}
/// No element: the scale is still that of zeros.
TEST_F(quant_per_tensor, an_empty_tensor_has_a_scale) {
  PerTensorArgs a = args();
  a.x.shape[0] = a.q.shape[0] = 0;
  per_tensor(a);
  EXPECT_EQ(scale, 1e-4f / 448.0f);
}

TEST(quant_transform_scales, turns_rows_into_columns) {
  std::vector<float> x(5 * 3), out(3 * 8, -1.0f);
  for (size_t i = 0; i < x.size(); ++i) x[i] = float(i);
  x[4] = NAN;
  TransformScalesArgs a{.out = TensorView(out.data(), DType::f32, {5, 3}), .x = TensorView(x.data(), DType::f32, {5, 3})};
  a.out.strides[0] = 1, a.out.strides[1] = 8;
  transform_scales(a);
  for (size_t g = 0; g < 3; ++g)
    for (size_t i = 0; i < 8; ++i) {
      const float expected = i < 5 ? x[i * 3 + g] : -1.0f;
      EXPECT_EQ(std::bit_cast<u32>(out[g * 8 + i]), std::bit_cast<u32>(expected)) << i << " " << g;
    }
}

}  // namespace
}  // namespace quern::quant
