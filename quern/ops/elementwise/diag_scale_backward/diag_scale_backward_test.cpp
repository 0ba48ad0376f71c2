// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/elementwise/diag_scale_backward.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "quern/op/schema.h"
#include "quern/ops/elementwise/diag_scale.h"
#include "quern/testing/plain_rows.h"

namespace quern::elementwise {
namespace {

using testing::some, testing::view;

/// Rows shorter than a block are taken as one; the diagonal may have any stride, 0 too.
TEST(elementwise_diag_scale, reads_its_diagonal_by_its_stride) {
  for (const i64 hidden : {1, 3, 8, 2500}) {
    constexpr i64 kTokens = 5;
    std::vector<float> x = some(kTokens * hidden, 1), out(x.size(), NAN), diagonal = some(kTokens * 7, 2);
    for (const i64 stride : {0, 1, 7}) {
      TensorView d = view(diagonal, {kTokens});
      d.strides[0] = stride;
      diag_scale({.out = view(out, {kTokens, hidden}), .x = view(x, {kTokens, hidden}), .diagonal = d});
      for (i64 i = 0; i < kTokens * hidden; ++i)
        ASSERT_EQ(out[size_t(i)], x[size_t(i)] * diagonal[size_t(i / hidden * stride)]) << hidden << ", " << stride << ": " << i;
    }
  }
}

TEST(elementwise_diag_scale_backward, wants_a_gradient_to_compute) {
  std::vector<float> m(64);
  DiagScaleBackwardArgs a{.dy = view(m, {2, 8}), .x = view(m, {2, 8}), .diagonal = view(m, {2})};
  try {
    diag_scale_backward(a);
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "elementwise.diag_scale_backward: `dx` is absent, expected a tensor here or in ddiagonal");
  }
}

TEST(elementwise_diag_scale_backward, of_no_columns_is_a_sum_of_zero) {
  std::vector<float> none(1), diagonal(3, 2.f), sum(3, 7.f);
  diag_scale_backward({.ddiagonal = view(sum, {3}), .dy = view(none, {3, 0}), .x = view(none, {3, 0}), .diagonal = view(diagonal, {3})});
  EXPECT_EQ(sum, std::vector<float>(3, 0.f));
}

/// Of a few lanes, a warp, a block, and of chunks: unaligned rows are read element by element in the same order, and rows have the bits
/// that each has alone. A row that is one for all, of stride 0, gives what its copies give.
TEST(elementwise_diag_scale_backward, has_the_same_bits_at_any_alignment_alone_and_of_one_row) {
  for (const i64 hidden : {7, 96, 1000, 20000}) {
    constexpr i64 kTokens = 3;
    std::vector<float> dy = some(hidden, 1), x = some(kTokens * hidden, 2), moved_x(x.size() + 1), diagonal = some(kTokens, 3),
                       sum(kTokens), moved(kTokens), alone(1), rows, dx(x.size());
    std::copy(x.begin(), x.end(), moved_x.begin() + 1);
    for (i64 t = 0; t < kTokens; ++t) rows.insert(rows.end(), dy.begin(), dy.end());
    const auto tokens = [&](float* data, i64 n) { return TensorView(data, DType::f32, {n, hidden}); };
    diag_scale_backward({.dx = view(dx, {kTokens, hidden}),
                         .ddiagonal = view(sum, {kTokens}),
                         .dy = tokens(rows.data(), kTokens),
                         .x = tokens(x.data(), kTokens),
                         .diagonal = view(diagonal, {kTokens})});
    TensorView one = tokens(dy.data(), kTokens);
    one.strides[0] = 0;
    diag_scale_backward(
        {.ddiagonal = view(moved, {kTokens}), .dy = one, .x = tokens(moved_x.data() + 1, kTokens), .diagonal = view(diagonal, {kTokens})});
    EXPECT_EQ(sum, moved) << hidden;
    diag_scale_backward({.ddiagonal = view(alone, {1}),
                         .dy = tokens(dy.data(), 1),
                         .x = tokens(x.data() + 2 * hidden, 1),
                         .diagonal = TensorView(&diagonal[2], DType::f32, {1})});
    EXPECT_EQ(sum[2], alone[0]) << hidden;
    EXPECT_NE(sum[2], 0) << hidden;
  }
}

TEST(elementwise_diag_scale_backward, keeps_nan_within_its_row) {
  std::vector<float> dy = some(130, 1), x = some(130, 2), diagonal(2, 1.f), sum(2), dx(130);
  x[64] = NAN, dy[3] = INFINITY;
  diag_scale_backward({.dx = view(dx, {2, 65}),
                       .ddiagonal = view(sum, {2}),
                       .dy = view(dy, {2, 65}),
                       .x = view(x, {2, 65}),
                       .diagonal = view(diagonal, {2})});
  EXPECT_TRUE(std::isnan(sum[0]));
  EXPECT_TRUE(std::isfinite(sum[1]));
  EXPECT_EQ(dx, dy);
}

/// A short list of long rows is spread over the device; many short rows share blocks. What rows cost does not depend on which.
TEST(elementwise_diag_scale_backward, plans_by_the_row) {
  const auto planned = [](i64 tokens, i64 hidden) {
    const auto fake = [](i64 which) { return reinterpret_cast<void*>(which << 44); };
    DiagScaleBackwardArgs a;
    a.dx = TensorView(fake(1), DType::bf16, {tokens, hidden}), a.dy = TensorView(fake(2), DType::bf16, {tokens, hidden}),
    a.x = TensorView(fake(3), DType::bf16, {tokens, hidden});
    a.diagonal = TensorView(fake(4), DType::bf16, {tokens}), a.ddiagonal = TensorView(fake(5), DType::bf16, {tokens});
    const Op& op = find_op("elementwise.diag_scale_backward");
    const Plan plan = make_plan(op, bind(op, &a, {}), device_info_of(Arch::parse("sm_90a")));
    std::string text;
    for (i32 i = 0; i < plan.count; ++i)
      text += jit::print(plan.launches[i].spec) + " x" + std::to_string(plan.launches[i].config.grid[0]) + "\n";
    return text + std::to_string(plan.workspace) + " B";
  };
  const std::string head = "diag_scale_backward_chunk<dtype=bf16, sum_dtype=", both = ", with_dx=1, with_sum=1, ";
  EXPECT_EQ(planned(4096, 8), head + "bf16" + both + "vector=8, units=1, chunk_threads=1, threads=256> x16\n0 B");
  EXPECT_EQ(planned(4096, 2048), head + "bf16" + both + "vector=8, units=2, chunk_threads=128, threads=128> x4096\n0 B");
  EXPECT_EQ(
      planned(2, 1 << 20),
      head + "f32" + both +
          "vector=8, units=2, chunk_threads=256, threads=256> x512\nsum_parts<dtype=bf16, vector=1, lanes=32, threads=256> x1\n16384 B");
}

}  // namespace
}  // namespace quern::elementwise
