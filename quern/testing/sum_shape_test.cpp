// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/testing/sum_shape.h"

#include <gtest/gtest.h>

#include <vector>

#include "quern/emu/graph.h"

namespace quern::testing {
namespace {

using emu::Graph;
using emu::NumberOp;

class SumShape : public ::testing::Test {
 protected:
  u32 leaf() { return graph_.word(NumberOp::leaf, 0, ++leaves_); }
  u32 product() { return graph_.word(NumberOp::multiply, leaf(), leaf()); }
  u32 add(u32 a, u32 b) { return graph_.word(NumberOp::add, a, b); }
  /// A product, then count - 1 fma.
  u32 fmas(int count) {
    u32 sum = product();
    for (int i = 1; i < count; ++i) sum = graph_.word(NumberOp::fma, product(), sum);
    return sum;
  }
  u32 butterfly(int lanes, int fma_count) {
    return lanes == 1 ? fmas(fma_count) : add(butterfly(lanes / 2, fma_count), butterfly(lanes / 2, fma_count));
  }
  Graph graph_;
  u32 leaves_ = 0;
};

TEST_F(SumShape, rows_pairs_and_order_are_told_apart) {
  EXPECT_EQ(sum_text(graph_, fmas(16)), "16 fma in a row");
  EXPECT_EQ(sum_text(graph_, butterfly(8, 16)), "16 fma in a row; 8 of these added in pairs");
  u32 warps = butterfly(8, 16);
  for (int w = 1; w < 4; ++w) warps = add(butterfly(8, 16), warps);
  EXPECT_EQ(sum_text(graph_, warps), "16 fma in a row; 8 of these added in pairs; 4 of these added in order");
}

TEST_F(SumShape, lanes_with_less_to_do_are_a_range) {
  EXPECT_EQ(sum_text(graph_, add(fmas(3), fmas(5))), "3 to 5 fma in a row; 2 of these added");
}

TEST_F(SumShape, factors_and_functions_are_left_out) {
  const u32 mean = graph_.word(NumberOp::divide, fmas(7), 0x45800000);       // by 4096
  const u32 scale = graph_.word(NumberOp::rsqrt, add(mean, 0x358637bd), 0);  // + 1e-6
  EXPECT_EQ(sum_text(graph_, graph_.word(NumberOp::multiply, leaf(), scale)), "7 fma in a row");
}

TEST_F(SumShape, what_is_not_alike_is_shown_as_it_is) {
  EXPECT_EQ(sum_text(graph_, add(butterfly(4, 2), fmas(9))), "(2 fma in a row; 4 of these added in pairs) + (9 fma in a row)");
  EXPECT_EQ(sum_text(graph_, leaf()), "no sum");
}

TEST_F(SumShape, what_is_no_number_is_a_constant_and_no_node) {
  const u32 infinity = 0x7f800000, minus = 0x80000000, one = 0x3f800000;
  for (const u32 nan : {add(infinity, infinity | minus), graph_.word(NumberOp::sqrt, one | minus, 0),
                        graph_.word(NumberOp::multiply, 0, infinity | minus)}) {
    EXPECT_EQ(nan, Graph::kNaN);
    EXPECT_EQ(graph_.word(NumberOp::multiply, nan, one), Graph::kNaN);
    EXPECT_EQ(graph_.node(nan), nullptr);
  }
}

TEST_F(SumShape, constants_are_computed_and_expressions_kept_once) {
  EXPECT_EQ(graph_.word(NumberOp::add, 0x3f800000, 0x3f800000), 0x40000000u);  // 1 + 1
  const u32 a = leaf(), b = leaf();
  EXPECT_EQ(add(a, b), add(a, b));
  EXPECT_EQ(graph_.word_of_code(graph_.code(a)), a);
  EXPECT_NE(graph_.code(a), graph_.code(b));
}

}  // namespace
}  // namespace quern::testing
