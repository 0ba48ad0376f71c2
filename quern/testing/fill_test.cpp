// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/testing/fill.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "quern/base/host_dtype.h"
#include "quern/testing/parallel.h"

namespace quern::testing {
namespace {

TEST(testing_fill, data_is_near_normal_and_never_zero) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::e4m3, DType::e5m2}) {
    std::vector<u8> memory(size_t(4) << 20);
    const i64 n = i64(memory.size()) / size_of(dtype);
    Random random(1);
    ASSERT_TRUE(fill_tensor(TensorView(memory.data(), dtype, {n / 1024, 1024}), Values::Kind::data, 0, random));
    std::vector<double> values(static_cast<size_t>(n));
    read_row(memory.data(), dtype, n, 1, values.data());
    double sum = 0, squares = 0, zeros = 0;
    for (const double v : values) sum += v, squares += v * v, zeros += v == 0;
    EXPECT_EQ(zeros, 0) << name(dtype);
    EXPECT_NEAR(sum / double(n), 0, 0.01) << name(dtype);
    EXPECT_NEAR(squares / double(n), 1, 0.02) << name(dtype);
  }
}

// Few elements are rounded one by one on one thread, many are looked up on all: the same seed gives the same values.
TEST(testing_fill, an_element_depends_on_its_place_alone) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::e4m3, DType::e5m2, DType::i32}) {
    constexpr i64 kFew = 1000, kMany = 1 << 20;
    std::vector<u8> few(kFew * 8), many(size_t(kMany) * 8);
    Random first(7), second(7);
    fill_tensor(TensorView(few.data(), dtype, {kFew / 100, 100}), Values::Kind::data, 0, first);
    TensorView wide(many.data(), dtype, {kMany / 100, 100});
    fill_tensor(wide, Values::Kind::data, 0, second);
    EXPECT_EQ(std::memcmp(few.data(), many.data(), size_t(kFew) * size_t(size_of(dtype))), 0) << name(dtype);
  }
}

TEST(testing_fill, strides_do_not_change_the_values) {
  std::vector<u16> dense(3 * 5 * 7), padded(3 * 5 * 10, 0xFFFF);
  TensorView gaps(padded.data(), DType::bf16, {3, 5, 7});
  gaps.strides[1] = 10, gaps.strides[0] = 50;
  Random first(3), second(3);
  fill_tensor(TensorView(dense.data(), DType::bf16, {3, 5, 7}), Values::Kind::data, 0, first);
  fill_tensor(gaps, Values::Kind::data, 0, second);
  for (size_t row = 0; row < 15; ++row) {
    EXPECT_EQ(std::memcmp(&dense[row * 7], &padded[row * 10], 14), 0) << row;
    for (size_t j = 7; j < 10; ++j) EXPECT_EQ(padded[row * 10 + j], 0xFFFF);
  }
}

TEST(testing_fill, indices_and_lengths_keep_to_their_axis) {
  std::vector<i32> values(10000);
  const TensorView view(values.data(), DType::i32, {10000});
  Random random(1);
  fill_tensor(view, Values::Kind::index, 5, random);
  EXPECT_EQ(*std::min_element(values.begin(), values.end()), 0);
  EXPECT_EQ(*std::max_element(values.begin(), values.end()), 4);
  fill_tensor(view, Values::Kind::length, 5, random);
  EXPECT_EQ(*std::max_element(values.begin(), values.end()), 5);
  EXPECT_FALSE(fill_tensor(view, Values::Kind::permutation, 5, random));
}

/// Of an axis that a double does not count: 2^53 and 2^53 + 1 are one.
TEST(testing_fill, indices_of_64_bits_are_exact) {
  std::vector<i64> values(10000);
  const TensorView view(values.data(), DType::i64, {10000});
  Random random(1);
  fill_tensor(view, Values::Kind::index, (i64(1) << 62) - 1, random);
  EXPECT_TRUE(std::any_of(values.begin(), values.end(), [](i64 v) { return v > i64(1) << 53 && v % 2 != 0; }));
  EXPECT_GE(*std::min_element(values.begin(), values.end()), 0);
  fill_tensor(view, Values::Kind::permutation, 20000, random);
  std::sort(values.begin(), values.end());
  EXPECT_EQ(std::adjacent_find(values.begin(), values.end()), values.end());
}

TEST(testing_parallel, covers_every_index_once_and_passes_exceptions_on) {
  std::vector<std::atomic<int>> seen(100'000);
  in_parallel(i64(seen.size()), 100, [&](i64 begin, i64 end) {
    for (i64 i = begin; i < end; ++i) ++seen[size_t(i)];
  });
  EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](const auto& n) { return n == 1; }));
  in_parallel(0, 1, [](i64, i64) { FAIL(); });
  EXPECT_THROW(in_parallel(1000, 1, [](i64, i64) { throw std::runtime_error("here"); }), std::runtime_error);
}

}  // namespace
}  // namespace quern::testing
