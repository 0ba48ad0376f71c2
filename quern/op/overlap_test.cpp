// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What a call writes shares no memory with its other tensors.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "quern/op/schema.h"

namespace quern::overlap {

struct PlaceArgs {
  TensorView out, total, x, w, state;
};
static Plan plan(const Problem&, const DeviceInfo&) { return {}; }
static void reference(const PlaceArgs&, const PlaceArgs&) {}

/// x and w are any two tensors, so that out may be laid out beside each of them.
QN_OP(place, PlaceArgs, "overlap.place")
    .doc("nothing")
    .in("x", &PlaceArgs::x, "m n", {DType::f32, DType::bf16})
    .strided()
    .in("w", &PlaceArgs::w, "batch k hidden", {DType::f32})
    .optional()
    .inout("state", &PlaceArgs::state, "m n", {DType::f32})
    .optional()
    .out("out", &PlaceArgs::out, "m n", {DType::f32})
    .strided()
    .may_be("x")
    .out("total", &PlaceArgs::total, "n", {DType::f32})
    .optional()
    .plan(plan)
    .reference<reference>();

namespace {

class op_overlap : public testing::Test {
 protected:
  std::vector<float> memory = std::vector<float>(4096);
  TensorView at(i64 first, std::initializer_list<i64> shape) { return TensorView(memory.data() + first, DType::f32, shape); }
  TensorView strided(i64 first, std::initializer_list<i64> shape, std::initializer_list<i64> strides) {
    TensorView view = at(first, shape);
    std::copy(strides.begin(), strides.end(), view.strides);
    return view;
  }
  /// The error of a call, or nothing.
  static std::string refusal(const PlaceArgs& args, const RunOptions& options = {}) {
    try {
      bind(find_op("overlap.place"), &args, options);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::value);
      return e.what();
    }
    return "";
  }
};

const std::string kOfItsOwn = "expected memory of its own";
const std::string kOrX = ", or `x` itself (its address, element size and strides)";

TEST_F(op_overlap, an_output_is_no_input_of_another_meaning) {
  EXPECT_EQ(refusal({.out = at(0, {4, 8}), .x = at(32, {4, 8}), .w = at(64, {1, 4, 8})}), "");
  EXPECT_EQ(refusal({.out = at(0, {4, 8}), .x = at(32, {4, 8}), .w = at(0, {1, 4, 8})}),
            "overlap.place: `out` overlaps `w` in memory, " + kOfItsOwn + kOrX);
  EXPECT_EQ(refusal({.out = at(0, {4, 8}), .x = at(32, {4, 8}), .w = at(31, {1, 1, 1})}),
            "overlap.place: `out` overlaps `w` in memory, " + kOfItsOwn + kOrX);
  EXPECT_EQ(refusal({.out = at(0, {4, 8}), .x = at(32, {4, 8}), .state = at(63, {4, 8})}),
            "overlap.place: `state` overlaps `x` in memory, " + kOfItsOwn);
}

TEST_F(op_overlap, an_output_may_be_the_tensor_that_the_schema_names_and_no_other_view_of_its_memory) {
  EXPECT_EQ(refusal({.out = at(0, {4, 8}), .x = at(0, {4, 8})}), "");
  EXPECT_EQ(refusal({.out = strided(0, {1, 8}, {99, 1}), .x = at(0, {1, 8})}), "");  // no step is made along a dim of one index
  const std::string text = "overlap.place: `out` overlaps `x` in memory, " + kOfItsOwn + kOrX;
  EXPECT_EQ(refusal({.out = at(8, {4, 8}), .x = at(0, {4, 8})}), text);
  EXPECT_EQ(refusal({.out = at(0, {4, 8}), .x = strided(0, {4, 8}, {16, 1})}), text);
  EXPECT_EQ(refusal({.out = at(0, {8, 8}), .x = strided(0, {8, 8}, {1, 8})}), text);
  EXPECT_EQ(refusal({.out = at(0, {4, 8}), .x = TensorView(memory.data(), DType::bf16, {4, 8})}), text);
  // Where x has one row that stands for all, a row of out is written before another is made of it.
  EXPECT_EQ(refusal({.out = at(0, {4, 8}), .x = strided(8, {4, 8}, {0, 1})}), text);
}

TEST_F(op_overlap, outputs_share_no_memory_with_each_other) {
  EXPECT_EQ(refusal({.out = at(0, {4, 8}), .total = at(24, {8}), .x = at(64, {4, 8})}),
            "overlap.place: `out` overlaps `total` in memory, " + kOfItsOwn + kOrX);
  EXPECT_EQ(refusal({.out = at(0, {4, 8}), .x = at(64, {4, 8}), .state = at(0, {4, 8})}),
            "overlap.place: `state` overlaps `out` in memory, " + kOfItsOwn);
  EXPECT_EQ(refusal({.out = strided(0, {4, 8}, {0, 1}), .x = at(64, {4, 8})}),
            "overlap.place: `out` has stride 0 at dim 0, expected > 0 in an output");
}

TEST_F(op_overlap, slices_of_one_buffer_pass) {
  // q, k and v of a fused projection; even and odd rows; the two halves of each page of a cache, in another order than memory's.
  EXPECT_EQ(refusal({.out = strided(8, {4, 8}, {24, 1}), .x = strided(0, {4, 8}, {24, 1}), .w = strided(16, {1, 4, 8}, {96, 24, 1})}), "");
  EXPECT_EQ(refusal({.out = strided(8, {4, 8}, {16, 1}), .x = strided(0, {4, 8}, {16, 1})}), "");
  EXPECT_EQ(refusal({.out = at(2048, {4, 8}), .x = strided(0, {4, 8}, {16, 1}), .w = strided(8, {2, 2, 8}, {16, 32, 1})}), "");
  // A row more, and they do not.
  EXPECT_NE(refusal({.out = strided(8, {4, 9}, {24, 1}), .x = strided(0, {4, 9}, {24, 1})}), "");
  // None of x's elements lie between those of out, and it has none.
  EXPECT_EQ(refusal({.out = at(0, {4, 0}), .x = at(0, {4, 0})}), "");
}

TEST_F(op_overlap, skip_check_skips_it) {
  const PlaceArgs args{.out = at(0, {4, 8}), .x = at(8, {4, 8})};
  EXPECT_NE(refusal(args), "");
  EXPECT_EQ(refusal(args, {.skip_check = true}), "");
}

std::set<i64> elements(i64 first, const TensorView& view) {
  std::set<i64> all;
  i64 index[kMaxRank] = {};
  for (i64 n = 0; n < view.numel(); ++n) {
    i64 rest = n, at = first;
    for (int d = view.rank - 1; d >= 0; --d) at += (index[d] = rest % view.shape[d]) * view.strides[d], rest /= view.shape[d];
    all.insert(at);
  }
  return all;
}

/// Random layouts against the sets of their elements: what is refused does share memory; and where rows have one pitch, or
/// one of the two is dense and the other has no more than rows, all that shares memory is refused.
TEST_F(op_overlap, is_what_the_elements_say) {
  Random random(1);
  int shared = 0, apart = 0, let_pass = 0;
  for (int n = 0; n < 20000; ++n) {
    const i64 width = 1 + random.below(4), rows = 1 + random.below(4), pitch = width + random.below(6), place = random.below(40);
    const i64 w_width = 1 + random.below(4), w_rows = 1 + random.below(4), w_batch = 1 + random.below(3), w_place = random.below(40);
    const bool alike = random.below(2);
    const i64 w_pitch = alike ? pitch : w_width + random.below(6);
    const i64 w_step = alike ? w_pitch * w_rows : random.below(30);
    const TensorView out = strided(place, {rows, width}, {pitch, 1}),
                     w = strided(w_place, {w_batch, w_rows, w_width}, {w_step, w_pitch, 1});
    const std::set<i64> ours = elements(place, out), theirs = elements(w_place, w);
    const bool sharing = std::any_of(ours.begin(), ours.end(), [&](i64 at) { return theirs.count(at) > 0; });
    const bool refused = !refusal({.out = out, .x = at(2048, {rows, width}), .w = w}).empty();
    ASSERT_TRUE(sharing || !refused) << n;
    const bool plain = alike || ((pitch == width || rows == 1) && w_batch == 1);
    if (plain) { ASSERT_EQ(sharing, refused) << n; }
    (sharing ? shared : apart) += plain;
    let_pass += sharing && !refused;
  }
  EXPECT_GT(shared, 1000);
  EXPECT_GT(apart, 1000);
  EXPECT_LT(let_pass, 2000);
}

}  // namespace
}  // namespace quern::overlap
