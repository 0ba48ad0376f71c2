// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What draws are made of, in every world: Philox against its published vectors, the mass function against its statement and against 2^x in
// long double, wide integers against the compiler's.
#include "quern/ops/sampling/filters/mass_ref.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "quern/kit/conform/runner.h"
#include "quern/op/random.h"

namespace quern::conform {
namespace {

using sampling::u128;

INSTANTIATE_TEST_SUITE_P(Worlds, Conform, ::testing::ValuesIn(worlds(1)), world_name);

/// Salmon et al., Random123, kat_vectors: counter, key, result.
constexpr u32 kVectors[][10] = {
    {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
    {~0u, ~0u, ~0u, ~0u, ~0u, ~0u, 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
    {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1},
};

TEST_P(Conform, philox_has_its_published_words) {
  std::vector<u32> in, expected;
  for (const auto& v : kVectors) in.insert(in.end(), v, v + 6), expected.insert(expected.end(), v + 6, v + 10);
  Random random(5);
  for (int i = 0; i < 500; ++i) {
    u32 c[6];
    for (u32& word : c) word = u32(random.next());
    in.insert(in.end(), c, c + 6);
  }
  std::vector<u32> out(in.size() / 6 * 4, 0xdeadbeef);
  Kernel kernel(GetParam(), kernel_text("quern/bricks/random/conform.cuh", "philox_words", 64), 64, 0);
  kernel.run(in, out, i32(in.size() / 6));
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(out[i], expected[i]) << "word " << i;
  for (size_t i = 0; i < in.size() / 6; ++i) {
    const u32* c = &in[6 * i];
    EXPECT_EQ(u64(out[4 * i + 1]) << 32 | out[4 * i], sampling::random_ref(u64(c[5]) << 32 | c[4], u64(c[1]) << 32 | c[0], c[2], c[3]))
        << i;
  }
}

std::vector<u32> logits_and_temperatures() {
  const float temperatures[] = {1, 0.7f, 1e-5f, 1e-4f, 0.3f, 2.5f, 100, 1e30f, 3e38f, 0x1.fffffep-1f};
  std::vector<u32> in;
  const auto add = [&](float logit, float t) { in.push_back(std::bit_cast<u32>(logit)), in.push_back(std::bit_cast<u32>(t)); };
  Random random(9);
  for (const float t : temperatures) {
    for (const float logit : {0.0f, -0.0f, INFINITY, -INFINITY, 1e-45f, -1e-45f, 3.4e38f, -3.4e38f, 1e30f, 88.7f, -104.0f, 0x1p-126f})
      add(logit, t);
    for (int i = 0; i < 2000; ++i) add(float(std::ldexp(random.uniform(), int(random.below(24)) - 8)), t);
    // Products beside a half, where the integer part turns
    for (int i = -300; i < 300; ++i) {
      float logit = float((i + 0.5) * double(t) / 1.4426950408889634);
      for (int step = 0; step < 3; ++step, logit = std::nextafterf(logit, INFINITY)) add(logit, t);
    }
  }
  for (int i = 0; i < 4000; ++i) {
    const float logit = std::bit_cast<float>(u32(random.next()));
    if (!std::isnan(logit)) add(logit, temperatures[random.below(10)]);
  }
  return in;
}

TEST_P(Conform, weights_are_what_is_stated) {
  const std::vector<u32> in = logits_and_temperatures();
  std::vector<u32> out(in.size(), 0xdeadbeef);
  Kernel kernel(GetParam(), kernel_text("quern/bricks/mass/conform.cuh", "logit_weights", 128), 128, 0);
  kernel.config.grid[0] = 8;
  kernel.run(in, out, i32(in.size() / 2));
  int wrong = 0;
  for (size_t i = 0; i < in.size() && wrong < 5; i += 2) {
    const float logit = std::bit_cast<float>(in[i]), t = std::bit_cast<float>(in[i + 1]);
    const sampling::WeightRef w = sampling::LogitWeightsRef(t)(logit);
    if (out[i] == w.m && (w.m == 0 || i32(out[i + 1]) == w.e)) continue;
    ++wrong;
    ADD_FAILURE() << std::hexfloat << logit << " at temperature " << t << ": " << out[i] << " e " << i32(out[i + 1]) << ", expected " << w.m
                  << " e " << w.e;
  }
}

/// The weight is 2^(logit * log2(e) / temperature): the polynomial to 1.6 * 2^-24 (below), two roundings of the fraction to 2^-26 each,
/// times ln 2, and 2^-46 of |x| for the 48 bits of log2(e) / temperature, where it is at most 2^28.
TEST(mass, is_the_power_that_it_stands_for) {
  const std::vector<u32> in = logits_and_temperatures();
  long double worst = 0;
  for (size_t i = 0; i < in.size(); i += 2) {
    const float logit = std::bit_cast<float>(in[i]), t = std::bit_cast<float>(in[i + 1]);
    const sampling::WeightRef w = sampling::LogitWeightsRef(t)(logit);
    const long double x = (long double)(logit) * 1.442695040888963407359924681L / (long double)(t);
    if (std::isinf(logit) || std::fabs(x) > 0x1p27L || t > 1e20f) continue;  // beyond, a subnormal part of the scale, or x itself, is cut
    const long double expected = std::exp2(x - (long double)(w.e));          // in [1, 2)
    const long double error = std::fabs((long double)(w.m) * 0x1p-23L / expected - 1), bound = 2 * 0x1p-24L + std::fabs(x) * 0x1p-46L;
    worst = std::max(worst, error / bound);
    ASSERT_LE(error, bound) << std::hexfloat << logit << " at " << t;
  }
  EXPECT_GT(worst, 0.5L);  // and the bound says something
}

/// A fit to 2^-27.2; the last fma rounds to 2^-24 of at least 1 or 2^-25 of at least 0.707, the one before to 2^-25, of which at most a
/// half counts, and so on: together below 1.6 * 2^-24.
TEST_P(Conform, powers_of_fractions_are_near_2_to_the_f) {
  std::vector<u32> in;
  for (u32 bits = 0; bits <= std::bit_cast<u32>(0.5f); bits += 2048 + bits % 7)
    for (const u32 sign : {0u, 0x80000000u}) in.push_back(bits | sign);
  for (u32 bits = std::bit_cast<u32>(0.125f); bits <= std::bit_cast<u32>(0.5f); bits += 101)
    for (const u32 sign : {0u, 0x80000000u}) in.push_back(bits | sign);
  std::vector<u32> out(in.size(), 0xdeadbeef);
  Kernel kernel(GetParam(), kernel_text("quern/bricks/mass/conform.cuh", "powers", 128), 128, 0);
  kernel.config.grid[0] = 8;
  kernel.run(in, out, i32(in.size()));
  double worst = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    const double f = double(std::bit_cast<float>(in[i])), got = double(std::bit_cast<float>(out[i]));
    worst = std::max(worst, std::fabs(got / std::exp2(f) - 1));
    if (f >= 0) ASSERT_GE(got, 1) << f;  // the exponent of a weight ascends with the logit
    else ASSERT_LE(got, 1) << f;
  }
  EXPECT_LE(worst, 1.6 * 0x1p-24);
  EXPECT_GT(worst, 0x1p-25);
}

/// Top-p takes the bins of masses for an order of values: where weights descend from a logit to the next, they stay in their bin of 1/32 of
/// a power of two, and descend by a last bit.
TEST(mass, bins_ascend_with_logits) {
  i64 descents = 0;
  for (const float temperature : {1.0f, 0.7f}) {
    const sampling::LogitWeightsRef weight(temperature);
    for (int edge = -5 * 32; edge <= 32; ++edge) {
      const double x = edge / 32 + std::log2(1 + (edge % 32) / 32.0);
      float logit = float(x * double(temperature) / 1.4426950408889634);
      for (int i = 0; i < 1500; ++i) logit = std::nextafterf(logit, -INFINITY);
      sampling::WeightRef before = weight(logit);
      for (int i = 0; i < 3000; ++i) {
        logit = std::nextafterf(logit, INFINITY);
        const sampling::WeightRef now = weight(logit);
        ASSERT_GE(i64(now.e) * 32 + (now.m >> 18 & 31), i64(before.e) * 32 + (before.m >> 18 & 31)) << logit;
        ASSERT_GE(i64(now.m) + (i64(now.e - before.e) << 24), i64(before.m) - 1) << logit;
        descents += now.e == before.e && now.m < before.m;
        before = now;
      }
    }
  }
  EXPECT_GT(descents, 100) << "there are such";
}

TEST_P(Conform, wide_integers_are_the_compilers) {
  std::vector<u64> in;
  Random random(3);
  for (int i = 0; i < 4000; ++i) {
    const auto word = [&] { return random.below(4) == 0 ? (random.below(2) ? 0 : ~u64(0)) : random.next() >> random.below(64); };
    in.insert(in.end(), {word(), word(), word(), u64(random.below(128))});
  }
  std::vector<u64> out(in.size() / 4 * 14, 7);
  Kernel kernel(GetParam(), kernel_text("quern/bricks/mass/conform.cuh", "wide", 128), 128, 0);
  kernel.config.grid[0] = 8;
  kernel.run(in, out, i32(in.size() / 4));
  for (size_t i = 0; i < in.size() / 4; ++i) {
    const u128 a = u128(in[4 * i + 1]) << 64 | in[4 * i], b = in[4 * i + 2];
    const int by = int(in[4 * i + 3]);
    const u128 down = a >> by,
               expected[] = {a + b, a - b, a * b, sampling::scaled_ref(u64(b), a), a << by, down, down + ((down << by) != a)};
    for (size_t j = 0; j < 7; ++j) {
      const u128 got = u128(out[14 * i + 2 * j + 1]) << 64 | out[14 * i + 2 * j];
      ASSERT_TRUE(got == expected[j]) << "result " << j << " of input " << i;
    }
  }
}

}  // namespace
}  // namespace quern::conform
