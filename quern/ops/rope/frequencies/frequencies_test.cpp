// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The numbers were computed with 50 digits from the published formulas and the configurations of the models named.
#include "quern/ops/rope/frequencies.h"

#include <gtest/gtest.h>

#include <cmath>

#include "quern/base/error.h"

namespace quern::rope {
namespace {

struct Expected {
  int pair;
  double frequency;
};

/// Each pair's two numbers sum to its turns within 2^-47: the second one is rounded to 24 bits below the first one's 24.
void expect_frequencies(const Frequencies& made, const FrequencyOptions& options, std::initializer_list<Expected> expected) {
  ASSERT_EQ(made.turns.size(), size_t(options.rotary_dim));
  for (const Expected& e : expected) {
    const float high = made.turns[size_t(2 * e.pair)], low = made.turns[size_t(2 * e.pair + 1)];
    const double turns = e.frequency / (2 * std::acos(-1.0));
    EXPECT_EQ(high, float(turns)) << "pair " << e.pair;
    EXPECT_NEAR(double(high) + double(low), turns, turns * 0x1p-46) << "pair " << e.pair;
  }
}

TEST(rope_frequencies, llama_3_1) {
  FrequencyOptions o{.rotary_dim = 128, .theta = 500000, .factor = 8, .original_max = 8192};
  const Frequencies made = frequencies(FrequencyKind::llama3, o);
  expect_frequencies(made, o,
                     {{0, 1},
                      {1, 0.81461723385654472},
                      {28, 0.0032114459947525909},
                      {30, 0.0013718935677611381},
                      {33, 0.00031269375038406512},
                      {35, 9.5562123539646833e-05},
                      {36, 7.7846552739324498e-05},
                      {63, 3.0689259889145111e-07}});
  EXPECT_EQ(made.cos_sin_scale, 1);
  EXPECT_EQ(made.softmax_scale, 1);
}

TEST(rope_frequencies, yarn_of_deepseek_v3) {
  FrequencyOptions o{.rotary_dim = 64, .factor = 40, .original_max = 4096, .mscale_all_dim = 1};
  const Frequencies made = frequencies(FrequencyKind::yarn, o);
  expect_frequencies(made, o,
                     {{0, 1},
                      {9, 0.074989420933245579},
                      {10, 0.056234132519034911},
                      {11, 0.039006926567143857},
                      {15, 0.0083345089510207752},
                      {22, 0.00017782794100389227},
                      {23, 3.3338035804083099e-05},
                      {31, 3.3338035804083101e-06}});
  EXPECT_FLOAT_EQ(made.cos_sin_scale, 1);
  EXPECT_FLOAT_EQ(made.softmax_scale, 1.8738542070926265f);
  o.mscale = o.mscale_all_dim = 0.707;  // DeepSeek V2's
  EXPECT_FLOAT_EQ(frequencies(FrequencyKind::yarn, o).softmax_scale, 1.2608037774058554f * 1.2608037774058554f);
}

TEST(rope_frequencies, yarn_with_bounds_that_are_no_whole_pairs) {  // gpt-oss
  FrequencyOptions o{.rotary_dim = 64, .theta = 150000, .factor = 32, .original_max = 4096, .truncate = false};
  const Frequencies made = frequencies(FrequencyKind::yarn, o);
  expect_frequencies(made, o,
                     {{0, 1},
                      {7, 0.073744568210260819},
                      {8, 0.050813274815461475},
                      {9, 0.031705696184663769},
                      {12, 0.006794959489732218},
                      {17, 0.00012931870124506273},
                      {18, 3.8308812373753384e-05},
                      {31, 3.0235114281192144e-07}});
  EXPECT_FLOAT_EQ(made.cos_sin_scale, 1.3465735902799727f);
  o.attn_factor = 0.5;
  EXPECT_FLOAT_EQ(frequencies(FrequencyKind::yarn, o).cos_sin_scale, 0.5f * 1.3465735902799727f);
  o.truncate = true;  // other bounds
  EXPECT_NE(frequencies(FrequencyKind::yarn, o).turns, made.turns);
}

TEST(rope_frequencies, yarn_of_qwen) {
  FrequencyOptions o{.rotary_dim = 128, .theta = 1000000, .factor = 4, .original_max = 32768};
  const Frequencies made = frequencies(FrequencyKind::yarn, o);
  expect_frequencies(made, o,
                     {{0, 1},
                      {23, 0.0069783058485986633},
                      {24, 0.0053753214907901019},
                      {30, 0.0010643609812470017},
                      {39, 6.4903943208370293e-05},
                      {40, 4.4456985250973067e-05},
                      {63, 3.1023444018792988e-07}});
  EXPECT_FLOAT_EQ(made.cos_sin_scale, 1.138629436111989f);
}

TEST(rope_frequencies, linear_and_plain) {
  FrequencyOptions o{.rotary_dim = 128, .factor = 4};
  expect_frequencies(frequencies(FrequencyKind::linear, o), o, {{0, 0.25}, {1, 0.21649108084001634}, {63, 2.8869549617236455e-05}});
  expect_frequencies(frequencies(FrequencyKind::plain, o), o, {{0, 1}, {1, 4 * 0.21649108084001634}, {63, 4 * 2.8869549617236455e-05}});
}

TEST(rope_frequencies, longrope) {
  FrequencyOptions o{.rotary_dim = 96, .factor = 32, .original_max = 4096};
  for (int i = 0; i < 48; ++i) o.divisors.push_back(1 + i / 2.0);
  const Frequencies made = frequencies(FrequencyKind::longrope, o);
  expect_frequencies(made, o, {{0, 1}, {1, 0.55026945684534567}, {20, 0.001958576990938076}, {47, 4.9450108515452586e-06}});
  EXPECT_FLOAT_EQ(made.cos_sin_scale, 1.1902380714238083f);
  o.factor = 1;  // the original context
  EXPECT_EQ(frequencies(FrequencyKind::longrope, o).cos_sin_scale, 1);
}

std::string refusal(FrequencyKind kind, const FrequencyOptions& o) {
  try {
    frequencies(kind, o);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::value);
    return e.what();
  }
  return "";
}

TEST(rope_frequencies, say_what_they_refuse) {
  EXPECT_EQ(refusal(FrequencyKind::plain, {.rotary_dim = 7}), "rope.frequencies: `rotary_dim` is 7, expected an even number from 2 to 256");
  EXPECT_EQ(refusal(FrequencyKind::plain, {.theta = NAN}), "rope.frequencies: `theta` is nan, expected a number from 1 to 1e+30");
  EXPECT_EQ(refusal(FrequencyKind::yarn, {.theta = 1}),
            "rope.frequencies: `theta` is 1, expected more than 1: bounds of yarn are divided by its logarithm");
  EXPECT_EQ(refusal(FrequencyKind::linear, {.factor = 0}), "rope.frequencies: `factor` is 0, expected a number from 0.125 to 1e+30");
  EXPECT_EQ(refusal(FrequencyKind::llama3, {.low_freq_factor = 4}),
            "rope.frequencies: `high_freq_factor` is 4, expected more than low_freq_factor, up to 1e30");
  EXPECT_EQ(refusal(FrequencyKind::yarn, {.beta_fast = 1}), "rope.frequencies: `beta_fast` is 1, expected more than beta_slow, up to 1e30");
  EXPECT_EQ(refusal(FrequencyKind::longrope, {.rotary_dim = 4, .divisors = {1}}),
            "rope.frequencies: `divisors` is 1, expected rotary_dim / 2 = 2 numbers");
  EXPECT_EQ(refusal(FrequencyKind::longrope, {.rotary_dim = 2, .divisors = {0}}),
            "rope.frequencies: `divisors` is 0, expected a number from 0.125 to 1e+30");
  EXPECT_EQ(refusal(FrequencyKind::plain, {.rotary_dim = 2, .divisors = {1}}),
            "rope.frequencies: `divisors` is 1, expected none: kind is not longrope");
}

}  // namespace
}  // namespace quern::rope
