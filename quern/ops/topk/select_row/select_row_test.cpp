// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Where the tokens of the largest scores lie: examples, rows on their own, what is refused, what the contracts say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "quern/op/random.h"
#include "quern/op/schema.h"
#include "quern/ops/topk/page_table_transform.h"
#include "quern/ops/topk/ragged_transform.h"
#include "quern/ops/topk/select.h"

namespace quern::topk {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TensorView vector_of(std::vector<i32>& v) { return {v.data(), DType::i32, {i64(v.size())}}; }

/// Rows of scores in host memory, with lengths.
struct Rows {
  i64 rows, length, k;
  std::vector<float> x;
  std::vector<i32> out, lengths, starts;

  Rows(i64 rows, i64 length, i64 k)
      : rows(rows), length(length), k(k), x(size_t(rows * length)), out(size_t(rows * k), -7), lengths(size_t(rows), i32(length)) {}
  Rows(const Rows&) = delete;
  template <class Args> void give(Args& a) {
    a.out = {out.data(), DType::i32, {rows, k}}, a.x = {x.data(), DType::f32, {rows, length}}, a.lengths = vector_of(lengths), a.k = k;
  }
  /// Few values, so that many are equal.
  void fill(u64 seed) {
    Random random(seed);
    for (float& v : x) v = float(random.below(9)) - 4;
  }
  std::vector<i32> row(const std::vector<i32>& of, i64 r) const { return {of.begin() + r * k, of.begin() + (r + 1) * k}; }
};
template <class Args> std::string breach_of(const char* id, const Args& a) {
  const Op& op = find_op(id);
  const std::vector<Breach> found = contents_breaches(op, &a, bind(op, &a, {}));
  return found.empty() ? std::string("none") : to_string(found[0]);
}

/// Two requests of up to 3 pages of 4 tokens.
struct Paged : Rows {
  std::vector<i32> table = {7, 2, 5, 1, 9, 0}, indices, requests, firsts;
  PageTableTransformArgs args;

