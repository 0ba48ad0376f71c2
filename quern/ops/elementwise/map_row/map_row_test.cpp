// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "quern/op/schema.h"
#include "quern/ops/elementwise/add.h"
#include "quern/ops/elementwise/gather_rows.h"
#include "quern/ops/elementwise/scale.h"
#include "quern/ops/elementwise/soft_cap.h"

namespace quern::elementwise {
namespace {

using Pair = std::pair<ErrorKind, std::string>;
template <class F> Pair error_of(F f) {
  try {
    f();
  } catch (const Error& e) { return {e.kind(), e.what()}; }
  return {ErrorKind::internal, "no error"};
}

TEST(elementwise, soft_cap_keeps_nan_and_reaches_its_cap) {
  std::vector<float> x = {NAN, INFINITY, -INFINITY, 1e30f, -1e30f, 0.f, 1e-30f, 3.f}, out(8, -1);
  soft_cap({.out = {out.data(), DType::f32, {2, 4}}, .x = {x.data(), DType::f32, {2, 4}}, .cap = 30.f});
  EXPECT_TRUE(std::isnan(out[0]));
  EXPECT_EQ(out[1], 30.f);
  EXPECT_EQ(out[2], -30.f);
  EXPECT_EQ(out[3], 30.f);
  EXPECT_EQ(out[4], -30.f);
  EXPECT_EQ(out[5], 0.f);
  EXPECT_FLOAT_EQ(out[6], 1e-30f);
  EXPECT_NEAR(out[7], 30 * std::tanh(0.1), 2e-6);
}

TEST(elementwise, a_cap_that_is_none) {
  float x = 1, out = 0;
  for (const float cap : {0.f, -1.f, NAN, INFINITY})
    EXPECT_EQ(error_of([&] { soft_cap({.out = {&out, DType::f32, {1, 1}}, .x = {&x, DType::f32, {1, 1}}, .cap = cap}); }).first,
              ErrorKind::value)
        << cap;
  EXPECT_EQ(error_of([&] { soft_cap({.out = {&out, DType::f32, {1, 1}}, .x = {&x, DType::f32, {1, 1}}, .cap = -1.f}); }).second,
            "elementwise.soft_cap: `cap` is -1, expected a number from 1e-30 to 1e30");
}

TEST(elementwise, the_sum_may_replace_its_first_input_and_no_other) {
  std::vector<float> x = {1, 2, 3}, y = {10, 20, 30};
  const TensorView vx(x.data(), DType::f32, {1, 3}), vy(y.data(), DType::f32, {1, 3});
  add({.out = vx, .x = vx, .y = vy});
  EXPECT_EQ(x, (std::vector<float>{11, 22, 33}));
  EXPECT_EQ(error_of([&] { add({.out = vy, .x = vx, .y = vy}); }).first, ErrorKind::value);
}

TEST(elementwise, rows_are_gathered_and_those_of_no_id_are_zeros) {
  std::vector<float> table = {1, 2, 3, 4, 5, 6}, out(8, -1);
  std::vector<long long> ids = {2, -1, 0, -(1ll << 40)};
  gather_rows({.out = {out.data(), DType::f32, {4, 2}},
               .table = {table.data(), DType::f32, {3, 2}},
               .ids = {ids.data(), DType::i64, {4}},
               .scale = 2.f});
  EXPECT_EQ(out, (std::vector<float>{10, 12, 0, 0, 2, 4, 0, 0}));
}

/// i64 ids are not cut to 32 bits: 2^32 is beyond the table, not row 0.
TEST(elementwise, wide_ids_are_not_cut) {
  std::vector<float> table = {7, 7}, out(2, -1);
  std::vector<long long> ids = {1ll << 32};
  gather_rows({.out = {out.data(), DType::f32, {1, 2}}, .table = {table.data(), DType::f32, {1, 2}}, .ids = {ids.data(), DType::i64, {1}}});
  EXPECT_EQ(out, (std::vector<float>{0, 0}));
}

/// A copy keeps what a product would change: payloads of NaN, and signs of zeros stay.
TEST(elementwise, copied_rows_keep_their_bits) {
  std::vector<unsigned> table = {0x7fc12345u, 0x80000000u, 0xff812345u, 1u}, out(4, 0);
  int id = 0;
  gather_rows({.out = {out.data(), DType::f32, {1, 4}}, .table = {table.data(), DType::f32, {1, 4}}, .ids = {&id, DType::i32, {1}}});
  EXPECT_EQ(out, table);
}

TEST(elementwise, rows_in_fp8_are_only_copied) {
  unsigned char table[4] = {1, 2, 3, 4}, out[4] = {};
  int id = 0;
  const GatherRowsArgs a = {
      .out = {out, DType::e4m3, {1, 4}}, .table = {table, DType::e4m3, {1, 4}}, .ids = {&id, DType::i32, {1}}, .scale = 2.f};
  EXPECT_EQ(error_of([&] { gather_rows(a); }),
            Pair(ErrorKind::value, "elementwise.gather_rows: `scale` is 2, expected 1: rows in FP8 are only copied"));
}

}  // namespace
}  // namespace quern::elementwise
