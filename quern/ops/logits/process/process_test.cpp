// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What cases do not show: values by hand, forms of the same tokens against each other, and what is refused.
#include "quern/ops/logits/process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "quern/base/host_dtype.h"
#include "quern/device/emulated.h"
#include "quern/op/random.h"
#include "quern/op/run.h"

namespace quern::logits {
namespace {

using ::testing::ElementsAre;
constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

template <class T> DType dtype_for();
template <> DType dtype_for<float>() { return DType::f32; }
template <> DType dtype_for<i32>() { return DType::i32; }
template <> DType dtype_for<i64>() { return DType::i64; }

template <class T> TensorView matrix(std::vector<T>& v, i64 rows) {
  return {v.data(), dtype_for<T>(), {rows, rows ? i64(v.size()) / rows : 0}};
}
template <class T> TensorView list(std::vector<T>& v) { return {v.data(), dtype_for<T>(), {i64(v.size())}}; }

/// Rows of f32 logits, and the result of a call with other arguments set.
std::vector<float> processed(std::vector<float> logits, i64 rows, const std::function<void(ProcessArgs&)>& set,
                             const RunOptions& options = {}) {
  std::vector<float> out(logits.size(), -77);
  ProcessArgs a;
  a.logits = matrix(logits, rows), a.out = matrix(out, rows);
  set(a);
  process(a, options);
  return out;
}
bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * 4) == 0;
}

/// Six tokens: of prompt and output, of the output with a negative logit, of the prompt alone, of none, masked, biased.
TEST(logits_process, steps_are_done_in_vllms_order) {
  std::vector<i32> counts = {2, 3, 0, 0, 1, 0}, prompt = {0b000101}, mask = {0b101111};
  std::vector<float> bias = {1, 0, 0, 0, 0, -4};
  const std::vector<float> out = processed({3, -1, 5, 5, 9, 6}, 1, [&](ProcessArgs& a) {
    a.counts = matrix(counts, 1), a.prompt_bits = matrix(prompt, 1), a.bitmask = matrix(mask, 1), a.bias = matrix(bias, 1);
    a.repetition_penalty = 2, a.frequency_penalty = 0.25f, a.presence_penalty = 0.125f;
  });
  // (3 + 1) / 2 - 2 * 0.25 - 0.125; -1 * 2 - 0.75 - 0.125; 5 / 2; 5; -inf; 6 - 4
  EXPECT_THAT(out, ElementsAre(1.375f, -2.875f, 2.5f, 5.0f, -kInf, 2.0f));
}

TEST(logits_process, minus_infinity_stays_in_every_step_and_nan_but_under_a_mask) {
  std::vector<i32> counts(5, 3), mask = {0b01111};
  std::vector<float> bias = {kInf, 0, 0, -kInf, 0};
  const std::vector<float> out = processed({-kInf, -kInf, kNan, 1, kNan}, 1, [&](ProcessArgs& a) {
    a.counts = matrix(counts, 1), a.bitmask = matrix(mask, 1), a.bias = matrix(bias, 1);
    a.soft_cap = 30, a.repetition_penalty = 0.5f, a.frequency_penalty = -1e38f, a.presence_penalty = -3;
  });
  EXPECT_EQ(out[0], -kInf);
  EXPECT_EQ(out[1], -kInf) << "not -30";
  EXPECT_TRUE(std::isnan(out[2]));
  EXPECT_EQ(out[3], -kInf) << "what the bias makes -inf";
  EXPECT_EQ(out[4], -kInf);
}

TEST(logits_process, a_soft_cap_comes_before_everything_else) {
  std::vector<float> bias = {1, 1, 1};
  const std::vector<float> out = processed({kInf, 1000, 3}, 1, [&](ProcessArgs& a) { a.bias = matrix(bias, 1), a.soft_cap = 10; });
  EXPECT_EQ(out[0], 11);
  EXPECT_EQ(out[1], 11);
  EXPECT_NEAR(out[2], 10 * std::tanh(0.3) + 1, 5e-6);
}

