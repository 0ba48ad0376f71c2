// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Every pattern of the 8- and 16-bit types against its definition, and every rounding boundary between two neighbours.
#include "quern/base/host_dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace quern {
namespace {

struct Definition {
  DType dtype;
  int exponent_bits, mantissa_bits, bias;
  double largest;
  bool ieee;
};
const Definition kDefinitions[] = {{DType::f16, 5, 10, 15, 65504, true},
                                   {DType::bf16, 8, 7, 127, 3.3895313892515355e38, true},
                                   {DType::e4m3, 4, 3, 7, 448, false},
                                   {DType::e5m2, 5, 2, 15, 57344, true}};

/// (-1)^s * 2^(e-bias) * (1 + m / 2^bits), as the formats' papers state it.
double by_formula(u32 bits, const Definition& d) {
  const int m = int(bits % (1u << d.mantissa_bits));
  const int e = int(bits >> d.mantissa_bits) % (1 << d.exponent_bits);
  const int s = int(bits >> (d.mantissa_bits + d.exponent_bits));
  const bool last = e == (1 << d.exponent_bits) - 1;
  const double sign = s ? -1 : 1;
  if (last && d.ieee && m == 0) return sign * std::numeric_limits<double>::infinity();
  if (last && (d.ieee || m == (1 << d.mantissa_bits) - 1)) return std::nan("");
  const double fraction = double(m) / (1 << d.mantissa_bits);
  return e == 0 ? sign * std::ldexp(fraction, 1 - d.bias) : sign * std::ldexp(1 + fraction, e - d.bias);
}

u32 stored(DType dtype, double value) {
  u32 bits = 0;
  store_value(&bits, dtype, value);
  return bits;
}

class HostDtype : public testing::TestWithParam<Definition> {};

TEST_P(HostDtype, every_pattern_has_the_value_of_the_formula) {
  const Definition d = GetParam();
  for (u32 bits = 0; bits < 1u << (8 * size_of(d.dtype)); ++bits) {
    const double got = load_value(&bits, d.dtype), want = by_formula(bits, d);
    ASSERT_TRUE(std::isnan(want) ? std::isnan(got) : got == want) << bits;
    ASSERT_EQ(std::signbit(got), bits >> (8 * size_of(d.dtype) - 1) != 0) << bits;
    const bool comes_back = !std::isnan(want) && !(std::isinf(want) && saturates(d.dtype));
    ASSERT_EQ(comes_back ? stored(d.dtype, got) : bits, bits);
    double row[2];
    read_row(&bits, d.dtype, 1, 1, row);
    ASSERT_TRUE(row[0] == got || std::isnan(got)) << bits;
  }
}

TEST_P(HostDtype, rounds_to_nearest_even_between_all_neighbours) {
  const Definition d = GetParam();
  const u32 sign = 1u << (8 * size_of(d.dtype) - 1);
  for (u32 bits = 0; by_formula(bits + 1, d) <= d.largest; ++bits) {
    const double low = by_formula(bits, d), high = by_formula(bits + 1, d), middle = low + (high - low) / 2;
    const u32 even = bits % 2 ? bits + 1 : bits;
    ASSERT_EQ(stored(d.dtype, middle), even) << middle;
    ASSERT_EQ(stored(d.dtype, std::nextafter(middle, 0)), bits) << middle;
    ASSERT_EQ(stored(d.dtype, std::nextafter(middle, 1e300)), bits + 1) << middle;
    ASSERT_EQ(stored(d.dtype, -middle), even | sign) << middle;
  }
}

TEST_P(HostDtype, overflow_saturates_or_becomes_infinite) {
  const Definition d = GetParam();
  EXPECT_EQ(largest_finite(d.dtype), d.largest);
  const u32 largest = stored(d.dtype, d.largest);
  const u32 over = d.dtype == DType::e4m3 || d.dtype == DType::e5m2 ? largest : largest + 1;
  const double step = d.largest - by_formula(largest - 1, d);
  EXPECT_EQ(stored(d.dtype, std::nextafter(d.largest + step / 2, 0)), largest);
  EXPECT_EQ(stored(d.dtype, d.largest + step), over);
  EXPECT_EQ(stored(d.dtype, 1e300), over);
  EXPECT_EQ(stored(d.dtype, HUGE_VAL), over);
  const u32 nan = stored(d.dtype, std::nan(""));
  EXPECT_TRUE(std::isnan(load_value(&nan, d.dtype)));
}

TEST_P(HostDtype, states_its_precision) {
  const Definition d = GetParam();
  EXPECT_EQ(unit_roundoff(d.dtype), std::ldexp(1.0, -d.mantissa_bits - 1));
  EXPECT_EQ(smallest_positive(d.dtype), by_formula(1, d));
}

INSTANTIATE_TEST_SUITE_P(All, HostDtype, testing::ValuesIn(kDefinitions),
                         [](const auto& info) { return std::string(name(info.param.dtype)); });

TEST(host_dtype, no_double_rounding_through_f32) {
  // Just above the middle of 1 and the next bf16: rounding to f32 first would land on the middle, then go down to even.
  EXPECT_EQ(stored(DType::bf16, 1 + 0x1p-8 + 0x1p-40), 0x3F81u);
  EXPECT_EQ(stored(DType::f16, 1 + 0x1p-11 + 0x1p-40), 0x3C01u);
}

TEST(host_dtype, integers_round_and_saturate) {
  i32 i = 0;
  store_value(&i, DType::i32, 2.5);
  EXPECT_EQ(i, 2);
  store_value(&i, DType::i32, -1e20);
  EXPECT_EQ(i, std::numeric_limits<i32>::min());
  store_value(&i, DType::i32, std::nan(""));
  EXPECT_EQ(i, 0);
  u8 u = 0;
  store_value(&u, DType::u8, 300);
  EXPECT_EQ(u, 255);
  i8 s = 0;
  store_value(&s, DType::i8, -300);
  EXPECT_EQ(s, -128);
  EXPECT_EQ(load_value(&s, DType::i8), -128);
  store_value(&s, DType::i8, 126.5);
  EXPECT_EQ(s, 126);
  i64 l = 0;
  store_value(&l, DType::i64, 1e30);
  EXPECT_EQ(l, std::numeric_limits<i64>::max());
}

TEST(host_dtype, rows_follow_their_stride) {
  const std::vector<float> data = {1, 2, 3, 4, 5, 6};
  double out[3];
  read_row(data.data(), DType::f32, 3, 2, out);
  EXPECT_EQ(out[2], 5);
  TensorView v(const_cast<float*>(data.data()), DType::f32, {2, 3});
  const i64 index[] = {1, 1};
  EXPECT_EQ(load_element(v, index), 5);
  store_element(v, index, -1);
  EXPECT_EQ(data[4], -1);
}

}  // namespace
}  // namespace quern
