// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/kit/order_free.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace quern {
namespace {

/// Numbers of every kind that data and constants are.
class OrderFreeLaws : public testing::Test {
 protected:
  OrderFree number() { return OrderFree::of(u32(random_() % OrderFree::kPrime), u32(random_() % OrderFree::kExponents)); }
  std::mt19937_64 random_{1};
};

TEST_F(OrderFreeLaws, sums_and_products_obey_the_laws_of_a_ring) {
  for (int i = 0; i < 1000; ++i) {
    const OrderFree a = number(), b = number(), c = number();
    EXPECT_EQ((a + b) + c, a + (b + c));
    EXPECT_EQ(a + b, b + a);
    EXPECT_EQ((a * b) * c, a * (b * c));
    EXPECT_EQ(a * (b + c), a * b + a * c);
    EXPECT_EQ(a - a, OrderFree(0));
    EXPECT_EQ(a + OrderFree(0), a);
    EXPECT_EQ(a * OrderFree(1), a);
    if (b.value() && b.exponent()) { EXPECT_EQ(a / b * b, a); }
  }
}

/// Of numbers without exponent only the value obeys: reciprocal() gives its result an exponent, so that a softmax can follow.
TEST_F(OrderFreeLaws, reciprocals_keep_products) {
  for (int i = 0; i < 1000; ++i) {
    const OrderFree a = number(), b = number(), lost = exp2(a);
    if (a.value() == 0 || b.value() == 0) continue;
    if (a.exponent() && b.exponent()) { EXPECT_EQ(reciprocal(a) * reciprocal(b), reciprocal(a * b)); }
    EXPECT_EQ((reciprocal(lost) * reciprocal(b)).value(), reciprocal(lost * b).value());
    EXPECT_EQ((lost / b * b).value(), lost.value());
    EXPECT_TRUE(reciprocal(lost).has_exponent());
    EXPECT_EQ(reciprocal(lost), reciprocal(exp2(a)));
  }
}

TEST_F(OrderFreeLaws, floats_keep_their_sums_and_products) {
  std::uniform_int_distribution<int> integer(-4000, 4000);
  for (int i = 0; i < 1000; ++i) {
    const double a = integer(random_) / 1024.0, b = std::ldexp(integer(random_), int(random_() % 40) - 20);
    EXPECT_EQ(OrderFree(a) + OrderFree(b), OrderFree(a + b));  // exact in double
    EXPECT_EQ(OrderFree(a) * OrderFree(b), OrderFree(a * b));
    EXPECT_EQ(-OrderFree(a), OrderFree(-a));
  }
  EXPECT_NE(OrderFree(1e-6f), OrderFree(2e-6f));
}

TEST_F(OrderFreeLaws, softmax_does_not_depend_on_the_maximum_that_is_subtracted) {
  for (int i = 0; i < 100; ++i) {
    const OrderFree x[3] = {number(), number(), number()}, v[3] = {number(), number(), number()};
    OrderFree results[2], lse[2];
    for (int k = 0; k < 2; ++k) {
      const OrderFree max = x[k];
      OrderFree sum = 0, out = 0;
      for (int j = 0; j < 3; ++j) sum += exp2(x[j] - max), out += exp2(x[j] - max) * v[j];
      results[k] = out * reciprocal(sum);
      lse[k] = max + log2(sum);
    }
    EXPECT_EQ(results[0], results[1]);
    EXPECT_EQ(lse[0], lse[1]);
    EXPECT_TRUE(lse[0].is_logarithm());
  }
}

TEST_F(OrderFreeLaws, exp2_and_log2_are_inverse) {
  EXPECT_EQ(exp2(OrderFree(10)).value(), 1024u);
  for (int i = 0; i < 1000; ++i) {
    const OrderFree a = number(), b = number();
    EXPECT_EQ(exp2(a + b), exp2(a) * exp2(b));
    if (a.value()) { EXPECT_EQ(exp2(log2(a)).value(), a.value()); }
    if (a.value()) { EXPECT_EQ(exp2(log2(a) - b).value(), (a / exp2(b)).value()); }
  }
}

TEST_F(OrderFreeLaws, what_cannot_be_known_is_nan) {
  const OrderFree p = exp2(OrderFree(3.5)), l = log2(OrderFree(7)), minus = OrderFree::infinity(true);
  EXPECT_TRUE(exp2(p).is_nan()) << "the exponent of a power";
  EXPECT_TRUE(log2(l).is_nan()) << "the value of a logarithm";
  EXPECT_TRUE((l * OrderFree(2.5)).is_nan());
  EXPECT_TRUE((minus - minus).is_nan());
  EXPECT_TRUE((minus * OrderFree(0)).is_nan());
  EXPECT_TRUE(exp2(minus).is_zero());
  EXPECT_EQ(OrderFree(5) + minus, minus);
  for (const u32 poison : {0xffffffffu, 0x7fffffffu, 0x7fff7fffu}) EXPECT_TRUE(OrderFree::of_word(poison).is_nan());
  for (const u32 poison : {0xffffu, 0x7fffu}) EXPECT_TRUE(OrderFree::of_half(poison).is_nan());
}

TEST_F(OrderFreeLaws, sixteen_bits_keep_the_value) {
  for (u32 code = 0; code < OrderFree::kPrime; ++code) {
    ASSERT_EQ(OrderFree::of_half(code).half(), code);
    ASSERT_EQ(OrderFree::of_half(code), OrderFree(int(code)));
    ASSERT_EQ(OrderFree::of_half(OrderFree::without_exponent(code).half()).value(), code);
  }
  for (int i = 0; i < 1000; ++i) {
    const OrderFree a = number();
    EXPECT_EQ(OrderFree::of_half(a.half()).value(), a.value());
  }
}

TEST_F(OrderFreeLaws, roots_tell_numbers_apart_and_keep_products) {
  std::vector<char> seen(OrderFree::kPrime);
  for (u32 v = 0; v < OrderFree::kPrime; ++v) {
    const OrderFree root = sqrt(OrderFree::of(v, v % OrderFree::kExponents));
    EXPECT_FALSE(seen[root.value()]++) << v;
  }
  EXPECT_EQ(sqrt(OrderFree(1)), OrderFree(1));
}

}  // namespace
}  // namespace quern
