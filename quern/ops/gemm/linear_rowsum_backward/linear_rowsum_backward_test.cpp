// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/gemm/linear_rowsum_backward.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "quern/op/schema.h"
#include "quern/ops/gemm/linear_rowsum.h"
#include "quern/testing/plain_rows.h"

namespace quern::gemm {
namespace {

using testing::some, testing::view;

/// By the definition: the product of matrices, then the sum of its rows. Odd extents, and rows that are cut into chunks.
TEST(gemm_linear_rowsum, is_the_row_sum_of_a_linear_layer) {
  for (const i64 k : {65, 9001}) {
    constexpr i64 kM = 3, kN = 70;
    std::vector<float> a = some(kM * k, 1), b = some(kN * k, 2), bias = some(2 * kN, 3), out(kM, NAN), sums(size_t(k), NAN);
    TensorView strided = view(bias, {kN});
    strided.strides[0] = 2;
    linear_rowsum({.out = view(out, {kM}), .column_sums = view(sums, {k}), .a = view(a, {kM, k}), .b = view(b, {kN, k}), .bias = strided});
    for (i64 i = 0; i < kM; ++i) {
      double y = 0, size = 0;
      for (i64 j = 0; j < kN; ++j) {
        y += bias[size_t(2 * j)];
        for (i64 x = 0; x < k; ++x)
          y += double(a[size_t(i * k + x)]) * b[size_t(j * k + x)], size += std::abs(double(a[size_t(i * k + x)]) * b[size_t(j * k + x)]);
      }
      EXPECT_NEAR(out[size_t(i)], y, 1e-5 * size) << k << ": " << i;
    }
  }
}

TEST(gemm_linear_rowsum, of_nothing) {
  std::vector<float> none(1), bias = {1, 2, 4}, out(2, NAN), sums(3, NAN), a(6, 1.f);
  linear_rowsum(
      {.out = view(out, {2}), .column_sums = view(none, {0}), .a = view(none, {2, 0}), .b = view(none, {3, 0}), .bias = view(bias, {3})});
  EXPECT_EQ(out, std::vector<float>(2, 7.f));
  linear_rowsum({.out = view(out, {2}), .column_sums = view(sums, {3}), .a = view(a, {2, 3}), .b = view(none, {0, 3})});
  EXPECT_EQ(out, std::vector<float>(2, 0.f));
  EXPECT_EQ(sums, std::vector<float>(3, 0.f));
}

/// A row has the bits that it has alone, and so has one that is not aligned.
TEST(gemm_linear_rowsum, has_the_same_bits_alone_and_at_any_alignment) {
  for (const i64 k : {96, 1000, 9004}) {
    constexpr i64 kM = 5, kN = 130;
    std::vector<float> a = some(kM * k + 1, 1), moved(a.size()), b = some(kN * k + 1, 2), moved_b(b.size()), out(kM, NAN), again(kM, NAN),
                       alone(1, NAN), sums(static_cast<size_t>(k)), more(static_cast<size_t>(k));
    std::copy(a.begin(), a.end() - 1, moved.begin() + 1), std::copy(b.begin(), b.end() - 1, moved_b.begin() + 1);
    const auto rows = [&](float* data, i64 n) { return TensorView(data, DType::f32, {n, k}); };
    linear_rowsum({.out = view(out, {kM}), .column_sums = view(sums, {k}), .a = rows(a.data(), kM), .b = rows(b.data(), kN)});
    linear_rowsum(
        {.out = view(again, {kM}), .column_sums = view(more, {k}), .a = rows(moved.data() + 1, kM), .b = rows(moved_b.data() + 1, kN)});
    linear_rowsum({.out = view(alone, {1}), .column_sums = view(more, {k}), .a = rows(a.data() + 3 * k, 1), .b = rows(b.data(), kN)});
    EXPECT_EQ(out, again) << k;
    EXPECT_EQ(sums, more) << k;
    EXPECT_EQ(out[3], alone[0]) << k;
  }
}

/// A gradient of a sum is one number in memory; each of the three results alone is what it is among the others.
TEST(gemm_linear_rowsum_backward, computes_what_is_wanted) {
  constexpr i64 kM = 70, kN = 9, kK = 33;
  std::vector<float> a = some(kM * kK, 1), b(kN * kK), sums = some(kK, 2), one(1, 0.5f), da(a.size(), NAN), db(b.size(), NAN),
                     dbias(kN, NAN), da_alone = da, db_alone = db, dbias_alone = dbias;
  TensorView dy = view(one, {kM});
  dy.strides[0] = 0;
  LinearRowsumBackwardArgs all{.da = view(da, {kM, kK}),
                               .db = view(db, {kN, kK}),
                               .dbias = view(dbias, {kN}),
                               .dy = dy,
                               .a = view(a, {kM, kK}),
                               .b = view(b, {kN, kK}),
                               .column_sums = view(sums, {kK})},
      alone = all;
  linear_rowsum_backward(all);
  for (float v : dbias) EXPECT_EQ(v, 35.f);
  for (i64 x = 0; x < kK; ++x) EXPECT_EQ(da[size_t(x)], 0.5f * sums[size_t(x)]);
  alone.da = view(da_alone, {kM, kK}), alone.db = alone.dbias = {};
  linear_rowsum_backward(alone);
  alone.db = view(db_alone, {kN, kK}), alone.da = {};
  linear_rowsum_backward(alone);
  alone.dbias = view(dbias_alone, {kN}), alone.db = {};
  linear_rowsum_backward(alone);
  EXPECT_EQ(da, da_alone);
  EXPECT_EQ(db, db_alone);
  EXPECT_EQ(dbias, dbias_alone);
  alone.dbias = {};
  try {
    linear_rowsum_backward(alone);
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "gemm.linear_rowsum_backward: `da` is absent, expected a tensor here, in db or in dbias");
  }
}

}  // namespace
}  // namespace quern::gemm
