// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Rows that have several tokens, told by offsets, and tokens that are computed alone.
#include "quern/testing/rows.h"

#include <gtest/gtest.h>

#include <cstring>

#include "quern/base/host_dtype.h"
#include "quern/testing/check.h"
#include "quern/testing/truth.h"

namespace quern::testing {
namespace {

const Case kRagged = {{"batch", 3}, {"heads_kv", 1}, {"gqa", 2}, {"head_dim", 16}, {"queries", -1}, {"keys", -1}, {"spare", 1}};

TEST(testing_rows, have_the_tokens_between_their_offsets) {
  CaseArgs c(find_op("attention.ragged"), kRagged, 4);
  const TensorView indptr = c.tensor(size_t(c.op().tensor_index("q_indptr")));
  const auto offset = [&](i64 at) { return load_integer(indptr.at(&at), indptr.dtype); };
  EXPECT_TRUE(rows_can_be_sliced(c.op(), c.args()));
  EXPECT_FALSE(outputs_can_be_sliced(c.op(), c.args())) << "a row is no index of an output";
  EXPECT_EQ(row_count(c.op(), c.args()), 3);
  i64 tokens = 0;
  for (i64 r = 0; r < 3; ++r) {
    EXPECT_EQ(i64(output_bytes(c, r).size()), (offset(r + 1) - offset(r)) * (2 * 16 * 2 + 2 * 4)) << "out and out_lse";
    tokens += offset(r + 1) - offset(r);
  }
  EXPECT_GT(tokens, 0);
  ArgsStorage one(c.op());
  std::memcpy(one.get(), c.args(), c.op().args_bytes);
  keep_rows(c.op(), one.get(), 1, 2);
  EXPECT_EQ(row_count(c.op(), one.get()), 1);
  EXPECT_EQ(c.op().tensor(one.get(), size_t(c.op().tensor_index("q"))).shape[0], c.tensor(size_t(c.op().tensor_index("q"))).shape[0])
      << "offsets stay absolute";
}

/// Each token's outputs alone are those of the whole call, by the reference.
TEST(testing_rows, a_token_alone_is_as_among_others) {
  const std::pair<const char*, Case> calls[] = {
      {"attention.ragged", {{"causal", 1}, {"window_left", 7}}},
      {"attention.ragged", {{"causal", 0}, {"scales", 3}}},
      {"attention.paged", {{"causal", 1}, {"csr", 0}, {"capacity", 50}, {"page_size", 7}}},
      {"attention.paged", {{"causal", 1}, {"csr", 1}, {"capacity", 50}, {"page_size", 7}, {"scales", 3}}}};
  for (const auto& [id, more] : calls) {
    Case which = kRagged;
    which.insert(more.begin(), more.end());
    CaseArgs c(find_op(id), which, 4);
    const std::vector<Truth> whole = truth_of(c);
    const i64 tokens = c.tensor(size_t(c.op().tensor_index("out"))).shape[0];
    for (i64 t = 0; t < tokens; ++t) {
      ArgsStorage one(c.op());
      std::memcpy(one.get(), c.args(), c.op().args_bytes);
      std::vector<i32> indices;
      ASSERT_TRUE(c.op().keep_token(one.get(), t, indices));
      const std::vector<Truth> alone = truth_of(c.op(), one.get());
      ASSERT_EQ(alone.size(), whole.size());
      for (size_t i = 0; i < whole.size(); ++i) {
        const size_t of_token = whole[i].values.size() / size_t(tokens);
        EXPECT_EQ(std::memcmp(alone[i].values.data(), whole[i].values.data() + size_t(t) * of_token, of_token * sizeof(double)), 0)
            << id << " token " << t;
      }
    }
  }
}

/// What one token needs cannot be had where a mask or a window that looks ahead says what it sees.
TEST(testing_rows, some_tokens_cannot_be_alone) {
  for (const Case& more : {Case{{"causal", 0}, {"bits", 1}}, Case{{"causal", 0}, {"window_right", 3}}}) {
    Case which = kRagged;
    which.insert(more.begin(), more.end());
    CaseArgs c(find_op("attention.ragged"), which, 4);
    std::vector<i32> indices;
    EXPECT_FALSE(c.op().keep_token(c.args(), 0, indices));
  }
}

}  // namespace
}  // namespace quern::testing
