// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Chains of logits: the tokens of sampling.softmax and then sampling.verify_chain of its results.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "quern/base/host_dtype.h"
#include "quern/device/emulated.h"
#include "quern/op/random.h"
#include "quern/ops/sampling/softmax.h"
#include "quern/ops/sampling/verify_chain.h"

namespace quern::sampling {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

struct Outcome {
  std::vector<i32> out, accepted, emitted;
  std::vector<u8> valid;
  bool operator==(const Outcome&) const = default;
};

/// Chains of logits of any dtype in host memory.
struct LogitChains {
  i64 batch, drafts, vocab;
  DType dtype;
  std::vector<char> target, draft;
  std::vector<i32> ids;
  std::vector<float> temperatures;
  std::vector<i64> seeds, offsets;
  bool certain = false;
  float temperature = 1;

  LogitChains(i64 batch, i64 drafts, i64 vocab, DType dtype = DType::f32)
      : batch(batch),
        drafts(drafts),
        vocab(vocab),
        dtype(dtype),
        target(size_t(batch * (drafts + 1) * vocab * size_of(dtype))),
        draft(size_t(batch * drafts * vocab * size_of(dtype))),
        ids(size_t(batch * drafts)) {}
  LogitChains(const LogitChains&) = delete;
  TensorView targets() { return {target.data(), dtype, {batch, drafts + 1, vocab}}; }
  TensorView draft_rows() { return {draft.data(), dtype, {batch, drafts, vocab}}; }
  void set(const TensorView& rows, i64 b, i64 i, i64 v, double x) {
    const i64 at[] = {b, i, v};
    store_element(rows, at, x);
  }
  double get(const TensorView& rows, i64 b, i64 i, i64 v) {
    const i64 at[] = {b, i, v};
    return load_element(rows, at);
  }
  /// Drafts near the target, ids of large logits; some chains end early, few rows have no shares.
  void fill(u64 seed) {
    Random random(seed);
    for (i64 b = 0; b < batch; ++b) {
      for (i64 i = 0; i <= drafts; ++i)
        for (i64 v = 0; v < vocab; ++v) {
          const double x = 4 * (random.uniform() + random.uniform());
          set(targets(), b, i, v, random.below(40) == 0 ? -double(kInf) : x);
          if (i < drafts) set(draft_rows(), b, i, v, x + double(b % 3) * random.uniform());
        }
      const i64 end = random.below(4) ? drafts : random.below(drafts + 1);
      for (i64 i = 0; i < drafts; ++i) {
        i64 id = random.below(vocab);
        for (int more = 0; more < 6; ++more) {
          const i64 other = random.below(vocab);
          if (get(draft_rows(), b, i, other) > get(draft_rows(), b, i, id)) id = other;
        }
        ids[size_t(b * drafts + i)] = i >= end ? -1 : i32(id);
      }
      if (random.below(8) == 0)
        set(targets(), b, random.below(drafts + 1), random.below(vocab), random.below(2) ? double(kNan) : double(kInf));
      seeds.push_back(i64(random.next())), offsets.push_back(i64(random.next()));
    }
  }
  void give_temperatures(std::vector<float> of) {
    temperatures.clear();
    for (i64 b = 0; b < batch; ++b) temperatures.push_back(of[size_t(b) % of.size()]);
  }
  Outcome run(const std::function<void(VerifyChainArgs&)>& rows, const RunOptions& options = {}) {
    Outcome o{std::vector<i32>(size_t(batch * (drafts + 1)), -7), std::vector<i32>(size_t(batch), 100),
              std::vector<i32>(size_t(batch), 200), std::vector<u8>(size_t(batch), 9)};
    VerifyChainArgs a;
    a.out = {o.out.data(), DType::i32, {batch, drafts + 1}}, a.accepted = {o.accepted.data(), DType::i32, {batch}};
    a.emitted = {o.emitted.data(), DType::i32, {batch}}, a.valid = {o.valid.data(), DType::u8, {batch}};
    a.draft_ids = {ids.data(), DType::i32, {batch, drafts}};
    if (!seeds.empty()) a.seeds = {seeds.data(), DType::i64, {batch}}, a.offsets = {offsets.data(), DType::i64, {batch}};
    rows(a);
    verify_chain(a, options);
    return o;
  }
  Outcome of_logits(const RunOptions& options = {}) {
    return run(
        [&](VerifyChainArgs& a) {
          a.target_logits = targets(), a.temperature = temperature;
          if (!certain) a.draft_logits = draft_rows();
          if (!temperatures.empty()) a.temperatures = {temperatures.data(), DType::f32, {batch}};
        },
        options);
  }
  std::vector<float> shares(char* logits, i64 places) {
    std::vector<float> out(size_t(batch * places * vocab)), of_rows;
    for (i64 row = 0; row < batch * places && !temperatures.empty(); ++row) of_rows.push_back(temperatures[size_t(row / places)]);
    SoftmaxArgs a{.out = {out.data(), DType::f32, {batch * places, vocab}},
                  .logits = {logits, dtype, {batch * places, vocab}},
                  .temperature = temperature};
    if (!of_rows.empty()) a.temperatures = {of_rows.data(), DType::f32, {batch * places}};
    softmax(a);
    return out;
  }
  Outcome of_softmax() {
    std::vector<float> q = shares(target.data(), drafts + 1), p = shares(draft.data(), drafts);
    return run([&](VerifyChainArgs& a) {
      a.target_probs = {q.data(), DType::f32, {batch, drafts + 1, vocab}};
      if (!certain) a.draft_probs = {p.data(), DType::f32, {batch, drafts, vocab}};
    });
  }
};

TEST(verify_chain_of_logits, gives_the_tokens_of_softmax_and_then_verify_chain) {
  u64 seed = 1;
  i64 emitted = 0, invalid = 0, rejected = 0;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
    for (const i64 vocab : {1, 2, 7, 33, 129, 513, 4104})
      for (const i64 drafts : {0, 1, 3})
        for (const bool certain : {false, true}) {
          if (vocab > 1000 && drafts != 3) continue;
          LogitChains c(vocab > 1000 ? 5 : 21, drafts, vocab, dtype);
          c.fill(++seed);
          c.certain = certain;
          c.give_temperatures({1, 0.7f, 0, 1e-6f, 2.5f, 1e-5f, 0.3f, 100, 1, kNan, 0.9f, -1, 0.5f, kInf});
          const Outcome o = c.of_logits();
          EXPECT_EQ(o, c.of_softmax()) << name(dtype) << " vocab " << vocab << " drafts " << drafts << " certain " << certain;
          for (i64 b = 0; b < c.batch; ++b) {
            emitted += o.emitted[size_t(b)] - 200, invalid += o.valid[size_t(b)] == 0;
            const i64 place = o.emitted[size_t(b)] - 200;
            rejected += place < drafts && c.ids[size_t(b * drafts + place)] >= 0;
          }
        }
  EXPECT_GT(emitted, 200);
  EXPECT_GT(invalid, 50);
  EXPECT_GT(rejected, 200);
}

TEST(verify_chain_of_logits, a_number_is_a_tensor_of_it) {
  for (const float t : {0.0f, 0.6f, 1.0f, 3.0f}) {
    LogitChains c(20, 3, 200);
    c.fill(u64(10 * t) + 5);
    c.temperature = t;
    const Outcome number = c.of_logits();
    EXPECT_EQ(number, c.of_softmax()) << t;
    c.temperature = 1, c.give_temperatures({t});
    EXPECT_EQ(c.of_logits(), number) << t;
  }
}

/// Two logits whose shares are 1/2 and the number below it, the larger logit's being the smaller: each is drawn about as often.
TEST(verify_chain_of_logits, draws_a_token_whose_share_is_above_that_of_the_largest_logit) {
  const i64 batch = 400;
  LogitChains d(batch, 1, 2);
  for (i64 b = 0; b < batch; ++b)
    for (i64 i = 0; i < 2; ++i) d.set(d.targets(), b, i, 0, -0x1.522c1cp-2), d.set(d.targets(), b, i, 1, -0x1.522c1ap-2);
  std::fill(d.ids.begin(), d.ids.end(), -1);
  d.certain = true;
  const Outcome got = d.of_logits();
  i64 ones = 0;
  for (i64 b = 0; b < batch; ++b) ones += got.out[size_t(2 * b)];
  EXPECT_NEAR(double(ones), 200, 60);
}

TEST(verify_chain_of_logits, greedy_chains_keep_the_drafts_that_are_largest) {
  LogitChains c(1, 3, 5);
  for (i64 i = 0; i <= 3; ++i) c.set(c.targets(), 0, i, 1 + i, 3), c.set(c.targets(), 0, i, (2 + i) % 5, 3);  // the lower id of two
  c.temperature = 0, c.certain = true;
  c.ids = {1, 2, 4};
  const Outcome o = c.of_logits();
  EXPECT_THAT(o.out, ElementsAre(1, 2, 3, -1));
  EXPECT_EQ(o.emitted[0], 202);
  EXPECT_EQ(o.accepted[0], 102);
  c.ids = {1, 2, 3};
  EXPECT_THAT(c.of_logits().out, ElementsAre(1, 2, 3, 0)) << "4 and 0 are equal behind the last draft";
}

TEST(verify_chain_of_logits, a_request_gives_the_same_alone_and_by_another_grid) {
  LogitChains all(12, 3, 501);
  all.fill(5);
  all.give_temperatures({1, 0.5f, 0});
  const Outcome o = all.of_logits();
  DeviceInfo small = device_info_of(Arch{});
  small.sms = 1;
  const std::unique_ptr<Device> device = make_emulated_device(small, {});
  EXPECT_EQ(all.of_logits({.device = device.get()}), o);
  for (const i64 b : {0, 5, 11}) {
    std::vector<i32> out(4, -7);
    VerifyChainArgs one{.out = {out.data(), DType::i32, {1, 4}}};
    one.target_logits = all.targets().slice(0, b, b + 1), one.draft_logits = all.draft_rows().slice(0, b, b + 1);
    one.draft_ids = {all.ids.data() + b * 3, DType::i32, {1, 3}}, one.temperatures = {all.temperatures.data() + b, DType::f32, {1}};
    one.seeds = {all.seeds.data() + b, DType::i64, {1}}, one.offsets = {all.offsets.data() + b, DType::i64, {1}};
    verify_chain(one);
    EXPECT_EQ(out, std::vector<i32>(o.out.begin() + b * 4, o.out.begin() + b * 4 + 4)) << b;
  }
}

TEST(verify_chain_of_logits, rows_behind_the_end_of_a_chain_do_not_count) {
  LogitChains c(2, 3, 40);
  c.fill(9);
  c.ids = {5, -1, 7, 3, 4, 40};
  const Outcome o = c.of_logits();
  for (i64 v = 0; v < 40; ++v) {
    for (const i64 i : {2, 3}) c.set(c.targets(), 0, i, v, kNan);
    for (const i64 i : {1, 2}) c.set(c.draft_rows(), 0, i, v, kNan);
    c.set(c.targets(), 1, 3, v, kNan), c.set(c.draft_rows(), 1, 2, v, kNan);
  }
  EXPECT_EQ(c.of_logits(), o);
}

std::string refusal(const std::function<void(VerifyChainArgs&)>& change) {
  LogitChains c(2, 3, 8);
  std::vector<float> probs(64), temperatures = {1, 1};
  try {
    c.run([&](VerifyChainArgs& a) {
      a.target_logits = c.targets(), a.draft_logits = c.draft_rows();
      a.target_probs = {probs.data(), DType::f32, {2, 4, 8}}, a.draft_probs = {probs.data(), DType::f32, {2, 3, 8}},
      a.temperatures = {temperatures.data(), DType::f32, {2}};
      change(a);
    });
  } catch (const Error& e) { return e.what(); }
  return "";
}
TEST(verify_chain_of_logits, bad_calls_are_errors) {
  const auto logits = [](VerifyChainArgs& a) { a.target_probs = a.draft_probs = a.temperatures = {}; };
  const auto probs = [](VerifyChainArgs& a) { a.target_logits = a.draft_logits = a.temperatures = {}; };
  EXPECT_EQ(refusal([&](VerifyChainArgs& a) { logits(a); }), "");
  EXPECT_EQ(refusal([&](VerifyChainArgs& a) { a.target_probs = a.target_logits = a.draft_probs = a.temperatures = {}; }),
            "sampling.verify_chain: `target_probs` is absent, expected target_probs, or target_logits");
  EXPECT_EQ(refusal([](VerifyChainArgs&) {}), "sampling.verify_chain: `target_logits` is given, expected none beside target_probs");
  EXPECT_EQ(refusal([](VerifyChainArgs& a) { a.target_probs = {}; }),
            "sampling.verify_chain: `draft_probs` is given, expected none beside target_logits: drafts have draft_logits then");
  EXPECT_EQ(refusal([](VerifyChainArgs& a) { a.target_logits = {}; }),
            "sampling.verify_chain: `draft_logits` is given, expected none beside target_probs: drafts have draft_probs then");
  EXPECT_EQ(refusal([](VerifyChainArgs& a) { a.target_logits = a.draft_logits = {}; }),
            "sampling.verify_chain: `temperatures` is given, expected none beside target_probs");
  EXPECT_EQ(refusal([&](VerifyChainArgs& a) { probs(a), a.temperature = 0.5f; }),
            "sampling.verify_chain: `temperature` is 0.5, expected 1 beside target_probs");
  EXPECT_EQ(refusal([&](VerifyChainArgs& a) { logits(a), a.temperature = -0.5f; }),
            "sampling.verify_chain: `temperature` is -0.5, expected a finite number, 0 or more");
  EXPECT_EQ(refusal([](VerifyChainArgs& a) { a.target_probs = a.draft_probs = {}, a.temperature = 2; }),
            "sampling.verify_chain: `temperature` is 2, expected 1 beside temperatures, which hold those of the rows");
  EXPECT_THAT(refusal([&](VerifyChainArgs& a) { logits(a), a.draft_logits.dtype = DType::f16; }),
              ::testing::HasSubstr("sampling.verify_chain: `draft_logits` is f16, expected f32"));
  EXPECT_THAT(refusal([&](VerifyChainArgs& a) { logits(a), a.target_logits.shape[1] = 3; }),
              ::testing::HasSubstr("sampling.verify_chain: `target_logits` has shape [2, 3, 8], expected drafts+1=4 at dim 1"));
}

}  // namespace
}  // namespace quern::sampling
