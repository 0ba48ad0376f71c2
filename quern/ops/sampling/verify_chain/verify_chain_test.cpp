// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Chains against the integer reference, what has been verified wrongly elsewhere, and that tokens are distributed as the target's.
#include "quern/ops/sampling/verify_chain.h"

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
#include "quern/ops/sampling/sample.h"
#include "quern/ops/sampling/verify_chain/ref.h"

namespace quern::sampling {
namespace {

using ::testing::ElementsAre;
constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

/// Chains in host memory, which the emulated device verifies.
struct Chains {
  i64 batch, drafts, vocab;
  std::vector<float> target, draft;
  std::vector<i32> ids, out, accepted, emitted;
  std::vector<u8> valid;
  std::vector<i64> seeds, offsets;
  VerifyChainArgs args;

  Chains(i64 batch, i64 drafts, i64 vocab)
      : batch(batch),
        drafts(drafts),
        vocab(vocab),
        target(size_t(batch * (drafts + 1) * vocab)),
        draft(size_t(batch * drafts * vocab)),
        ids(size_t(batch * drafts)),
        out(size_t(batch * (drafts + 1)), -7),
        accepted(size_t(batch), 100),
        emitted(size_t(batch), 200),
        valid(size_t(batch), 9) {
    args.out = {out.data(), DType::i32, {batch, drafts + 1}};
    args.accepted = {accepted.data(), DType::i32, {batch}}, args.emitted = {emitted.data(), DType::i32, {batch}},
    args.valid = {valid.data(), DType::u8, {batch}};
    args.target_probs = {target.data(), DType::f32, {batch, drafts + 1, vocab}};
    args.draft_ids = {ids.data(), DType::i32, {batch, drafts}};
    args.draft_probs = {draft.data(), DType::f32, {batch, drafts, vocab}};
  }
  /// One request of one draft.
  Chains(std::vector<float> q, std::vector<float> p, i32 id) : Chains(1, 1, i64(p.size())) {
    std::copy(q.begin(), q.end(), target.begin());
    for (size_t i = q.size(); i < target.size(); ++i) target[i] = 1;
    draft = std::move(p), ids = {id};
    args.draft_probs.data = draft.data(), args.draft_ids.data = ids.data();
  }
  Chains(const Chains&) = delete;
  float& q(i64 b, i64 i, i64 v) { return target[size_t((b * (drafts + 1) + i) * vocab + v)]; }
  float& p(i64 b, i64 i, i64 v) { return draft[size_t((b * drafts + i) * vocab + v)]; }
  void give_seeds(u64 seed) {
    Random random(seed);
    for (i64 i = 0; i < batch; ++i) seeds.push_back(i64(random.next())), offsets.push_back(i64(random.next()));
    args.seeds = {seeds.data(), DType::i64, {batch}}, args.offsets = {offsets.data(), DType::i64, {batch}};
  }
  /// Verifies; how many numbers of the outputs are not the reference's.
  i64 run(const RunOptions& options = {}) {
    std::vector<double> tokens(out.size()), a(accepted.begin(), accepted.end()), e(emitted.begin(), emitted.end()), ok(valid.size());
    VerifyChainArgs truth = args;
    truth.out = {tokens.data(), DType::f64, {batch, drafts + 1}}, truth.accepted = {a.data(), DType::f64, {batch}};
    truth.emitted = {e.data(), DType::f64, {batch}}, truth.valid = {ok.data(), DType::f64, {batch}};
    verify_chain_ref(truth, truth);
    verify_chain(args, options);
    i64 wrong = 0;
    for (size_t i = 0; i < out.size(); ++i) wrong += out[i] != tokens[i];
    for (size_t i = 0; i < valid.size(); ++i) wrong += (valid[i] != ok[i]) + (accepted[i] != a[i]) + (emitted[i] != e[i]);
    return wrong;
  }
};

void fill(Chains& c, u64 seed) {
  Random random(seed);
  for (i64 b = 0; b < c.batch; ++b)
    for (i64 i = 0; i <= c.drafts; ++i) {
      double sum_q = 0, sum_p = 0;
      std::vector<double> q(size_t(c.vocab)), p(size_t(c.vocab));
      for (size_t v = 0; v < q.size(); ++v) {
        sum_q += q[v] = std::exp(3 * random.uniform());
        sum_p += p[v] = q[v] * std::exp(double(b % 3) * random.uniform());  // every third request's drafts are the target's own
      }
      for (i64 v = 0; v < c.vocab; ++v) {
        c.q(b, i, v) = float(q[size_t(v)] / sum_q);
        if (i < c.drafts) c.p(b, i, v) = float(p[size_t(v)] / sum_p);
      }
      if (i == c.drafts) continue;
      double at = double(random.next() >> 11) * 0x1p-53;
      i32 id = 0;
      for (; id + 1 < c.vocab && (at -= double(c.p(b, i, id))) >= 0; ++id) {}
      c.ids[size_t(b * c.drafts + i)] = id;
    }
}

TEST(verify_chain, gives_the_tokens_of_the_reference) {
  u64 seed = 1;
  i64 emitted = 0, chains = 0;
  for (const i64 vocab : {1, 2, 7, 32, 100, 129, 513, 4100})
    for (const i64 drafts : {0, 1, 3, 8}) {
      if (vocab > 1000 && drafts > 3) continue;
      Chains c(vocab > 1000 ? 6 : 25, drafts, vocab);
      fill(c, ++seed);
      c.give_seeds(seed);
      EXPECT_EQ(c.run(), 0) << "vocab " << vocab << " drafts " << drafts;
      for (const i32 e : c.emitted) emitted += e - 200, chains += drafts;
    }
  EXPECT_GT(emitted, chains / 4);
  EXPECT_LT(emitted, chains * 3 / 4);
}

TEST(verify_chain, a_request_gives_the_same_alone_in_another_place_and_by_another_grid) {
  Chains all(12, 3, 501);
  fill(all, 5);
  all.give_seeds(7);
  EXPECT_EQ(all.run(), 0);
  const std::vector<i32> tokens = all.out;
  for (const i64 b : {0, 5, 11}) {
    VerifyChainArgs one = all.args;
    std::vector<i32> out(4, -7);
    one.out = {out.data(), DType::i32, {1, 4}}, one.accepted = one.emitted = one.valid = {};
    one.target_probs = all.args.target_probs.slice(0, b, b + 1), one.draft_probs = all.args.draft_probs.slice(0, b, b + 1);
    one.draft_ids = all.args.draft_ids.slice(0, b, b + 1), one.seeds = all.args.seeds.slice(0, b, b + 1),
    one.offsets = all.args.offsets.slice(0, b, b + 1);
    verify_chain(one);
    EXPECT_EQ(out, std::vector<i32>(tokens.begin() + b * 4, tokens.begin() + b * 4 + 4));
  }
  DeviceInfo small = device_info_of(Arch{});
  small.sms = 1;
  const std::unique_ptr<Device> device = make_emulated_device(small, {});
  EXPECT_EQ(all.run({.device = device.get()}), 0);
  EXPECT_EQ(all.out, tokens);
}

/// Behind a whole chain, and behind one that ends early, the token is what sampling.sample draws at that place.
TEST(verify_chain, the_token_behind_the_last_draft_is_that_of_sample) {
  for (const i64 end : {3, 1, 0}) {
    Chains c(20, 3, 200);
    fill(c, 3);
    c.draft = {};
    for (i64 b = 0; b < 20; ++b)
      for (i64 i = 0; i < 3; ++i)
        for (i64 v = 0; v < 200; ++v)
          c.target[size_t((b * 4 + i) * 200 + v)] = i < end ? float(v == b) : c.q(b, i, v);  // drafts that are certain and right
    for (size_t i = 0; i < c.ids.size(); ++i) c.ids[i] = i64(i % 3) < end ? i32(i / 3) : -1;
    c.args.draft_probs = {};
    c.give_seeds(11);
    EXPECT_EQ(c.run(), 0);
    std::vector<i32> drawn(20);
    std::vector<i64> offsets;
    for (const i64 o : c.offsets) offsets.push_back(i64(u64(o) + u64(end)));
    TensorView rows(c.target.data() + end * 200, DType::f32, {20, 200});
    rows.strides[0] = 800;
    sample({.out = {drawn.data(), DType::i32, {20}}, .probs = rows, .seeds = c.args.seeds, .offsets = {offsets.data(), DType::i64, {20}}});
    for (i64 b = 0; b < 20; ++b) EXPECT_EQ(c.out[size_t(b * 4 + end)], drawn[size_t(b)]) << end;
  }
}

// ---- what has been verified wrongly elsewhere -----------------------------------------------------------------------

/// With u below 1 an equal probability is always accepted; with u = 1 a test `u * p < q` would refuse it, and nothing would be left to
/// draw.
TEST(verify_chain, the_test_is_exact_at_its_ends) {
  const u64 most = ~u64(0);
  EXPECT_TRUE(accepts_ref(most, 0.3f, 0.3f));
  EXPECT_TRUE(accepts_ref(most, 1e-45f, 1e-45f));
  EXPECT_FALSE(accepts_ref(0, 0.5f, 0)) << "a draft that the target never draws";
  EXPECT_FALSE(accepts_ref(0, 0, 0));
  EXPECT_TRUE(accepts_ref(0, 0.5f, 1e-45f));
  EXPECT_TRUE(accepts_ref(most, 0, 1e-45f));
  EXPECT_FALSE(accepts_ref(u64(1) << 63, 0.5f, 0.25f)) << "equal is not below";
  EXPECT_TRUE(accepts_ref((u64(1) << 63) - 1, 0.5f, 0.25f));
  EXPECT_FALSE(accepts_ref(most, std::nextafterf(0.3f, 1), 0.3f));
  EXPECT_FALSE(accepts_ref(1, 1, 0x1p-64f));
  EXPECT_TRUE(accepts_ref(1, 0.5f, 0x1p-64f));
}
TEST(verify_chain, equal_distributions_accept_every_draft) {
  Chains c(60, 5, 64);
  fill(c, 8);
  for (i64 b = 0; b < 60; ++b)
    for (i64 i = 0; i < 5; ++i)
      for (i64 v = 0; v < 64; ++v) c.p(b, i, v) = c.q(b, i, v);
  c.args.seed = 3;
  EXPECT_EQ(c.run(), 0);
  EXPECT_THAT(c.emitted, ::testing::Each(205));
  EXPECT_THAT(c.accepted, ::testing::Each(105));
}
TEST(verify_chain, a_draft_without_probability_is_refused_or_taken_by_the_target) {
  for (int seed = 0; seed < 20; ++seed) {
    Chains refused({0, 0.5f, 0.5f}, {1, 0, 0}, 0), taken({0.5f, 0.5f, 0}, {0, 1, 0}, 0);
    refused.args.seed = taken.args.seed = seed;
    EXPECT_EQ(refused.run(), 0);
    EXPECT_THAT(refused.out, ElementsAre(::testing::AnyOf(1, 2), -1));
    EXPECT_EQ(taken.run(), 0);
    EXPECT_EQ(taken.out[0], 0);
  }
}
/// p above q throughout, so that nothing is left of q - p.
TEST(verify_chain, draws_from_the_target_where_nothing_is_left) {
  bool rejected = false;
  for (int seed = 0; seed < 20; ++seed) {
    Chains c({0.125f, 0.125f, 0}, {1, 1, 1}, 1);
    c.args.seed = seed;
    EXPECT_EQ(c.run(), 0);
    EXPECT_EQ(c.valid[0], 1);
    EXPECT_THAT(c.out[0], ::testing::AnyOf(0, 1));
    rejected |= c.emitted[0] == 200;
  }
  EXPECT_TRUE(rejected);
}
TEST(verify_chain, counters_are_added_to_and_count_behind_the_first_rejection) {
  Chains c(1, 4, 3);
  for (i64 i = 0; i <= 4; ++i) c.q(0, i, 0) = 1;
  for (i64 i = 0; i < 4; ++i) c.p(0, i, i == 1 ? 2 : 0) = 1;
  c.ids = {0, 2, 0, -1}, c.args.draft_ids.data = c.ids.data();
  EXPECT_EQ(c.run(), 0);
  EXPECT_THAT(c.out, ElementsAre(0, 0, -1, -1, -1));
  EXPECT_EQ(c.emitted[0], 201);
  EXPECT_EQ(c.accepted[0], 102);
  EXPECT_EQ(c.run(), 0);
  EXPECT_EQ(c.emitted[0], 202);
  EXPECT_EQ(c.accepted[0], 104);
}
TEST(verify_chain, requests_that_cannot_be_judged_are_told_and_leave_others_alone) {
  const auto outcome = [](std::vector<float> q, std::vector<float> p, i32 id) {
    Chains c(std::move(q), std::move(p), id);
    EXPECT_EQ(c.run(), 0);
    return std::vector<i32>{c.out[0], c.out[1], c.valid[0]};
  };
  EXPECT_THAT(outcome({kNan, 1, 0}, {1, 0, 0}, 0), ElementsAre(0, -1, 0));
  EXPECT_THAT(outcome({0, 1, 0}, {kInf, 0, 0}, 0), ElementsAre(0, -1, 0));
  EXPECT_THAT(outcome({-1, 1, 0}, {1, 0, 0}, 0), ElementsAre(0, -1, 0));
  EXPECT_THAT(outcome({0, 1, kNan}, {1, 0, 0}, 0), ElementsAre(0, -1, 0)) << "in the row that is drawn from";
  EXPECT_THAT(outcome({0, 1, 0}, {1, 0, kNan}, 0), ElementsAre(0, -1, 0));
  EXPECT_THAT(outcome({0, 0, 0}, {1, 0, 0}, 0), ElementsAre(0, -1, 0)) << "nothing to draw";
  EXPECT_THAT(outcome({0, 1, 0}, {1, 0, 0}, 0), ElementsAre(1, -1, 1));
  EXPECT_THAT(outcome({kInf, 1, 0}, {1, 0, 0}, 0), ElementsAre(0, ::testing::_, 1)) << "an infinite q takes its draft";
  EXPECT_THAT(outcome({0, 1, 0}, {1, 0, 0}, 3), ElementsAre(1, -1, 1)) << "an id beyond the vocabulary ends the chain";
}

// ---- the distribution -----------------------------------------------------------------------------------------------

/// The first token of a chain is distributed as q, whatever p: 200000 chains of the reference, in bins of a token, chi-square of 5 degrees
/// below what comes once in a million times.
TEST(verify_chain, tokens_are_distributed_as_the_targets) {
  const std::vector<std::vector<float>> drafts = {{0.1f, 0.1f, 0.4f, 0.2f, 0.1f, 0.1f}, {0.9f, 0.02f, 0.02f, 0.02f, 0.02f, 0.02f}, {}};
  const std::vector<float> q = {0.3f, 0.2f, 0.05f, 0.25f, 0.15f, 0.05f};
  for (const std::vector<float>& p : drafts) {
    constexpr i64 kChains = 200000, kBatch = 1000;
    std::vector<i64> count(6);
    for (i64 first = 0; first < kChains; first += kBatch) {
      std::vector<float> target(size_t(kBatch * 12)), draft;
      std::vector<i32> ids;
      std::vector<double> out(size_t(kBatch * 2));
      std::vector<i64> seeds(kBatch, 99), offsets;
      for (i64 b = 0; b < kBatch; ++b) {
        for (size_t i = 0; i < 12; ++i) target[size_t(b * 12) + i] = q[i % 6];
        draft.insert(draft.end(), p.begin(), p.end());
        const i64 drawn = p.empty() ? 2 : draw_ref({p.begin(), p.end()}, random_ref(99, u64(first + b) * 2, 0, 3));
        ids.push_back(i32(drawn)), offsets.push_back((first + b) * 2);
      }
      VerifyChainArgs a;
      a.out = {out.data(), DType::f64, {kBatch, 2}}, a.target_probs = {target.data(), DType::f32, {kBatch, 2, 6}},
      a.draft_ids = {ids.data(), DType::i32, {kBatch, 1}};
      if (!p.empty()) a.draft_probs = {draft.data(), DType::f32, {kBatch, 1, 6}};
      a.seeds = {seeds.data(), DType::i64, {kBatch}}, a.offsets = {offsets.data(), DType::i64, {kBatch}};
      verify_chain_ref(a, a);
      for (i64 b = 0; b < kBatch; ++b) ++count[size_t(out[size_t(b * 2)])];
    }
    double chi = 0, sum = 0;
    for (const float x : q) sum += double(x);
    for (size_t i = 0; i < 6; ++i) {
      const double expected = kChains * double(q[i]) / sum;
      chi += (double(count[i]) - expected) * (double(count[i]) - expected) / expected;
    }
    EXPECT_LT(chi, 35.9);
  }
}

// ---- what is refused ------------------------------------------------------------------------------------------------

std::string refusal(const std::function<void(Chains&)>& set) {
  Chains c(2, 3, 8);
  set(c);
  try {
    verify_chain(c.args);
  } catch (const Error& e) { return e.what(); }
  return "";
}
TEST(verify_chain, bad_calls_are_errors) {
  EXPECT_EQ(refusal([](Chains& c) { c.give_seeds(1), c.args.seed = 4; }),
            "sampling.verify_chain: `seed` is 4, expected 0 beside seeds, which hold those of the rows");
  EXPECT_EQ(refusal([](Chains& c) { c.args.target_probs.shape[2] = c.args.draft_probs.shape[2] = 0; }),
            "sampling.verify_chain: `vocab` is 0, expected 1 to 1048576");
  EXPECT_THAT(refusal([](Chains& c) { c.args.out.shape[1] = 3; }),
              ::testing::HasSubstr("sampling.verify_chain: `out` has shape [2, 3], expected drafts+1=4 at dim 1"));
}

}  // namespace
}  // namespace quern::sampling
