// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What must not fool the comparison.
#include "quern/testing/compare.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "quern/base/host_dtype.h"
#include "quern/op/ref.h"
#include "quern/testing/case_args.h"

namespace quern::testing {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
const double kUnwritten = std::bit_cast<double>(kUnwrittenBits);

/// A 3 x 5 output that holds `expected` rounded, and room to spoil it.
struct Fixture {
  std::vector<double> expected, magnitudes;
  std::vector<u64> bytes = std::vector<u64>(32);
  TensorView view;

  explicit Fixture(DType dtype) : magnitudes(15, kUnwritten), view(bytes.data(), dtype, {3, 5}) {
    for (int i = 0; i < 15; ++i) expected.push_back(is_integer(dtype) ? i + 1 : (i + 1) * (i % 2 ? -0.37 : 0.41));
    write_row(view.data, dtype, 15, 1, expected.data());
  }
  void set(int i, double v) { store_value(static_cast<char*>(view.data) + i * size_of(view.dtype), view.dtype, v); }
  Comparison judge(Budget b = {}) const { return compare(view, expected, magnitudes, b); }
};

class CompareDtype : public ::testing::TestWithParam<int> {
 protected:
  DType dtype() const { return DType(GetParam()); }
};

TEST_P(CompareDtype, rounded_truth_passes_with_no_budget) {
  const Comparison c = Fixture(dtype()).judge();
  EXPECT_TRUE(c.ok) << c.message;
  EXPECT_LE(c.error, 1);
}

TEST_P(CompareDtype, one_wrong_element_fails_and_is_named) {
  Fixture f(dtype());
  f.set(13, f.expected[13] * 2 + 1);
  const Comparison c = f.judge();
  EXPECT_FALSE(c.ok);
  EXPECT_EQ(c.index[0], 2);
  EXPECT_EQ(c.index[1], 3);
  EXPECT_NE(c.message.find("[2, 3] is "), std::string::npos) << c.message;
}

TEST_P(CompareDtype, two_units_in_the_last_place_fail) {
  if (is_integer(dtype())) return;
  Fixture f(dtype());
  f.set(4, f.expected[4] * (1 + 4.5 * unit_roundoff(dtype())));
  EXPECT_FALSE(f.judge().ok);
}

TEST_P(CompareDtype, zeros_never_pass_for_something_else) {
  Fixture f(dtype());
  for (int i = 0; i < 15; ++i) f.set(i, 0);
  const Comparison c = f.judge({.absolute = 1e6});
  EXPECT_FALSE(c.ok);
  EXPECT_NE(c.message.find("zeros"), std::string::npos) << c.message;
}

TEST_P(CompareDtype, poison_never_passes) {
  Fixture f(dtype());
  for (u64& b : f.bytes) b = ~u64(0);
  EXPECT_FALSE(f.judge({.of_value = is_integer(dtype()) ? 0.01 : 1000}).ok);
}

INSTANTIATE_TEST_SUITE_P(All, CompareDtype, ::testing::Range(0, kDTypeCount),
                         [](const auto& i) { return std::string(name(DType(i.param))); });

TEST(testing_compare, nan_passes_for_nan_alone) {
  Fixture f(DType::bf16);
  f.set(7, kNan);
  EXPECT_FALSE(f.judge({.of_value = 1e9, .absolute = 1e9}).ok);
  f.expected[7] = kNan;
  EXPECT_TRUE(f.judge().ok);
  f.set(7, 1);
  EXPECT_FALSE(f.judge({.of_value = 1e9, .absolute = 1e9}).ok);
}

TEST(testing_compare, poison_is_not_the_nan_that_is_expected) {
  Fixture f(DType::bf16);
  f.expected[7] = kNan;
  f.set(7, kNan);
  EXPECT_TRUE(f.judge().ok);
  std::memset(static_cast<char*>(f.view.data) + 7 * 2, kPoison, 2);
  EXPECT_FALSE(f.judge().ok) << "it was never written";
}

TEST(testing_compare, infinities_must_agree) {
  Fixture f(DType::f32);
  f.set(3, HUGE_VAL);
  EXPECT_FALSE(f.judge({.of_value = 1e9, .absolute = 1e9}).ok);
  f.expected[3] = HUGE_VAL;
  EXPECT_TRUE(f.judge().ok);
  f.set(3, -HUGE_VAL);
  EXPECT_FALSE(f.judge().ok);
  f.set(3, 1e30);
  EXPECT_FALSE(f.judge({.of_value = 1e9}).ok);
}

TEST(testing_compare, a_nan_budget_passes_nothing) {
  Fixture f(DType::f32);
  EXPECT_FALSE(f.judge({.of_value = 1, .absolute = kNan}).ok);
}

TEST(testing_compare, overflow_is_judged_as_the_dtype_converts) {
  Fixture half(DType::f16), quarter(DType::e4m3);
  half.expected[0] = quarter.expected[0] = 1e6;
  half.set(0, HUGE_VAL), quarter.set(0, 448);
  EXPECT_TRUE(half.judge().ok);
  EXPECT_TRUE(quarter.judge().ok);
  half.set(0, 65504);
  EXPECT_FALSE(half.judge().ok);
  half.set(0, -HUGE_VAL);
  EXPECT_FALSE(half.judge().ok);
}

TEST(testing_compare, magnitudes_excuse_cancellation_and_no_more) {
  Fixture f(DType::f32);
  f.expected[6] = 1e-3;
  f.set(6, 1e-3 + 1e-4);
  EXPECT_FALSE(f.judge({.of_magnitude = 0x1p-20}).ok);
  f.magnitudes[6] = 1000;
  EXPECT_TRUE(f.judge({.of_magnitude = 0x1p-20}).ok);
  f.set(6, 0.1);
  EXPECT_FALSE(f.judge({.of_magnitude = 0x1p-20}).ok);
}

TEST(testing_compare, elements_left_alone_must_stay_poisoned) {
  Fixture f(DType::f32);
  f.expected[2] = kUnwritten;
  EXPECT_FALSE(f.judge().ok);
  EXPECT_NE(f.judge().message.find("left alone"), std::string::npos);
  std::memset(static_cast<char*>(f.view.data) + 8, 0xFF, 4);
  EXPECT_TRUE(f.judge().ok);
  f.expected[3] = std::bit_cast<double>(kUnspecifiedBits);
  f.set(3, kNan);
  EXPECT_TRUE(f.judge().ok);
}

TEST(testing_compare, strides_are_followed) {
  std::vector<float> data(30, std::nanf(""));
  TensorView v(data.data(), DType::f32, {3, 5});
  v.strides[0] = 10;
  std::vector<double> expected(15);
  for (int i = 0; i < 15; ++i) expected[size_t(i)] = data[size_t(i / 5 * 10 + i % 5)] = float(i + 1);
  EXPECT_TRUE(compare(v, expected, std::vector<double>(15, kUnwritten), {}).ok);
  data[23] = 0;
  const Comparison c = compare(v, expected, std::vector<double>(15, kUnwritten), {});
  EXPECT_FALSE(c.ok);
  EXPECT_EQ(c.index[0], 2);
  EXPECT_EQ(c.index[1], 3);
}

}  // namespace
}  // namespace quern::testing