/// a * c is not rounded on its own, and x / r is a division: values at which other roundings give other bits.
TEST(logits_process, each_step_is_rounded_once) {
  i64 products = 0, quotients = 0;
  Random random(5);
  std::vector<float> logits(4000);
  for (float& x : logits) x = float(1 + random.uniform() * 0.5);
  std::vector<i32> counts(4000);
  for (i32& c : counts) c = i32(1 + random.below(1000));
  const std::vector<float> out =
      processed(logits, 1, [&](ProcessArgs& a) { a.counts = matrix(counts, 1), a.repetition_penalty = 1.1f, a.frequency_penalty = 0.37f; });
  for (size_t i = 0; i < out.size(); ++i) {
    const float l = logits[i] / 1.1f;
    ASSERT_EQ(out[i], std::fmaf(-0.37f, float(counts[i]), l)) << i;
    volatile float product = 0.37f * float(counts[i]), quotient = logits[i] * (1 / 1.1f);
    products += out[i] != l - product, quotients += quotient != l;
  }
  EXPECT_GT(products, 100);
  EXPECT_GT(quotients, 100);
}

/// The same tokens as state and as lists, padded in both ways, with chunks' ends among them.
TEST(logits_process, lists_and_state_give_the_same_bits) {
  constexpr i64 kRows = 3, kVocab = 5000;
  Random random(9);
  std::vector<float> logits(size_t(kRows * kVocab));
  for (float& x : logits) x = float(4 * random.uniform());
  std::vector<i32> counts(size_t(kRows * kVocab)), bits(size_t(kRows * ((kVocab + 31) / 32)));
  std::vector<i64> prompt, output;
  for (i64 row = 0; row < kRows; ++row) {
    for (const i64 token :
         {i64(0), i64(2047), i64(2048), i64(4095), i64(4096), i64(4999), random.below(kVocab), i64(-1), kVocab, kVocab + 9, i64(1) << 33}) {
      prompt.push_back(token);
      if (token >= 0 && token < kVocab) bits[size_t(row * ((kVocab + 31) / 32) + token / 32)] |= i32(1u << (token % 32));
    }
    for (int i = 0; i < 700; ++i) {
      const i64 token = i % 7 == 0 ? kVocab : i % 3 ? random.below(kVocab) : 2040 + random.below(16);
      output.push_back(token);
      if (token < kVocab) ++counts[size_t(row * kVocab + token)];
    }
  }
  const auto penalties = [](ProcessArgs& a) { a.repetition_penalty = 1.3f, a.frequency_penalty = 0.1f, a.presence_penalty = 0.4f; };
  const std::vector<float> state = processed(
      logits, kRows, [&](ProcessArgs& a) { penalties(a), a.counts = matrix(counts, kRows), a.prompt_bits = matrix(bits, kRows); });
  const std::vector<float> wide = processed(logits, kRows, [&](ProcessArgs& a) {
    penalties(a), a.prompt_tokens = matrix(prompt, kRows), a.output_tokens = matrix(output, kRows);
  });
  EXPECT_TRUE(same_bits(state, wide));
  std::vector<i32> narrow_prompt, narrow_output(output.begin(), output.end());
  for (const i64 token : prompt) narrow_prompt.push_back(token > kVocab ? -5 : i32(token));
  const std::vector<float> narrow = processed(logits, kRows, [&](ProcessArgs& a) {
    penalties(a), a.prompt_tokens = matrix(narrow_prompt, kRows), a.output_tokens = matrix(narrow_output, kRows);
  });
  EXPECT_TRUE(same_bits(state, narrow));
  EXPECT_FALSE(same_bits(state, logits));
}

