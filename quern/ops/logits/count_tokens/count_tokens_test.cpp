// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/logits/count_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "quern/op/contents.h"
#include "quern/op/schema.h"
#include "quern/ops/logits/process.h"

namespace quern::logits {
namespace {

using ::testing::ElementsAre;

/// Two slots of 40 tokens.
struct logits_count_tokens : ::testing::Test {
  std::vector<i32> counts = std::vector<i32>(80), bits = std::vector<i32>(4), slots;
  std::vector<i64> ids;
  CountTokensArgs args(std::vector<i64> tokens, std::vector<i32> of) {
    ids = std::move(tokens), slots = std::move(of);
    return {.counts = TensorView(counts.data(), DType::i32, {2, 40}),
            .prompt_bits = TensorView(bits.data(), DType::i32, {2, 2}),
            .ids = TensorView(ids.data(), DType::i64, {i64(ids.size())}),
            .slots = TensorView(slots.data(), DType::i32, {i64(slots.size())})};
  }
  std::string breach(const CountTokensArgs& a) {
    const Op& op = find_op("logits.count_tokens");
    const std::vector<Breach> found = contents_breaches(op, &a, bind(op, &a, {}));
    return found.empty() ? "none" : to_string(found[0]);
  }
};

TEST_F(logits_count_tokens, counts_one_token_as_often_as_it_comes) {
  count_tokens(args(std::vector<i64>(1000, 7), std::vector<i32>(1000, 1)));
  EXPECT_EQ(counts[47], 1000);
  counts[47] = 0;
  EXPECT_EQ(counts, std::vector<i32>(80, 0));
  EXPECT_THAT(bits, ElementsAre(0, 0, 128, 0));
}

/// 32 tokens of one word, of which no thread's bit may be lost, and bits that were there.
TEST_F(logits_count_tokens, bits_of_one_word_are_all_set) {
  std::vector<i64> tokens;
  std::vector<i32> of;
  for (int i = 0; i < 320; ++i) tokens.push_back(i % 32), of.push_back(0);
  bits[1] = 6;
  CountTokensArgs a = args(tokens, of);
  a.counts = {};
  count_tokens(a);
  EXPECT_THAT(bits, ElementsAre(-1, 6, 0, 0));
  EXPECT_EQ(counts, std::vector<i32>(80, 0));
}

TEST_F(logits_count_tokens, what_is_no_token_or_no_slot_is_passed_over) {
  const CountTokensArgs a = args({-1, 3, 40, 3, 3, (i64(1) << 32) + 3, -(i64(1) << 40)}, {0, -1, 0, 2, 2147483647, 0, 1});
  count_tokens(a);
  EXPECT_EQ(counts, std::vector<i32>(80, 0));
  EXPECT_EQ(bits, std::vector<i32>(4, 0));
  EXPECT_EQ(breach(args({-1, 39, -(i64(1) << 40)}, {0, -1, -7})), "none");
  EXPECT_EQ(breach(args({0, 40}, {0, 1})), "`ids`[1] is 40, expected 0 to 39 or negative");
  EXPECT_THAT(breach(args({0, 1}, {0, 2})), ::testing::HasSubstr("`slots`[1] is 2, expected 0 to 1 or negative"));
}

/// Prompt, then four steps of which one has drafts: what process reads then.
TEST_F(logits_count_tokens, keeps_the_state_that_process_reads) {
  CountTokensArgs prompt = args({5, 6, 39, 5}, {0, 0, 0, 1});
  prompt.counts = {};
  count_tokens(prompt);
  for (const std::vector<i64>& step : {std::vector<i64>{5, 9}, {5, 9}, {8, 0}, {39, -1}}) {
    CountTokensArgs a = args(step, {0, 1});
    a.prompt_bits = {};
    count_tokens(a);
  }
  std::vector<float> logits(80, 1.0f), out(80);
  process({.out = TensorView(out.data(), DType::f32, {2, 40}),
           .logits = TensorView(logits.data(), DType::f32, {2, 40}),
           .counts = TensorView(counts.data(), DType::i32, {2, 40}),
           .prompt_bits = TensorView(bits.data(), DType::i32, {2, 2}),
           .repetition_penalty = 2,
           .frequency_penalty = 1});
  std::vector<float> expected(80, 1.0f);
  expected[5] = 0.5f - 2, expected[6] = 0.5f, expected[39] = 0.5f - 1, expected[8] = 0.5f - 1;
  expected[45] = 0.5f, expected[49] = 0.5f - 2, expected[40] = 0.5f - 1;
  EXPECT_EQ(out, expected);
}

TEST_F(logits_count_tokens, bad_calls_are_errors) {
  const auto refusal = [&](const CountTokensArgs& a) {
    try {
      count_tokens(a);
    } catch (const Error& e) { return std::string(e.what()); }
    return std::string();
  };
  CountTokensArgs a = args({1}, {0});
  a.counts = a.prompt_bits = {};
  EXPECT_EQ(refusal(a), "logits.count_tokens: `counts` is absent, expected counts, prompt_bits, or both");
  a = args({1}, {0});
  a.prompt_bits.shape[1] = 1;
  EXPECT_EQ(refusal(a), "logits.count_tokens: `prompt_words` is 1, expected 2, a bit for each column of counts");
}

}  // namespace
}  // namespace quern::logits