  Paged(i64 rows, i64 length, i64 k) : Rows(rows, length, k), indices(size_t(rows * k), -7) {
    give(args);
    args.indices = {indices.data(), DType::i32, {rows, k}}, args.page_table = {table.data(), DType::i32, {2, 3}}, args.page_size = 4;
  }
  void give_requests(std::vector<i32> of) { requests = std::move(of), args.row_to_batch = vector_of(requests); }
  void give_firsts(std::vector<i32> of) { firsts = std::move(of), args.page_table_row_starts = vector_of(firsts); }
  void give_starts(std::vector<i32> of) { starts = std::move(of), args.row_starts = vector_of(starts); }
  std::string breach() { return breach_of("topk.page_table_transform", args); }
  std::string refusal(const std::function<void(Paged&)>& change) {
    change(*this);
    try {
      page_table_transform(args);
    } catch (const Error& e) { return e.what(); }
    return "";
  }
};

TEST(topk_page_table_transform, the_slots_of_the_largest_in_order_of_the_tokens) {
  Paged c(2, 9, 3);
  c.x = {0, 5, 1, 1, 9, 1, 1, 1, 7, /**/ 3, 2, 1, 0, 0, 0, 0, 0, 0}, c.args.x.data = c.x.data();
  page_table_transform(c.args);
  EXPECT_THAT(c.row(c.indices, 0), ElementsAre(1, 4, 8));
  EXPECT_THAT(c.row(c.out, 0), ElementsAre(7 * 4 + 1, 2 * 4 + 0, 5 * 4 + 0));
  EXPECT_THAT(c.row(c.out, 1), ElementsAre(1 * 4 + 0, 1 * 4 + 1, 1 * 4 + 2));
}

TEST(topk_page_table_transform, a_row_of_up_to_k_elements_keeps_all_in_order) {
  Paged c(2, 9, 6);
  c.x.assign(18, std::numeric_limits<float>::quiet_NaN()), c.args.x.data = c.x.data();
  c.x[3] = 5;
  c.lengths = {6, 0}, c.args.lengths = vector_of(c.lengths);
  page_table_transform(c.args);
  EXPECT_THAT(c.row(c.out, 0), ElementsAre(28, 29, 30, 31, 8, 9));
  EXPECT_THAT(c.row(c.indices, 0), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(c.row(c.out, 1), Each(-1));
  EXPECT_THAT(c.row(c.indices, 1), Each(-1));
}

TEST(topk_page_table_transform, rows_have_the_request_and_the_first_page_that_they_are_told) {
  Paged c(3, 8, 2);
  for (size_t i = 0; i < c.x.size(); ++i) c.x[i] = float(i % 8);
  c.lengths = {5, 3, 2}, c.args.lengths = vector_of(c.lengths);
  c.give_requests({1, 0, 1}), c.give_firsts({1, 2, 0}), c.give_starts({2, 5, 0});
  page_table_transform(c.args);
  EXPECT_THAT(c.indices, ElementsAre(3, 4, 1, 2, 0, 1));
  EXPECT_THAT(c.out, ElementsAre(9 * 4 + 3, 0 * 4 + 0, 5 * 4 + 1, 5 * 4 + 2, 1 * 4 + 0, 1 * 4 + 1));
}

/// Of many that are equal too.
TEST(topk_page_table_transform, indices_are_those_of_select) {
  for (const i64 length : {100, 1000, 5000}) {
    Paged c(7, length, 64);
    c.fill(u64(length));
    c.table.assign(size_t(7 * length), 0), c.args.page_table = {c.table.data(), DType::i32, {7, length}}, c.args.page_size = 1;
    for (size_t i = 0; i < c.table.size(); ++i) c.table[i] = i32(i * 3);
    page_table_transform(c.args);
    std::vector<i32> want(c.indices.size());
    select({.indices = {want.data(), DType::i32, {7, 64}}, .x = c.args.x, .k = 64, .sorted = false});
    EXPECT_EQ(c.indices, want);
    for (size_t i = 0; i < want.size(); ++i) ASSERT_EQ(c.out[i], (i64(i) / 64 * length + want[i]) * 3);
  }
}

TEST(topk_page_table_transform, a_row_gives_the_same_alone_and_in_a_batch) {
  Paged all(9, 700, 40);
  all.fill(3);
  Random random(5);
  all.table.clear();
  for (int i = 0; i < 3 * 40; ++i) all.table.push_back(i32(random.below(1000)));
  all.args.page_table = {all.table.data(), DType::i32, {3, 40}}, all.args.page_size = 32;
  all.give_requests({2, 0, 1, 1, 2, 0, 0, 1, 2}), all.give_firsts({0, 1, 2, 3, 4, 5, 6, 7, 8});
  page_table_transform(all.args);
  for (i64 r = 0; r < 9; ++r) {
    PageTableTransformArgs one = all.args;
    std::vector<i32> out(40, -7);
    one.out = {out.data(), DType::i32, {1, 40}}, one.indices = {};
    one.x = one.x.slice(0, r, r + 1), one.lengths = one.lengths.slice(0, r, r + 1), one.row_to_batch = one.row_to_batch.slice(0, r, r + 1);
    one.page_table_row_starts = one.page_table_row_starts.slice(0, r, r + 1);
    page_table_transform(one);
    EXPECT_EQ(out, all.row(all.out, r)) << r;
  }
}

TEST(topk_page_table_transform, a_token_without_a_page_has_no_slot) {
  const AllowBrokenContents allow;
  Paged c(2, 12, 12);
  c.table = {7, -1, 536870912, 1, 536870911, 0}, c.args.page_table.data = c.table.data();
  page_table_transform(c.args);
  EXPECT_THAT(c.row(c.out, 0), ElementsAre(28, 29, 30, 31, -1, -1, -1, -1, -1, -1, -1, -1));
  EXPECT_EQ(c.out[12 + 7], 2147483647);
  EXPECT_THAT(c.row(c.indices, 0), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
  c.give_requests({2, -1});
  page_table_transform(c.args);
  EXPECT_THAT(c.out, Each(-1));
  c.give_requests({1, 1}), c.give_firsts({2, -1});
  page_table_transform(c.args);
  EXPECT_THAT(c.row(c.out, 0), ElementsAre(0, 1, 2, 3, -1, -1, -1, -1, -1, -1, -1, -1));
  EXPECT_THAT(c.row(c.out, 1), Each(-1));
}

TEST(topk_page_table_transform, bad_calls_are_errors) {
  const auto refusal = [](const std::function<void(Paged&)>& change) { return Paged(2, 9, 3).refusal(change); };
  EXPECT_EQ(refusal([](Paged&) {}), "");
  EXPECT_EQ(refusal([](Paged& c) { c.args.page_size = 0; }), "topk.page_table_transform: `page_size` is 0, expected 1 to 1073741824");
  EXPECT_EQ(refusal([](Paged& c) { c.args.page_size = 1073741825; }),
            "topk.page_table_transform: `page_size` is 1073741825, expected 1 to 1073741824");
  EXPECT_EQ(refusal([](Paged& c) { c.args.page_table.shape[0] = 1; }),
            "topk.page_table_transform: `batch` is 1, expected rows=2, as row_to_batch is absent (rows was set by `x` [2, 9])");
  EXPECT_EQ(
      refusal([](Paged& c) { c.give_starts({0, 0}); }),
      "topk.page_table_transform: `page_table_row_starts` is absent, expected a tensor, as row_starts is given: columns of x and of page_table are told one by one");
  EXPECT_EQ(refusal([](Paged& c) { c.args.lengths = {}, c.args.page_size = 2; }),
            "topk.page_table_transform: `max_pages` is 3, expected at least 5: the pages of a whole row of x");
  EXPECT_THAT(refusal([](Paged& c) { c.args.k = -1; }),
              HasSubstr("topk.page_table_transform: `out` has shape [2, 3], expected k=-1 at dim 1"));
  EXPECT_THAT(refusal([](Paged& c) { c.args.page_table.dtype = DType::i64; }),
              HasSubstr("topk.page_table_transform: `page_table` is i64, expected i32"));
  EXPECT_THAT(refusal([](Paged& c) { c.requests = {0}, c.args.row_to_batch = vector_of(c.requests); }),
              HasSubstr("topk.page_table_transform: `row_to_batch` has shape [1], expected rows=2 at dim 0"));
}

TEST(topk_page_table_transform, the_contract_names_tokens_without_a_page) {
  Paged c(2, 12, 3);
  EXPECT_EQ(c.breach(), "none");
  c.table[1] = -1;
  EXPECT_EQ(c.breach(), "`page_table`[0, 1] is -1, expected 0 to 536870911, as row 0 has tokens there");
  c.table[1] = 536870912;
  EXPECT_EQ(c.breach(), "`page_table`[0, 1] is 536870912, expected 0 to 536870911, as row 0 has tokens there");
  c.lengths[0] = 4;
  EXPECT_EQ(c.breach(), "none") << "no row reads it";
  c.give_firsts({0, 2});
  EXPECT_EQ(c.breach(), "`lengths`[1] is 12, expected 0 to 4, as the row has 1 pages of 4 tokens");
  c.args.lengths = {};
  c.table[1] = 2;
  EXPECT_EQ(c.breach(), "`page_table_row_starts`[1] is 2, expected 0, as the row has 12 tokens");
  c.give_firsts({0, 0}), c.give_requests({0, 2});
  EXPECT_THAT(c.breach(), HasSubstr("`row_to_batch`[1] is 2, expected 0 to 1"));
}

struct Ragged : Rows {
  std::vector<i32> offsets;
  RaggedTransformArgs args;
  Ragged(i64 rows, i64 length, i64 k, std::vector<i32> at) : Rows(rows, length, k), offsets(std::move(at)) {
    give(args), args.offsets = vector_of(offsets);
  }
  std::string breach() { return breach_of("topk.ragged_transform", args); }
};

TEST(topk_ragged_transform, indices_plus_the_offset_of_the_row) {
  Ragged c(3, 6, 3, {100, 0, 2147483647 - 5});
  c.x = {0, 5, 1, 1, 9, 7, /**/ 1, 1, 1, 1, 1, 1, /**/ 5, 0, 0, 0, 6, 7}, c.args.x.data = c.x.data();
  c.lengths = {6, 2, 6}, c.args.lengths = vector_of(c.lengths);
  ragged_transform(c.args);
  EXPECT_THAT(c.row(c.out, 0), ElementsAre(101, 104, 105));
  EXPECT_THAT(c.row(c.out, 1), ElementsAre(0, 1, -1)) << "all of a row that has fewer than k";
  EXPECT_THAT(c.row(c.out, 2), ElementsAre(2147483642, 2147483646, 2147483647));
}

TEST(topk_ragged_transform, indices_are_those_of_select) {
  for (const i64 length : {100, 1000, 5000}) {
    Ragged c(5, length, 64, {10000, 20000, 30000, 40000, 50000});
    c.fill(u64(length));
    ragged_transform(c.args);
    std::vector<i32> want(c.out.size());
    select({.indices = {want.data(), DType::i32, {5, 64}}, .x = c.args.x, .k = 64, .sorted = false});
    for (size_t i = 0; i < want.size(); ++i) ASSERT_EQ(c.out[i], want[i] + c.offsets[i / 64]);
  }
}

TEST(topk_ragged_transform, sums_beyond_i32_are_no_places_and_break_the_contract) {
  Ragged c(2, 3, 3, {2147483646, -2});
  {
    const AllowBrokenContents allow;
    ragged_transform(c.args);
  }
  EXPECT_THAT(c.out, ElementsAre(2147483646, 2147483647, -1, -1, -1, 0));
  EXPECT_THAT(c.breach(), HasSubstr("`offsets`[1] is -2, expected 0 to 2147483647"));
  c.offsets[1] = 0;
  EXPECT_EQ(c.breach(), "`offsets`[0] is 2147483646, expected 0 to 2147483645, as the row has 3 elements");
  c.lengths[0] = 2;
  EXPECT_EQ(c.breach(), "none");
  c.give(c.args), c.starts = {2, 0}, c.args.row_starts = vector_of(c.starts);
  EXPECT_EQ(c.breach(), "`lengths`[0] is 2, expected 0 to 1, as the row begins at 2");
}

TEST(topk_ragged_transform, bad_calls_are_errors) {
  const auto refusal = [](const std::function<void(Ragged&)>& change) -> std::string {
    Ragged c(2, 9, 3, {0, 9});
    change(c);
    try {
      ragged_transform(c.args);
    } catch (const Error& e) { return e.what(); }
    return "";
  };
  EXPECT_EQ(refusal([](Ragged&) {}), "");
  EXPECT_EQ(refusal([](Ragged& c) { c.args.offsets = {}; }), "topk.ragged_transform: `offsets` is missing, expected a tensor [rows]");
  EXPECT_THAT(refusal([](Ragged& c) { c.args.offsets.shape[0] = 1; }),
              HasSubstr("topk.ragged_transform: `offsets` has shape [1], expected rows=2 at dim 0"));
  EXPECT_THAT(refusal([](Ragged& c) { c.args.x.dtype = DType::i32; }),
              HasSubstr("topk.ragged_transform: `x` is i32, expected f32, f16 or bf16"));
  EXPECT_EQ(refusal([](Ragged& c) { c.args.k = 1048577, c.args.out = {c.out.data(), DType::i32, {2, 1048577}}; }),
            "topk.ragged_transform: `k` is 1048577, expected 0 to 1048576");
}

}  // namespace
}  // namespace quern::topk