/// By another block, in another place, by other accesses.
TEST(logits_process, a_row_has_the_same_bits_alone_and_in_a_batch) {
  constexpr i64 kRows = 40, kVocab = 2052;
  Random random(3);
  std::vector<float> logits(size_t(kRows * kVocab)), bias(size_t(kRows * kVocab)), repetitions(kRows);
  std::vector<i32> counts(size_t(7 * kVocab)), slots(kRows), masks(size_t(3 * ((kVocab + 31) / 32))), mask_rows(kRows);
  for (float& x : logits) x = float(4 * random.uniform());
  for (float& x : bias) x = float(random.uniform());
  for (float& x : repetitions) x = 1 + float(random.below(8)) / 8;
  for (i32& x : counts) x = i32(random.below(3));
  for (i32& x : slots) x = i32(random.below(8)) - 1;
  for (i32& x : masks) x = i32(u32(random.next() | random.next()));
  for (i32& x : mask_rows) x = i32(random.below(4)) - 1;
  const auto args = [&](i64 begin, i64 end) {
    return [&, begin, end](ProcessArgs& a) {
      a.bias = matrix(bias, kRows).slice(0, begin, end), a.repetition_penalties = list(repetitions).slice(0, begin, end);
      a.counts = matrix(counts, 7), a.slots = list(slots).slice(0, begin, end), a.bitmask = matrix(masks, 3),
      a.mask_rows = list(mask_rows).slice(0, begin, end);
      a.frequency_penalty = 0.3f;
    };
  };
  const std::vector<float> all = processed(logits, kRows, args(0, kRows));
  for (const i64 row : {i64(0), i64(13), kRows - 1}) {
    const std::vector<float> one = processed({logits.begin() + row * kVocab, logits.begin() + (row + 1) * kVocab}, 1, args(row, row + 1));
    EXPECT_TRUE(same_bits(one, {all.begin() + row * kVocab, all.begin() + (row + 1) * kVocab})) << row;
  }
  DeviceInfo small = device_info_of(Arch{});
  small.sms = 1;
  const std::unique_ptr<Device> device = make_emulated_device(small, {});
  EXPECT_TRUE(same_bits(processed(logits, kRows, args(0, kRows), {.device = device.get()}), all));
  // Rows of 2053 elements, which only single elements can be read of
  std::vector<float> gaps(size_t(kRows * 2053)), out(gaps.size(), -77);
  for (i64 row = 0; row < kRows; ++row) std::copy_n(logits.begin() + row * kVocab, kVocab, gaps.begin() + row * 2053);
  ProcessArgs a;
  args(0, kRows)(a);
  a.logits = matrix(gaps, kRows).slice(1, 0, kVocab), a.out = matrix(out, kRows).slice(1, 0, kVocab);
  process(a);
  for (i64 row = 0; row < kRows; ++row) {
    EXPECT_TRUE(same_bits({out.begin() + row * 2053, out.begin() + row * 2053 + kVocab},
                          {all.begin() + row * kVocab, all.begin() + (row + 1) * kVocab}))
        << row;
    EXPECT_EQ(out[size_t(row * 2053 + kVocab)], -77) << "the gap behind row " << row;
  }
}

TEST(logits_process, a_list_of_biases_is_a_map_whose_last_value_counts) {
  std::vector<i32> ids = {3, 1, 3, 4, -1, 3, 2, 2, 4, 4};
  std::vector<float> values = {10, 20, 30, 99, 99, 40, 1, 2, 99, 99};  // two rows of five; 4 is the vocabulary
  EXPECT_THAT(
      processed({0, 0, 0, 0, 0, 0, 0, 0}, 2, [&](ProcessArgs& a) { a.bias_ids = matrix(ids, 2), a.bias_values = matrix(values, 2); }),
      ElementsAre(0, 20, 0, 30, 0, 0, 2, 40));
}

TEST(logits_process, columns_behind_the_masks_words_are_masked_or_left) {
  std::vector<i32> mask = {i32(0xfffffffe)}, mask_rows = {0, -1};
  const auto call = [&](PastMask past) {
    return processed(std::vector<float>(80, 1.0f), 2,
                     [&](ProcessArgs& a) { a.bitmask = matrix(mask, 1), a.mask_rows = list(mask_rows), a.past_mask = past; });
  };
  const std::vector<float> masked = call(PastMask::masked), left = call(PastMask::left);
  for (size_t i = 0; i < 80; ++i) {
    EXPECT_EQ(masked[i], i == 0 || (i >= 32 && i < 40) ? -kInf : 1.0f) << i;
    EXPECT_EQ(left[i], i == 0 ? -kInf : 1.0f) << i;
  }
}

TEST(logits_process, rows_of_penalties_that_are_none_become_nan_and_others_do_not) {
  std::vector<float> r = {1, 0, -1, kNan, kInf, 1, 1, 2}, f = {0, 0, 0, 0, 0, kNan, 0, 0}, b = {0, 0, 0, 0, 0, 0, -kInf, 0};
  std::vector<i32> counts(8, 1);
  const std::vector<float> out = processed(std::vector<float>(8, 4.0f), 8, [&](ProcessArgs& a) {
    a.counts = matrix(counts, 8), a.repetition_penalties = list(r), a.frequency_penalties = list(f), a.presence_penalties = list(b);
  });
  for (size_t row = 0; row < 8; ++row) EXPECT_EQ(std::isnan(out[row]), row >= 1 && row <= 6) << row;
  EXPECT_EQ(out[0], 4);
  EXPECT_EQ(out[7], 2);
}

TEST(logits_process, places_that_are_none_have_no_state) {
  std::vector<i32> counts = {1, 1}, slots = {0, -1, 1, 2147483647, -2147483647 - 1};
  EXPECT_THAT(processed(std::vector<float>(10, 4.0f), 5,
                        [&](ProcessArgs& a) { a.counts = matrix(counts, 1), a.slots = list(slots), a.presence_penalty = 1; }),
              ElementsAre(3, 3, 4, 4, 4, 4, 4, 4, 4, 4));
}

