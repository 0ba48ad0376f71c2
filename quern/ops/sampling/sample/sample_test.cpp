// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Draws against the integer reference, token for token: many rows in each mode, what has been drawn wrongly elsewhere, and the distribution
// of the reference itself.
#include "quern/ops/sampling/sample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "quern/base/host_dtype.h"
#include "quern/device/emulated.h"
#include "quern/op/schema.h"
#include "quern/ops/sampling/filters/cases.h"
#include "quern/ops/sampling/mask.h"
#include "quern/ops/sampling/renorm.h"
#include "quern/ops/sampling/sample/ref.h"
#include "quern/ops/sampling/softmax.h"

namespace quern::sampling {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

/// Rows in host memory, which the emulated device draws from.
struct Draws {
  std::vector<float> values, temperatures, top_ps, min_ps;
  std::vector<i32> top_ks, indices, out;
  std::vector<i64> seeds, offsets;
  std::vector<u8> valid;
  SampleArgs args;
  i64 rows, vocab;

  Draws(i64 rows, i64 vocab) : values(size_t(rows * vocab)), out(size_t(rows), -7), valid(size_t(rows), 9), rows(rows), vocab(vocab) {
    args.out = {out.data(), DType::i32, {rows}};
    args.valid = {valid.data(), DType::u8, {rows}};
    args.logits = {values.data(), DType::f32, {rows, vocab}};
  }
  explicit Draws(const std::vector<std::vector<float>>& list) : Draws(i64(list.size()), i64(list[0].size())) {
    for (size_t i = 0; i < list.size(); ++i) std::copy(list[i].begin(), list[i].end(), values.begin() + i64(i) * vocab);
  }
  void use_probs() { args.probs = args.logits, args.logits = {}; }
  const TensorView& rows_view() const { return args.probs.present() ? args.probs : args.logits; }
  template <class T> static void give(TensorView& to, std::vector<T>& from, DType dtype) { to = {from.data(), dtype, {i64(from.size())}}; }
  void give_seeds(u64 seed) {
    Random random(seed);
    for (i64 i = 0; i < rows; ++i) seeds.push_back(i64(random.next())), offsets.push_back(i64(random.next()));
    give(args.seeds, seeds, DType::i64), give(args.offsets, offsets, DType::i64);
  }
  void run(const RunOptions& options = {}) { sample(args, options); }
  /// How many tokens or flags are not the reference's.
  i64 wrong() {
    std::vector<double> token(out.size()), ok(out.size());
    SampleArgs truth = args;
    truth.out = {token.data(), DType::f64, {rows}}, truth.valid = {ok.data(), DType::f64, {rows}};
    sample_ref(truth, truth);
    i64 count = 0;
    for (size_t i = 0; i < out.size(); ++i) count += double(out[i]) != token[i] || double(valid[i]) != ok[i];
    return count;
  }
};

struct Mode {
  const char* name;
  std::function<void(Draws&, Random&)> set;
};

/// Of each row the parameter is one of those.
template <class T> std::vector<T> picks(i64 rows, std::vector<T> from, Random& random) {
  std::vector<T> all;
  for (i64 i = 0; i < rows; ++i) all.push_back(from[size_t(random.below(i64(from.size())))]);
  return all;
}

const std::vector<Mode>& modes() {
  static const std::vector<Mode> all = {
      {"plain", [](Draws& d, Random&) { d.args.temperature = 0.7f; }},
      {"probs", [](Draws& d, Random&) { d.use_probs(); }},
      {"top_k",
       [](Draws& d, Random& r) {
         d.top_ks = picks<i32>(d.rows, {1, 2, 5, 40, i32(d.vocab), i32(d.vocab - 1)}, r), Draws::give(d.args.top_ks, d.top_ks, DType::i32);
       }},
      {"top_p",
       [](Draws& d, Random& r) {
         d.top_ps = picks<float>(d.rows, {0, 0.1f, 0.5f, 0.9f, 0.999f, 1}, r), Draws::give(d.args.top_ps, d.top_ps, DType::f32);
       }},
      {"top_p_of_probs", [](Draws& d, Random&) { d.use_probs(), d.args.top_p = 0.8f; }},
      {"top_k_then_top_p", [](Draws& d, Random&) { d.args.top_k = 20, d.args.top_p = 0.7f; }},
      {"joint", [](Draws& d, Random&) { d.args.top_k = 20, d.args.top_p = 0.7f, d.args.order = FilterOrder::joint; }},
      {"min_p",
       [](Draws& d, Random& r) {
         d.min_ps = picks<float>(d.rows, {0, 0.05f, 0.3f, 1, 1e-9f}, r), Draws::give(d.args.min_ps, d.min_ps, DType::f32);
       }},
      {"all_min_p_first",
       [](Draws& d, Random&) {
         d.args.top_k = 50, d.args.top_p = 0.9f, d.args.min_p = 0.02f, d.args.min_p_first = true, d.args.temperature = 1.3f;
       }},
      {"mixed_with_greedy",
       [](Draws& d, Random& r) {
         d.temperatures = picks<float>(d.rows, {0, 1, 0.5f, 1e-6f, 1e-5f, 1e-4f, 30}, r),
         Draws::give(d.args.temperatures, d.temperatures, DType::f32);
         d.args.top_p = 0.95f;
       }},
  };
  return all;
}

class SampleMode : public ::testing::TestWithParam<size_t> {};

/// At least 2000 rows of each mode: every kind of row at every vocabulary, aligned to 16 bytes and not.
TEST_P(SampleMode, draws_the_tokens_of_the_reference) {
  const Mode& mode = modes()[GetParam()];
  i64 rows = 0, seed = 1;
  for (const i64 vocab : {1, 2, 3, 4, 7, 31, 32, 33, 64, 127, 128, 129, 255, 500, 512, 1000, 1024, 4096, 4099}) {
    Draws d(vocab > 1024 ? 33 : 121, vocab);
    Random random(u64(seed++));
    mode.set(d, random);
    for (i64 row = 0; row < d.rows; ++row) fill_sampling_row(d.rows_view(), row, int(row % kRowKinds), d.args.probs.present(), random);
    d.give_seeds(u64(seed));
    d.run();
    EXPECT_EQ(d.wrong(), 0) << mode.name << " vocab " << vocab;
    rows += d.rows;
  }
  EXPECT_GE(rows, 2000);
}
INSTANTIATE_TEST_SUITE_P(sample, SampleMode, ::testing::Range(size_t(0), modes().size()),
                         [](const auto& info) { return std::string(modes()[info.param].name); });

TEST(sample, draws_the_tokens_of_the_reference_from_a_large_vocabulary) {
  Draws d(3, 128256);
  Random random(4);
  for (i64 row = 0; row < 3; ++row) fill_sampling_row(d.args.logits, row, int(row == 1 ? 2 : row == 2 ? 4 : 0), false, random);
  d.args.top_k = 1000, d.args.top_p = 0.9f;
  d.give_seeds(8);
  d.run();
  EXPECT_EQ(d.wrong(), 0);
  d.args.top_k = 0, d.args.top_p = 1;
  d.run();
  EXPECT_EQ(d.wrong(), 0);
}

/// A device for each way in which rows are shared: by eight blocks that hold them, by two that read them again, by one; the last has no
/// clusters.
std::vector<std::unique_ptr<Device>> devices_of_every_plan() {
  std::vector<std::unique_ptr<Device>> devices;
  for (const auto& [sms, arch] : {std::pair{132, 90}, {6, 90}, {1, 90}, {108, 80}}) {
    DeviceInfo info = device_info_of(arch == 80 ? Arch{80, 0} : Arch{});
    info.sms = sms;
    devices.push_back(make_emulated_device(info, {}));
  }
  return devices;
}
/// Normal values; values so near each other that more than a list holds lie in one bin of masses; few values; two thirds -inf.
Draws rows_for_every_plan() {
  Draws d(4, 20011);
  Random random(11);
  for (i64 i = 0; i < d.vocab; ++i) {
    d.values[size_t(i)] = float(3 * (random.uniform() + random.uniform() + random.uniform()));
    d.values[size_t(d.vocab + i)] = float(1 + 0.0005 * random.uniform());
    d.values[size_t(2 * d.vocab + i)] = float(random.below(5)) / 2;
    d.values[size_t(3 * d.vocab + i)] = random.below(3) != 0 ? -kInf : float(random.uniform());
  }
  d.give_seeds(5);
  return d;
}

TEST(sample, every_plan_draws_the_tokens_of_the_reference) {
  Draws d = rows_for_every_plan();
  const auto devices = devices_of_every_plan();
  struct Filters {
    i32 k;
    float p, min_p;
    FilterOrder order;
  };
  for (const Filters& f : {Filters{50, 0.9f, 0, FilterOrder::top_k_first},
                           {5000, 0.7f, 0, FilterOrder::top_k_first},
                           {3000, 0.95f, 0.3f, FilterOrder::joint}}) {
    d.args.top_k = f.k, d.args.top_p = f.p, d.args.min_p = f.min_p, d.args.order = f.order;
    for (size_t i = 0; i < devices.size(); ++i) {
      std::fill(d.out.begin(), d.out.end(), -7);
      d.run({.device = devices[i].get()});
      EXPECT_EQ(d.wrong(), 0) << "device " << i << " k " << f.k;
    }
  }
}

/// Rows written by every plan have the bits of one another; those of the last are compared with the reference by the cases of the ops.
TEST(sample, every_plan_writes_the_same_rows) {
  Draws d = rows_for_every_plan();
  const auto devices = devices_of_every_plan();
  std::vector<float> probs(d.values.size());
  const auto view = [&](std::vector<float>& v) { return TensorView(v.data(), DType::f32, {d.rows, d.vocab}); };
  std::vector<std::vector<float>> first;
  for (size_t i = 0; i < devices.size(); ++i) {
    std::vector<std::vector<float>> out(3, std::vector<float>(d.values.size(), kNan));
    SoftmaxArgs whole;
    whole.out = view(out[0]), whole.logits = d.args.logits;
    softmax(whole, {.device = devices[i].get()});
    MaskArgs masked;
    masked.out = view(out[1]), masked.logits = d.args.logits, masked.top_k = 4000, masked.top_p = 0.8f;
    mask(masked, {.device = devices[i].get()});
    probs = out[0];
    RenormArgs renormed;
    renormed.out = view(out[2]), renormed.probs = view(probs), renormed.top_k = 700;
    renorm(renormed, {.device = devices[i].get()});
    if (first.empty()) first = out;
    for (size_t k = 0; k < out.size(); ++k)
      EXPECT_EQ(std::memcmp(out[k].data(), first[k].data(), out[k].size() * 4), 0) << "op " << k << " device " << i;
  }
  for (i64 row = 0; row < d.rows; ++row) {
    double sum = 0;
    i64 kept = 0;
    for (i64 i = 0; i < d.vocab; ++i) sum += double(first[2][size_t(row * d.vocab + i)]), kept += first[2][size_t(row * d.vocab + i)] > 0;
    EXPECT_NEAR(sum, 1, 1e-6);
    EXPECT_EQ(kept, 700);
  }
}

/// 2^20 equal logits, by plans whose threads see the most of them: their masses are more than two words of 64 bits hold.
TEST(sample, the_longest_rows_of_equal_values) {
  const i64 vocab = i64(1) << 20;
  std::vector<float> logits(size_t(vocab), 0.25f), out(size_t(vocab), kNan);
  std::vector<i32> token(1, -7);
  const auto devices = devices_of_every_plan();
  for (size_t i = 2; i < devices.size(); ++i) {
    SoftmaxArgs whole;
    whole.out = {out.data(), DType::f32, {1, vocab}}, whole.logits = {logits.data(), DType::f32, {1, vocab}};
    softmax(whole, {.device = devices[i].get()});
    EXPECT_EQ(std::count(out.begin(), out.end(), 0x1p-20f), vocab);
    Draws d(1, vocab);
    d.values = logits;
    d.args.logits = whole.logits;
    d.args.seed = 3;
    d.run({.device = devices[i].get()});
    EXPECT_EQ(d.wrong(), 0);
  }
}

/// 2^f of neighbouring f may descend by a last bit: min-p asks for masses, not for values.
TEST(sample, min_p_keeps_masses_where_weights_descend) {
  const float first = -0x1.522c1cp-2f, second = -0x1.522c1ap-2f;  // weights 0xb7ffc8 and 0xb7ffc7 of 2^24
  std::vector<float> logits = {0, first, second}, out(3, kNan);
  MaskArgs args;
  args.out = {out.data(), DType::f32, {1, 3}}, args.logits = {logits.data(), DType::f32, {1, 3}};
  args.min_p = 0xb7ffc8p-24f;
  mask(args);
  EXPECT_THAT(out, ::testing::ElementsAre(0, first, -kInf));
}

TEST(sample, chooses_among_more_equal_values_than_any_buffer_would_hold) {
  Draws d(2, 100000);
  std::fill(d.values.begin(), d.values.end(), 1.5f);
  d.values[99999] = 2.0f;
  d.args.top_k = 70001;
  d.give_seeds(3);
  d.run();
  EXPECT_EQ(d.wrong(), 0);
  EXPECT_TRUE(d.out[0] < 70000 || d.out[0] == 99999) << d.out[0];
}

/// A request alone, among others, in another place, on other grids, by other blocks (rows that are aligned to 16 bytes or not are read by
/// other accesses): one token.
TEST(sample, a_row_draws_the_same_alone_and_in_a_batch) {
  Random random(6);
  Draws batch(40, 1003);
  for (i64 row = 0; row < batch.rows; ++row) fill_sampling_row(batch.args.logits, row, int(row % 5), false, random);
  batch.args.top_p = 0.95f, batch.args.min_p = 0.001f;
  batch.give_seeds(12);
  batch.run();
  for (const i64 row : {0, 7, 39}) {
    Draws one(1, 1003);
    std::copy_n(batch.values.begin() + row * 1003, 1003, one.values.begin());
    one.args.top_p = 0.95f, one.args.min_p = 0.001f;
    one.seeds = {batch.seeds[size_t(row)]}, one.offsets = {batch.offsets[size_t(row)]};
    Draws::give(one.args.seeds, one.seeds, DType::i64), Draws::give(one.args.offsets, one.offsets, DType::i64);
    one.run();
    EXPECT_EQ(one.out[0], batch.out[size_t(row)]);
  }
  const std::vector<i32> tokens = batch.out;
  DeviceInfo small = device_info_of(Arch{});
  small.sms = 1;
  const std::unique_ptr<Device> device = make_emulated_device(small, {});
  batch.run({.device = device.get()});
  EXPECT_EQ(batch.out, tokens) << "rows that one block takes in turn";

  // The same logits beside 13 of -inf: rows of 1016 elements begin at multiples of 16 bytes
  Draws wide(40, 1016);
  std::fill(wide.values.begin(), wide.values.end(), -kInf);
  for (i64 row = 0; row < 40; ++row) std::copy_n(batch.values.begin() + row * 1003, 1003, wide.values.begin() + row * 1016);
  wide.args.top_p = 0.95f, wide.args.min_p = 0.001f;
  wide.args.seeds = batch.args.seeds, wide.args.offsets = batch.args.offsets;
  wide.run();
  EXPECT_EQ(wide.out, tokens);
  // And among 4000 more, where blocks are larger
  Draws large(40, 5003);
  std::fill(large.values.begin(), large.values.end(), -kInf);
  for (i64 row = 0; row < 40; ++row) std::copy_n(batch.values.begin() + row * 1003, 1003, large.values.begin() + row * 5003);
  large.args.top_p = 0.95f, large.args.min_p = 0.001f;
  large.args.seeds = batch.args.seeds, large.args.offsets = batch.args.offsets;
  large.run();
  EXPECT_EQ(large.out, tokens);
}

TEST(sample, indices_draw_many_times_from_one_row) {
  Draws d(1, 50);
  Random random(1);
  fill_sampling_row(d.args.logits, 0, 0, false, random);
  d.rows = 600;
  d.out.assign(600, -7), d.valid.assign(600, 9), d.indices.assign(600, 0);
  d.args.out = {d.out.data(), DType::i32, {600}}, d.args.valid = {d.valid.data(), DType::u8, {600}};
  Draws::give(d.args.indices, d.indices, DType::i32);
  d.args.seed = 5;
  d.run();
  EXPECT_EQ(d.wrong(), 0);
  EXPECT_GT(std::set<i32>(d.out.begin(), d.out.end()).size(), 8u) << "the output row is in the counter";
  const std::vector<i32> first = d.out;
  d.args.offset = 1;
  d.run();
  EXPECT_NE(d.out, first);
}

// ---- what has been drawn wrongly elsewhere --------------------------------------------------------------------------

/// Draws 200 times; the tokens that came.
std::set<i32> tokens_of(std::vector<float> row, const std::function<void(Draws&)>& set, bool probs = false) {
  Draws d(std::vector<std::vector<float>>(200, row));
  if (probs) d.use_probs();
  d.args.seed = 17;
  set(d);
  d.run();
  EXPECT_EQ(d.wrong(), 0);
  return {d.out.begin(), d.out.end()};
}
using ::testing::Each;
using ::testing::ElementsAre;

TEST(sample, a_one_hot_row_with_k_of_the_vocabulary_and_p_of_1_gives_its_token) {
  EXPECT_THAT(tokens_of({0, 0, 1, 0, 0}, [](Draws& d) { d.args.top_k = 5, d.args.top_p = 1; }, true), ElementsAre(2));
  EXPECT_THAT(tokens_of({-kInf, -kInf, 3, -kInf}, [](Draws& d) { d.args.top_k = 9; }), ElementsAre(2));
}
TEST(sample, exactly_k_survive_where_the_boundary_is_shared) {
  EXPECT_THAT(tokens_of({0.4f, 0.3f, 0.3f, 0}, [](Draws& d) { d.args.top_k = 2; }, true), ElementsAre(0, 1));
  EXPECT_THAT(tokens_of({1, 2, 2, 2, 1}, [](Draws& d) { d.args.top_k = 2; }), ElementsAre(1, 2));
  EXPECT_THAT(tokens_of({-0.0f, 0.0f, -0.0f, 0.0f}, [](Draws& d) { d.args.top_k = 2; }), ElementsAre(0, 1));
}
TEST(sample, subnormal_probabilities_are_numbers) {
  EXPECT_THAT(tokens_of({1e-45f, 0, 3e-45f, 0}, [](Draws& d) { d.args.top_p = 0.6f; }, true), ElementsAre(2));
  EXPECT_THAT(tokens_of({1e-45f, 0, 3e-45f, 0}, [](Draws&) {}, true), ElementsAre(0, 2));
}
TEST(sample, a_top_p_of_0_takes_the_first_and_one_of_1_all) {
  EXPECT_THAT(tokens_of({1, 1.5f, 1.5f, 1}, [](Draws& d) { d.args.top_p = 0; }), ElementsAre(1));
  EXPECT_THAT(tokens_of({1, 1.5f, 1.5f, 1}, [](Draws& d) { d.args.top_p = -1; }), ElementsAre(1));
  EXPECT_THAT(tokens_of({1, 1.5f, 1.5f, 1}, [](Draws& d) { d.args.top_p = 1; }), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(tokens_of({1, 1.5f, 1.5f, 1}, [](Draws& d) { d.args.top_p = 1e-45f; }), ElementsAre(1));
}
/// 0.5 and 0.25 are exact: the token at which the sum reaches p is kept, and none behind it.
TEST(sample, top_p_keeps_the_token_that_reaches_it_and_no_more) {
  EXPECT_THAT(tokens_of({0.25f, 0.5f, 0.25f}, [](Draws& d) { d.args.top_p = 0.5f; }, true), ElementsAre(1));
  EXPECT_THAT(tokens_of({0.25f, 0.5f, 0.25f}, [](Draws& d) { d.args.top_p = std::nextafterf(0.5f, 1); }, true), ElementsAre(0, 1));
  EXPECT_THAT(tokens_of({0.25f, 0.5f, 0.25f}, [](Draws& d) { d.args.top_p = 0.75f; }, true), ElementsAre(0, 1));
}
TEST(sample, joint_and_top_k_first_differ_where_they_must) {
  // Of the two largest, 0.3 of 0.5 is 0.6 alone; of all, 0.3 is not 0.55
  EXPECT_THAT(tokens_of({0.3f, 0.2f, 0.2f, 0.15f, 0.15f}, [](Draws& d) { d.args.top_k = 2, d.args.top_p = 0.55f; }, true), ElementsAre(0));
  EXPECT_THAT(tokens_of(
                  {0.3f, 0.2f, 0.2f, 0.15f, 0.15f},
                  [](Draws& d) { d.args.top_k = 2, d.args.top_p = 0.55f, d.args.order = FilterOrder::joint; }, true),
              ElementsAre(0, 1));
}
/// All of the equals of the last token that top-k or top-p counts; of one filter and of two, whose smaller set stays.
TEST(sample, ties_all_keeps_the_equals_of_the_last) {
  const std::vector<float> row = {0.125f, 0.25f, 0.125f, 0.25f, 0.125f, 0.125f};
  const auto all = [&](auto set) { return tokens_of(row, [&](Draws& d) { d.args.ties = FilterTies::all, set(d.args); }, true); };
  EXPECT_THAT(all([](SampleArgs& a) { a.top_k = 1; }), ElementsAre(1, 3));
  EXPECT_THAT(all([](SampleArgs& a) { a.top_k = 2; }), ElementsAre(1, 3));
  EXPECT_THAT(all([](SampleArgs& a) { a.top_k = 3; }), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(all([](SampleArgs& a) { a.top_p = 0; }), ElementsAre(1, 3));
  EXPECT_THAT(all([](SampleArgs& a) { a.top_p = 0.25f; }), ElementsAre(1, 3));
  EXPECT_THAT(all([](SampleArgs& a) { a.top_p = 0.51f; }), ElementsAre(0, 1, 2, 3, 4, 5));
  // top-k keeps all; half of their mass is two tokens
  EXPECT_THAT(all([](SampleArgs& a) { a.top_k = 3, a.top_p = 0.5f; }), ElementsAre(1, 3));
  EXPECT_THAT(all([](SampleArgs& a) { a.top_k = 1, a.top_p = 0.9f, a.order = FilterOrder::joint; }), ElementsAre(1, 3));
  EXPECT_THAT(tokens_of(row, [](Draws& d) { d.args.top_k = 3; }, true), ElementsAre(0, 1, 3));
}
TEST(sample, min_p_is_last_or_first) {
  const std::vector<float> row = {0.4f, 0.12f, 0.12f, 0.12f, 0.12f, 0.12f};
  EXPECT_THAT(tokens_of(row, [](Draws& d) { d.args.top_p = 0.6f, d.args.min_p = 0.5f; }, true), ElementsAre(0));
  EXPECT_THAT(
      tokens_of(row, [](Draws& d) { d.args.top_p = 0.6f, d.args.min_p = 0.25f, d.args.min_p_first = true; }, true), ElementsAre(0, 1, 2));
  EXPECT_THAT(tokens_of(row, [](Draws& d) { d.args.top_k = 3, d.args.min_p = 0.5f, d.args.min_p_first = true; }, true), ElementsAre(0));
}
TEST(sample, rows_that_have_nothing_to_draw_are_told_and_leave_others_alone) {
  Draws d({{1, 2, 3}, {kNan, 2, 3}, {-kInf, -kInf, -kInf}, {3, 2, kNan}, {1, 2, 3}, {1, kInf, kInf}});
  d.args.top_k = 1;
  d.run();
  EXPECT_THAT(d.out, ElementsAre(2, 0, 0, 0, 2, 1));
  EXPECT_THAT(d.valid, ElementsAre(1, 0, 0, 0, 1, 1));
  d.args.valid = {};
  d.out.assign(6, -7);
  d.run();
  EXPECT_THAT(d.out, ElementsAre(2, 0, 0, 0, 2, 1)) << "without the flag";
  EXPECT_THAT(tokens_of({5, kInf, 9, kInf}, [](Draws&) {}), ElementsAre(1, 3));
  EXPECT_THAT(tokens_of({5, 1e30f, 9, kInf}, [](Draws& d) { d.args.temperature = 0.01f; }), ElementsAre(3)) << "what is cut is below inf";
}
TEST(sample, parameters_that_are_none_make_their_row_invalid) {
  Draws d(std::vector<std::vector<float>>(7, {1, 2, 3}));
  d.temperatures = {1, kNan, -1, kInf, 0, 1, 1}, d.top_ps = {1, 1, 1, 1, 1, kNan, 1}, d.min_ps = {1, 0, 0, 0, 0, 0, kNan};
  Draws::give(d.args.temperatures, d.temperatures, DType::f32), Draws::give(d.args.top_ps, d.top_ps, DType::f32),
      Draws::give(d.args.min_ps, d.min_ps, DType::f32);
  d.run();
  EXPECT_THAT(d.valid, ElementsAre(1, 0, 0, 0, 1, 0, 0));
  EXPECT_EQ(d.out[0], 2);
  EXPECT_EQ(d.out[4], 2);
}
TEST(sample, every_row_has_its_own_seed) {
  Draws d(std::vector<std::vector<float>>(64, std::vector<float>(256, 0.5f)));
  d.seeds.assign(64, 3);
  Draws::give(d.args.seeds, d.seeds, DType::i64);
  d.run();
  EXPECT_EQ(std::set<i32>(d.out.begin(), d.out.end()).size(), 1u);
  for (size_t i = 0; i < 64; ++i) d.seeds[i] = i64(i);
  d.run();
  EXPECT_GT(std::set<i32>(d.out.begin(), d.out.end()).size(), 30u);
  for (size_t i = 0; i < 64; ++i) d.seeds[i] = i64(i) << 32;
  d.run();
  EXPECT_GT(std::set<i32>(d.out.begin(), d.out.end()).size(), 30u) << "by the high word";
}
TEST(sample, the_tail_of_a_bf16_row_of_131072_is_drawn_as_often_as_it_weighs) {
  // Sums in bf16 or f32 would drop it: half of the mass is in 131071 tokens of 2^-17
  Draws d(1, 131072);
  std::vector<u16> half(131072);
  for (size_t i = 0; i < half.size(); ++i) store_value(&half[i], DType::bf16, i == 77 ? 0.5 : 0x1p-18);
  d.args.logits = {}, d.args.probs = {half.data(), DType::bf16, {1, 131072}};
  d.rows = 64, d.out.assign(64, 0), d.valid.assign(64, 0), d.indices.assign(64, 0);
  d.args.out = {d.out.data(), DType::i32, {64}}, d.args.valid = {d.valid.data(), DType::u8, {64}};
  Draws::give(d.args.indices, d.indices, DType::i32);
  d.run();
  const i64 tail = 64 - std::count(d.out.begin(), d.out.end(), 77);
  EXPECT_GE(tail, 18);
  EXPECT_LE(tail, 46);
}

// ---- the ends of the random number, and the distribution ------------------------------------------------------------

TEST(sample, the_ends_of_the_random_number_are_the_first_and_the_last_survivor) {
  const SurvivorsRef s = survivors_ref({-INFINITY, 1, 2, 0.5, -INFINITY}, {});
  EXPECT_EQ(token_ref(s, 0), 1);
  EXPECT_EQ(token_ref(s, ~u64(0)), 3);
}

/// 10^6 draws of the reference by 2^-20 of the row and up, the rest in one bin for the tail: chi-square below what comes once in a million
/// times.
void expect_distribution(const std::vector<double>& row, const FilterRef& f, u32 seed) {
  const SurvivorsRef s = survivors_ref(row, f);
  // The distribution in double, from the statement of the filters alone
  std::vector<double> p(row.size());
  double sum = 0, largest = *std::max_element(row.begin(), row.end());
  for (size_t i = 0; i < row.size(); ++i) sum += p[i] = s.survives[i] ? std::exp((row[i] - largest) / double(f.temperature)) : 0;
  std::vector<u128> prefix(row.size());
  u128 total = 0;
  for (size_t i = 0; i < row.size(); ++i) prefix[i] = total += s.mass(i);
  constexpr i64 kDraws = 1000000;
  std::vector<i64> count(row.size());
  for (i64 i = 0; i < kDraws; ++i) {
    const u64 bits = random_ref(seed, u64(i), 0, 0);
    const size_t token = size_t(std::upper_bound(prefix.begin(), prefix.end(), scaled_ref(bits, total)) - prefix.begin());
    if (i < 500) { ASSERT_EQ(token_ref(s, bits), i64(token)); }
    ++count[token];
  }
  double chi = 0, tail = 0;
  i64 bins = 0, tail_count = 0;
  for (size_t i = 0; i < row.size(); ++i) {
    const double expected = kDraws * p[i] / sum;
    EXPECT_TRUE(p[i] > 0 || count[i] == 0) << i;
    if (expected < 20) {
      tail += expected, tail_count += count[i];
      continue;
    }
    chi += (double(count[i]) - expected) * (double(count[i]) - expected) / expected, ++bins;
  }
  if (tail >= 5) chi += (double(tail_count) - tail) * (double(tail_count) - tail) / tail, ++bins;
  const double freedom = double(bins - 1),
               limit = freedom * std::pow(1 - 2 / (9 * freedom) + 4.75 * std::sqrt(2 / (9 * freedom)), 3);  // Wilson and Hilferty
  EXPECT_LT(chi, limit) << bins << " bins";
  EXPECT_GT(chi, freedom * std::pow(std::max(0.0, 1 - 2 / (9 * freedom) - 4.75 * std::sqrt(2 / (9 * freedom))), 3)) << "too even";
}

TEST(sample, a_million_draws_are_distributed_as_they_should_be) {
  Random random(2);
  std::vector<double> normal, peaked(5000), steep(200);
  for (int i = 0; i < 1000; ++i) normal.push_back(double(float(2 * (random.uniform() + random.uniform() + random.uniform()))));
  for (size_t i = 0; i < peaked.size(); ++i) peaked[i] = i == 1234 ? 12 : double(float(random.uniform()));
  for (size_t i = 0; i < steep.size(); ++i) steep[i] = -0.25 * double(i);  // the tail bin holds what is below 2e-5
  expect_distribution(normal, {}, 1);
  expect_distribution(normal, {.temperature = 0.7f, .top_p = 0.9f}, 2);
  expect_distribution(normal, {.top_k = 50}, 3);
  expect_distribution(normal, {.min_p = 0.1f}, 4);
  expect_distribution(peaked, {}, 5);
  expect_distribution(steep, {}, 6);
}

/// Tokens that docs/sampling.md shows behind a word.
std::vector<i32> documented(const std::string& word) {
  const std::string path = __FILE__;
  std::ifstream in(path.substr(0, path.rfind("/quern/")) + "/docs/sampling.md");
  std::vector<i32> tokens;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string first;
    if (!(words >> first) || first != word) continue;
    for (i32 token; words >> token;) tokens.push_back(token);
    break;
  }
  return tokens;
}

/// What examples/sampling/recipe.py prints, which docs_snippets compares with the same lines.
TEST(sample, draws_what_the_recipe_draws) {
  Draws d(12, 300);
  for (i64 row = 0; row < 12; ++row)
    for (i64 i = 0; i < 300; ++i) d.values[size_t(row * 300 + i)] = float(double(i * 7919 % 1000 - 500) / 128);
  d.args.seed = 42;
  d.run();
  EXPECT_EQ(d.out, documented("plain"));
  EXPECT_EQ(d.out.size(), 12u);
  d.args.seed = 0, d.args.temperature = 0.8f, d.args.top_k = 40, d.args.top_p = 0.875f, d.args.min_p = 0.0625f;
  d.seeds.assign(12, i64(1) << 40 | 7), d.offsets = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  Draws::give(d.args.seeds, d.seeds, DType::i64), Draws::give(d.args.offsets, d.offsets, DType::i64);
  d.run();
  EXPECT_EQ(d.out, documented("filters"));
}

// ---- what is refused ------------------------------------------------------------------------------------------------

std::string refusal(const std::function<void(Draws&)>& set) {
  Draws d(2, 8);
  set(d);
  try {
    d.run();
  } catch (const Error& e) { return e.what(); }
  return "";
}

TEST(sample, bad_calls_are_errors) {
  EXPECT_EQ(refusal([](Draws& d) { d.args.temperature = -1; }),
            "sampling.sample: `temperature` is -1, expected a finite number, 0 or more");
  EXPECT_EQ(refusal([](Draws& d) { d.args.temperature = kNan; }),
            "sampling.sample: `temperature` is nan, expected a finite number, 0 or more");
  EXPECT_EQ(refusal([](Draws& d) { d.args.top_p = kNan; }), "sampling.sample: `top_p` is nan, expected a finite number");
  EXPECT_EQ(refusal([](Draws& d) { d.args.logits = {}; }), "sampling.sample: `logits` is absent, expected logits, or probs");
  EXPECT_EQ(refusal([](Draws& d) { d.use_probs(), d.args.temperature = 0.5f; }),
            "sampling.sample: `temperature` is 0.5, expected 1 beside probs");
  EXPECT_EQ(refusal([](Draws& d) { d.give_seeds(1), d.args.seed = 4; }),
            "sampling.sample: `seed` is 4, expected 0 beside seeds, which hold those of the rows");
  EXPECT_EQ(refusal([](Draws& d) { d.args.out.shape[0] = d.args.valid.shape[0] = 1; }),
            "sampling.sample: `rows` is 1, expected 2, as many as rows of logits without indices");
  EXPECT_EQ(refusal([](Draws& d) { d.args.logits.shape[1] = 0; }), "sampling.sample: `vocab` is 0, expected 1 to 1048576");
}

}  // namespace
}  // namespace quern::sampling