TEST(logits_process, narrow_logits_are_rounded_once_and_overflow_to_infinity) {
  std::vector<u16> logits(3);
  store_value(&logits[0], DType::f16, 65504), store_value(&logits[1], DType::f16, 1), store_value(&logits[2], DType::f16, -65504);
  std::vector<float> bias = {100, 0x1.8p-11f, -15};
  ProcessArgs a;
  a.logits = a.out = {logits.data(), DType::f16, {1, 3}}, a.bias = matrix(bias, 1);
  process(a);
  EXPECT_EQ(load_value(&logits[0], DType::f16), kInf);
  EXPECT_EQ(load_value(&logits[1], DType::f16), 1 + 0x1p-10);
  EXPECT_EQ(load_value(&logits[2], DType::f16), -65504);
}

// ---- what is refused ------------------------------------------------------------------------------------------------

std::string refusal(const std::function<void(ProcessArgs&)>& set) {
  try {
    processed(std::vector<float>(16, 1.0f), 2, set);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::value);
    return e.what();
  }
  return "";
}

TEST(logits_process, bad_calls_are_errors) {
  std::vector<i32> counts(24), slots(2), mask(3), tokens(6);
  std::vector<float> bias(24), values(6);
  EXPECT_EQ(refusal([&](ProcessArgs& a) { a.repetition_penalty = 0; }),
            "logits.process: `repetition_penalty` is 0, expected a finite number above 0");
  EXPECT_EQ(refusal([&](ProcessArgs& a) { a.frequency_penalty = kNan; }),
            "logits.process: `frequency_penalty` is nan, expected a finite number");
  EXPECT_EQ(refusal([&](ProcessArgs& a) { a.presence_penalty = 1; }),
            "logits.process: `presence_penalty` is 1, expected 0 without counts or output_tokens");
  EXPECT_EQ(refusal([&](ProcessArgs& a) { a.repetition_penalty = 2; }),
            "logits.process: `repetition_penalty` is 2, expected 1 without tokens of prompt or output");
  EXPECT_EQ(refusal([&](ProcessArgs& a) { a.soft_cap = -1; }),
            "logits.process: `soft_cap` is -1, expected 0, or a number from 1e-30 to 1e30");
  EXPECT_EQ(refusal([&](ProcessArgs& a) { a.counts = matrix(counts, 3); }),
            "logits.process: `slots` is 3, expected 2, as many as rows of logits where no tensor names the slots");
  EXPECT_EQ(refusal([&](ProcessArgs& a) { a.slots = list(slots); }),
            "logits.process: `slots` is given, expected none without counts and prompt_bits");
  EXPECT_EQ(refusal([&](ProcessArgs& a) { a.counts = matrix(counts, 3), a.slots = list(slots), a.output_tokens = matrix(tokens, 2); }),
            "logits.process: `output_tokens` is given, expected none beside counts and prompt_bits");
  EXPECT_EQ(refusal([&](ProcessArgs& a) { a.bitmask = matrix(mask, 3); }),
            "logits.process: `masks` is 3, expected 2, as many as rows of logits without mask_rows");
  EXPECT_EQ(refusal([&](ProcessArgs& a) { a.mask_rows = list(slots); }),
            "logits.process: `mask_rows` is given, expected none without bitmask");
  EXPECT_EQ(refusal([&](ProcessArgs& a) { a.past_mask = PastMask::left; }),
            "logits.process: `past_mask` is left, expected masked without bitmask");
  EXPECT_EQ(refusal([&](ProcessArgs& a) { a.bias = matrix(bias, 3); }),
            "logits.process: `bias_rows` is 3, expected 1, or as many as rows of logits, 2");
  EXPECT_EQ(refusal([&](ProcessArgs& a) { a.bias_ids = matrix(tokens, 2); }),
            "logits.process: `bias_values` is absent, expected those of bias_ids");
  EXPECT_EQ(refusal([&](ProcessArgs& a) { a.bias_values = matrix(values, 2); }),
            "logits.process: `bias_values` is given, expected none without bias_ids");
  EXPECT_EQ(refusal([&](ProcessArgs& a) {
              a.counts = matrix(counts, 3), a.slots = list(slots), a.repetition_penalties = list(values).slice(0, 0, 2),
              a.repetition_penalty = 2;
            }),
            "logits.process: `repetition_penalty` is 2, expected 1 beside repetition_penalties, which hold those of the rows");
}

}  // namespace
}  // namespace quern::logits
