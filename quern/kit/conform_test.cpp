// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Every instruction against its specification, computed here in double or by plain indexing, in every world.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <map>

#include "quern/kit/conform/runner.h"

namespace quern::conform {
namespace {

INSTANTIATE_TEST_SUITE_P(Worlds, Conform, ::testing::ValuesIn(worlds(0)), world_name);

// ---- small formats, decoded by definition ---------------------------------------------------------------------------

struct Format {
  int exponent_bits, mantissa_bits, bias;
  bool infinities;  ///< the highest exponent holds infinities and NaN; else (e4m3) only the all-ones pattern is NaN
  bool saturates;
  u32 nan;
};
constexpr Format kBf16{8, 7, 127, true, false, 0x7fff}, kF16{5, 10, 15, true, false, 0x7fff};
constexpr Format kE4m3{4, 3, 7, false, true, 0x7f}, kE5m2{5, 2, 15, true, true, 0x7f};

double decode(const Format& f, u32 pattern) {
  const u32 mantissa = pattern & ((1u << f.mantissa_bits) - 1);
  const u32 exponent = pattern >> f.mantissa_bits & ((1u << f.exponent_bits) - 1);
  const bool top = exponent == (1u << f.exponent_bits) - 1;
  const double sign = pattern >> (f.mantissa_bits + f.exponent_bits) & 1 ? -1 : 1;
  if (f.infinities && top) return mantissa ? NAN : sign * INFINITY;
  if (!f.infinities && top && mantissa == (1u << f.mantissa_bits) - 1) return NAN;
  const double scale = std::ldexp(1.0, -f.mantissa_bits);
  if (exponent == 0) return sign * std::ldexp(mantissa * scale, 1 - f.bias);
  return sign * std::ldexp(1 + mantissa * scale, int(exponent) - f.bias);
}

/// Nearest pattern by search among all magnitudes; of two equally near the even one.
u32 encode(const Format& f, float x) {
  if (std::isnan(x)) return f.nan;
  static std::map<const Format*, std::vector<double>> tables;
  std::vector<double>& table = tables[&f];
  if (table.empty())
    for (u32 p = 0; std::isfinite(decode(f, p)) && p < 1u << (f.exponent_bits + f.mantissa_bits); ++p) table.push_back(decode(f, p));
  const double magnitude = std::fabs(double(x));
  const u32 sign = std::signbit(x) ? 1u << (f.exponent_bits + f.mantissa_bits) : 0;
  const u32 largest = u32(table.size()) - 1;
  if (magnitude > table[largest]) {
    // Halfway to the value that would follow rounds up: to infinity, or back when the format saturates.
    const double next = table[largest] + (table[largest] - table[largest - 1]);
    const bool over = magnitude >= (table[largest] + next) / 2;
    return sign | (over && !f.saturates ? largest + 1 : largest);
  }
  const u32 above = u32(std::lower_bound(table.begin(), table.end(), magnitude) - table.begin());
  if (table[above] == magnitude) return sign | above;
  const double down = magnitude - table[above - 1], up = table[above] - magnitude;
  return sign | (down < up || (down == up && above % 2 == 1) ? above - 1 : above);
}

float float_of(u32 bits) { return std::bit_cast<float>(bits); }
u32 bits_of(float x) { return std::bit_cast<u32>(x); }

/// Patterns of f32: every value of the small formats, the ties between them and the neighbours of both; all exponents
/// with chosen and random mantissas.
std::vector<u32> sample_f32() {
  std::vector<u32> out;
  for (const Format* f : {&kF16, &kE4m3, &kE5m2})
    for (u32 p = 0; p + 1 < 1u << (f->exponent_bits + f->mantissa_bits); p += f == &kF16 ? 7 : 1) {
      const double a = decode(*f, p), b = decode(*f, p + 1);
      if (!std::isfinite(a) || !std::isfinite(b)) continue;
      for (const double v : {a, (a + b) / 2})
        for (const i32 step : {-1, 0, 1})
          for (const u32 sign : {0u, 0x80000000u}) out.push_back((bits_of(float(v)) + u32(step)) ^ sign);
    }
  u64 random = 88172645463325252u;
  for (u32 exponent = 0; exponent < 256; ++exponent)
    for (u32 i = 0; i < 64; ++i) {
      random ^= random << 13, random ^= random >> 7, random ^= random << 17;
      const u32 chosen[] = {0, 1, 0x7fffff, 0x7fff, 0x8000, 0x8001, 0x17fff, 0x18000, 0x18001, 0x400000, 0x7f8000, 0x7f7fff};
      out.push_back(exponent << 23 | (i < 12 ? chosen[i] : u32(random) & 0x7fffff) | u32(random >> 40 & 1) << 31);
    }
  out.resize(out.size() / 2 * 2);
  return out;
}

TEST_P(Conform, narrow_rounds_to_nearest_even) {
  const std::vector<u32> in = sample_f32();
  std::vector<u32> out(4 * in.size());
  Kernel kernel(GetParam(), kernel_text("convert.cuh", "narrow", 128), 128, 0);
  kernel.config.grid[0] = 8;
  kernel.run(in, out, i32(in.size()));
  int wrong = 0;
  for (size_t i = 0; i < in.size() && wrong < 10; ++i) {
    const Format* const formats[] = {&kBf16, &kF16, &kE4m3, &kE5m2};
    for (int f = 0; f < 4; ++f) {
      const u32 expected = encode(*formats[f], float_of(in[i]));
      if (out[4 * i + f] == expected) continue;
      ++wrong;
      ADD_FAILURE() << "format " << f << " of " << std::hexfloat << float_of(in[i]) << std::hex << " (" << in[i] << ") is "
                    << out[4 * i + f] << ", expected " << expected;
    }
  }
}

TEST_P(Conform, narrow_pairs_agrees_with_single_conversions) {
  const std::vector<u32> in = sample_f32();
  const size_t n = in.size() / 2;
  std::vector<u32> out(4 * n);
  Kernel kernel(GetParam(), kernel_text("convert.cuh", "narrow_pairs", 128), 128, 0);
  kernel.config.grid[0] = 8;
  kernel.run(in, out, i32(n));
  int wrong = 0;
  for (size_t i = 0; i < n && wrong < 10; ++i) {
    const Format* const formats[] = {&kBf16, &kF16, &kE4m3, &kE5m2};
    for (int f = 0; f < 4; ++f) {
      const int bits = f < 2 ? 16 : 8;
      const u32 expected = encode(*formats[f], float_of(in[2 * i])) | encode(*formats[f], float_of(in[2 * i + 1])) << bits;
      if (out[4 * i + f] != expected) ++wrong;
      EXPECT_EQ(out[4 * i + f], expected) << "format " << f << " pair " << i;
    }
  }
}

TEST_P(Conform, widen_is_exact_for_every_pattern) {
  std::vector<u32> out(4 * 65536), in(1);
  Kernel kernel(GetParam(), kernel_text("convert.cuh", "widen_all", 128), 128, 0);
  kernel.config.grid[0] = 8;
  kernel.run(in, out, 65536);
  int wrong = 0;
  for (u32 i = 0; i < 65536 && wrong < 10; ++i) {
    const double expected[] = {decode(kBf16, i), decode(kF16, i), decode(kE4m3, i & 255), decode(kE5m2, i & 255)};
    for (int f = 0; f < 4; ++f) {
      const float got = float_of(out[4 * i + f]);
      // bf16 is widened by a shift and keeps a NaN's payload; cvt makes the others canonical.
      const u32 nan = f == 0 ? i << 16 : 0x7fffffff;
      const bool right = out[4 * i + f] == (std::isnan(expected[f]) ? nan : bits_of(float(expected[f])));
      if (!right) ++wrong;
      EXPECT_TRUE(right) << "format " << f << " pattern " << std::hex << i << " is " << got << ", expected " << expected[f];
    }
  }
}

TEST_P(Conform, widen_pairs_is_exact) {
  std::vector<u32> out(8 * 65536), in(1);
  Kernel kernel(GetParam(), kernel_text("convert.cuh", "widen_pairs", 128), 128, 0);
  kernel.config.grid[0] = 4;
  kernel.run(in, out, 65536);
  int wrong = 0;
  for (u32 i = 0; i < 65536 && wrong < 10; ++i) {
    const u32 j = 65535 - i;
    const double expected[] = {decode(kBf16, i),       decode(kBf16, j),      decode(kF16, i),        decode(kF16, j),
                               decode(kE4m3, i & 255), decode(kE4m3, i >> 8), decode(kE5m2, i & 255), decode(kE5m2, i >> 8)};
    for (int f = 0; f < 8; ++f) {
      const u32 got = out[8 * i + f];
      const bool right = std::isnan(expected[f]) ? std::isnan(float_of(got)) : got == bits_of(float(expected[f]));
      if (!right) ++wrong;
      EXPECT_TRUE(right) << "value " << f << " of " << std::hex << i;
    }
  }
}

TEST_P(Conform, integers_of_a_byte_and_exponents) {
  std::vector<u32> in = sample_f32();
  for (int i = -1030; i <= 1030; ++i) in.push_back(bits_of(float(i) / 8));  // integers, ties, and what is beyond 127
  std::vector<u32> out(4 * in.size());
  Kernel kernel(GetParam(), kernel_text("convert.cuh", "narrow_to_s8_and_e8m0", 128), 128, 0);
  kernel.config.grid[0] = 8;
  kernel.run(in, out, i32(in.size()));
  int wrong = 0;
  for (size_t i = 0; i < in.size() && wrong < 10; ++i) {
    const float x = float_of(in[i]);
    const double integer = std::isnan(x) ? 0 : std::clamp(std::nearbyint(double(x)), -127.0, 127.0);
    int exponent = 0;
    const double mantissa = std::frexp(std::max(std::fabs(double(x)), 0x1p-126), &exponent);  // subnormals count as 2^-126
    const u32 power = !std::isfinite(x) ? 255 : x == 0 ? 0 : u32(std::min(exponent - (mantissa == 0.5) + 127, 255));
    const u32 byte = u32(i & 255);
    const u32 wide = byte == 255 ? 0x7fffffff : bits_of(float(std::ldexp(1.0, int(byte) - 127)));
    const bool right = out[4 * i] == u32(u8(int(integer))) && out[4 * i + 1] == power && out[4 * i + 2] == wide;
    if (!right) ++wrong;
    EXPECT_TRUE(right) << std::hexfloat << x << " gives " << std::hex << out[4 * i] << " and " << out[4 * i + 1] << ", byte " << byte
                       << " gives " << out[4 * i + 2] << "; expected " << u32(u8(int(integer))) << ", " << power << ", " << wide;
  }
}

TEST_P(Conform, f16_of_bytes_is_exact) {
  std::vector<u32> out(2 * 65536), in(1);
  Kernel kernel(GetParam(), kernel_text("convert.cuh", "f16_of_bytes", 128), 128, 0);
  kernel.config.grid[0] = 4;
  kernel.run(in, out, 65536);
  int wrong = 0;
  for (u32 i = 0; i < 65536 && wrong < 10; ++i) {
    const double expected[] = {decode(kE4m3, i & 255), decode(kE4m3, i >> 8), decode(kE5m2, i & 255), decode(kE5m2, i >> 8)};
    for (u32 f = 0; f < 4; ++f) {
      const double got = decode(kF16, out[2 * i + f / 2] >> 16 * (f % 2) & 0xffff), want = expected[f];
      const bool right = std::isnan(want) ? std::isnan(got) : got == want && std::signbit(got) == std::signbit(want);
      if (!right) ++wrong;
      EXPECT_TRUE(right) << "value " << f << " of " << std::hex << i;
    }
  }
}

// ---- warps ----------------------------------------------------------------------------------------------------------

TEST_P(Conform, warp_collectives) {
  std::vector<u32> in(32), out(18 * 32);
  for (u32 i = 0; i < 32; ++i) in[i] = 1000 + i * i * 7;
  Kernel kernel(GetParam(), kernel_text("warp.cuh", "warp_collectives", 32), 32, 0);
  kernel.run(in, out, 0);
  u32 odd = 0, low_twos = 0;
  for (u32 i = 0; i < 32; ++i) odd |= (in[i] & 1) << i;
  for (u32 i = 0; i < 16; ++i) low_twos |= (in[i] >> 1 & 1) << i;
  for (u32 i = 0; i < 32; ++i) {
    const u32 expected[] = {in[i ^ 1],
                            in[i ^ 21],
                            in[7],
                            in[(i * 5 + 3) % 32],
                            in[i < 3 ? i : i - 3],
                            in[i + 9 > 31 ? i : i + 9],
                            in[i ^ 2],
                            in[i / 8 * 8 + 5],
                            in[i % 4 < 2 ? i : i - 2],
                            in[i % 16 + 5 > 15 ? i : i + 5],
                            in[i ^ 16],
                            in[i == 31 ? i : i + 1],
                            odd,
                            0,
                            1,
                            i,
                            0,
                            i < 16 ? low_twos : in[i ^ 1]};
    for (int k = 0; k < 18; ++k) EXPECT_EQ(out[32 * k + i], expected[k]) << "collective " << k << " lane " << i;
  }
}

// ---- matrices -------------------------------------------------------------------------------------------------------

TEST_P(Conform, ldmatrix_layouts) {
  std::vector<u16> in(4 * 64);
  for (u32 i = 0; i < in.size(); ++i) in[i] = u16(i * 257 + 3);
  std::vector<u32> out(14 * 32);
  Kernel kernel(GetParam(), kernel_text("matrix.cuh", "ldmatrix_all", 32), 32, 512);
  kernel.run(in, out, 0);
  const auto element = [&](int matrix, u32 row, u32 column) { return u32(in[u32(matrix) * 64 + row * 8 + column]); };
  const int matrices[] = {0, 0, 1, 0, 1, 2, 3};
  for (int k = 0; k < 14; ++k)
    for (u32 lane = 0; lane < 32; ++lane) {
      const int m = matrices[k % 7];
      const u32 major = lane / 4, minor = lane % 4 * 2;
      const u32 expected = k < 7 ? element(m, major, minor) | element(m, major, minor + 1) << 16
                                 : element(m, minor, major) | element(m, minor + 1, major) << 16;
      EXPECT_EQ(out[32 * k + lane], expected) << "register " << k << " lane " << lane;
    }
}

void check_mma(const World& world, int k, bool is_bf16) {
  const Format& format = is_bf16 ? kBf16 : kF16;
  std::vector<u16> in(24 * k + 256);
  std::vector<double> a(16 * k), b(8 * k), c(128);
  // Small integers: every product and sum is exact in any order.
  for (int i = 0; i < 16 * k; ++i) in[i] = u16(encode(format, float(a[i] = (i * 37 + i / 7) % 61 - 30)));
  for (int i = 0; i < 8 * k; ++i) in[16 * k + i] = u16(encode(format, float(b[i] = (i * 53 + i / 5) % 43 - 21)));
  for (int i = 0; i < 128; ++i) {
    const float value = float(c[i] = i * 5 - 300);
    std::memcpy(&in[24 * k + 2 * i], &value, 4);
  }
  std::vector<float> out(128);
  Kernel kernel(world, kernel_text("matrix.cuh", "mma<" + std::to_string(k) + (is_bf16 ? ", true>" : ", false>"), 32), 32, 0);
  kernel.run(in, out, 0);
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 8; ++column) {
      double sum = c[row * 8 + column];
      for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * 8 + column];
      EXPECT_EQ(out[row * 8 + column], sum) << row << ", " << column;
    }
}
TEST_P(Conform, mma_m16n8k16_bf16) { check_mma(GetParam(), 16, true); }
TEST_P(Conform, mma_m16n8k16_f16) { check_mma(GetParam(), 16, false); }
TEST_P(Conform, mma_m16n8k8_bf16) { check_mma(GetParam(), 8, true); }
TEST_P(Conform, mma_m16n8k8_f16) { check_mma(GetParam(), 8, false); }

// ---- memory ---------------------------------------------------------------------------------------------------------

TEST_P(Conform, accesses_of_every_size_and_policy) {
  std::vector<u8> in(4096);
  for (size_t i = 0; i < in.size(); ++i) in[i] = u8(i * 31 + i / 256);
  std::vector<u8> out(6 * 3 * in.size(), 0xa5);
  Kernel kernel(GetParam(), kernel_text("memory.cuh", "copies_of_every_size", 64), 64, 4096);
  kernel.run(in, out, i32(in.size()));
  for (size_t i = 0; i < out.size(); ++i)
    ASSERT_EQ(out[i], in[i % in.size()]) << "type " << i / (3 * in.size()) << " byte " << i % (3 * in.size());
}

TEST_P(Conform, cp_async_fills_with_zeros) {
  std::vector<u8> in(512);
  for (size_t i = 0; i < in.size(); ++i) in[i] = u8(i * 7 + 1);
  Kernel kernel(GetParam(), kernel_text("memory.cuh", "cp_async_all", 32), 32, 1536);
  kernel.under_every_policy([&] {
    std::vector<u8> out(32 * 44, 0xa5);
    kernel.run(in, out, 0);
    for (u32 t = 0; t < 32; ++t)
      for (u32 i = 0; i < 44; ++i) {
        const u32 at = i < 16 ? i : i < 24 ? i - 16 : i < 28 ? i - 24 : i - 28;
        const bool read = i >= 28 || at < t % 17;
        ASSERT_EQ(out[44 * t + i], read ? in[16 * t + at] : 0) << "thread " << t << " byte " << i;
      }
  });
}

TEST_P(Conform, atomics) {
  std::vector<u32> in(1), out(10);
  Kernel kernel(GetParam(), kernel_text("memory.cuh", "atomics_all", 64), 64, 0);
  kernel.config.grid[0] = 8;
  kernel.run(in, out, 0);
  const u32 threads = 8 * 64;
  EXPECT_EQ(out[0], 3 * threads);
  EXPECT_EQ(i32(out[1]), -2 * i32(threads));
  EXPECT_EQ(float_of(out[2]), 0.5f * threads);
  EXPECT_EQ(out[3], threads - 1);
  EXPECT_EQ(i32(out[4]), -i32(threads - 1));
  EXPECT_EQ(out[5], threads);
  EXPECT_EQ(out[6] | u64(out[7]) << 32, u64(threads) << 31);
  EXPECT_EQ(out[9], threads);
}

TEST_P(Conform, atomics_in_shared_memory) {
  std::vector<u32> in(1), out(66, 77);
  Kernel kernel(GetParam(), kernel_text("memory.cuh", "atomics_shared", 64), 64, 8);
  kernel.run(in, out, 0);
  EXPECT_EQ(out[0], 63 * 64 / 2 - 64u);
  EXPECT_EQ(out[1], 3 * 64u);
  std::sort(out.begin() + 2, out.end());
  for (u32 i = 0; i < 64; ++i) EXPECT_EQ(out[2 + i], 3 * i);
}

TEST_P(Conform, atomics_of_every_order) {
  std::vector<u32> in(1), out(16 + 2 * 64);
  Kernel kernel(GetParam(), kernel_text("memory.cuh", "atomics_by_order", 64), 64, 0);
  kernel.run(in, out, 0);
  EXPECT_EQ(out[0], 64u);
  EXPECT_EQ(out[1], 2 * 64u);
  EXPECT_EQ(out[2], 3 * 64u);
  EXPECT_EQ(out[3], 4 * 64u);
  EXPECT_EQ(float_of(out[4]), 16.0f);
  EXPECT_EQ(out[9], 77u);
  EXPECT_EQ(out[12], 99u);
  EXPECT_EQ(out[13], 1u);
  // Each value is handed on once: 0, which lay there, and all but the last.
  std::vector<u32> seen(out.begin() + 16, out.begin() + 16 + 64);
  seen.push_back(out[5]);
  std::sort(seen.begin(), seen.end());
  for (u32 t = 0; t <= 64; ++t) EXPECT_EQ(seen[t], t);
  u32 winners = 0;
  for (u32 t = 0; t < 64; ++t) {
    const u32 before = out[16 + 64 + t];
    winners += before == 0;
    EXPECT_EQ(before, t + 1 == out[6] ? 0 : out[6]) << t;
  }
  EXPECT_EQ(winners, 1u);
}

TEST_P(Conform, more_arithmetic) {
  std::vector<float> in;
  for (int i = -12; i <= 12; ++i) in.push_back(float(i) * 0.25f);  // within pi, where sin.approx has its bound
  std::vector<float> out(6 * in.size(), NAN);
  Kernel kernel(GetParam(), kernel_text("memory.cuh", "math_more", 64), 64, 0);
  kernel.run(in, out, i32(in.size()));
  for (size_t i = 0; i < in.size(); ++i) {
    const float* got = &out[6 * i];
    EXPECT_EQ(got[0], in[i] > 1.5f ? in[i] : 1.5f);
    EXPECT_EQ(got[1], in[i] < 1.5f ? in[i] : 1.5f);
    EXPECT_FLOAT_EQ(got[2], float(double(in[i]) / 3));
    EXPECT_EQ(got[3], float(std::nearbyint(double(in[i]))));
    EXPECT_NEAR(got[4], std::sin(double(in[i])), 0x1p-20);
    EXPECT_NEAR(got[5], std::cos(double(in[i])), 0x1p-20);
  }
}

TEST_P(Conform, extremes) {
  std::vector<float> in = {NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 1.0f, 2.0f, -3.0f, 0x1p-126f, 0x1p-130f, FLT_MAX, 448.0f};
  for (const float power : {0x1p-20f, 0x1p0f, 0x1p17f})
    for (const float side : {0.0f, 2.0f}) in.push_back(std::nextafter(power, side * power));
  std::vector<float> out(6 * in.size(), -1.0f);
  Kernel kernel(GetParam(), kernel_text("memory.cuh", "math_extremes", 64), 64, 0);
  kernel.run(in, out, i32(in.size()));
  for (size_t i = 0; i < in.size(); ++i) {
    const float* got = &out[6 * i];
    const bool nan = std::isnan(in[i]);
    EXPECT_EQ(got[0], in[i] > 1.5f ? in[i] : 1.5f);
    EXPECT_EQ(got[1], in[i] < 1.5f ? in[i] : 1.5f);
    EXPECT_EQ(got[5], got[0]);
    for (const float kept : {got[2], got[3]}) EXPECT_TRUE(nan ? std::isnan(kept) : kept == got[0]) << in[i];
    const double x = std::fabs(double(in[i]));
    int exponent = 0;
    const bool whole = std::frexp(x, &exponent) == 0.5;
    const double above = x == 0 || std::isinf(x) ? x : std::fmax(0x1p-126, std::ldexp(1.0, whole ? exponent - 1 : exponent));
    EXPECT_TRUE(nan ? std::isnan(got[4]) : double(got[4]) == (above > FLT_MAX ? HUGE_VAL : above)) << in[i] << " gave " << got[4];
  }
}

TEST_P(Conform, blocks_that_wait_for_each_other_are_resident_together) {
  std::vector<u32> in(1), out(17);
  Kernel kernel(GetParam(), kernel_text("memory.cuh", "token_ring", 32), 32, 0);
  kernel.config.grid[0] = 16;
  kernel.run(in, out, 0);
  EXPECT_EQ(out[0], 16u);
  for (u32 i = 0; i < 16; ++i) EXPECT_EQ(out[1 + i], 15 - i);
}

TEST_P(Conform, barriers) {
  std::vector<u32> in(1), out(256);
  Kernel kernel(GetParam(), kernel_text("memory.cuh", "barriers_all", 256), 256, 1024);
  kernel.run(in, out, 0);
  for (u32 t = 0; t < 256; ++t) EXPECT_EQ(out[t], t < 128 ? 2u : t - 128 + 7) << t;
}

TEST_P(Conform, approximations_are_near) {
  std::vector<float> in;
  for (int i = -60; i <= 60; ++i) in.push_back(float(i) * 0.37f + 0.01f);
  std::vector<float> out(9 * in.size());
  Kernel kernel(GetParam(), kernel_text("memory.cuh", "math_all", 64), 64, 0);
  kernel.run(in, out, i32(in.size()));
  for (size_t i = 0; i < in.size(); ++i) {
    const double x = in[i], m = std::fabs(x);
    const double expected[] = {std::exp2(x), std::log2(m), 1 / x,       1 / std::sqrt(m), std::tanh(x),
                               std::sqrt(m), std::sin(x),  std::cos(x), x * x + 1};
    for (int k = 0; k < 9; ++k) {
      const double tolerance = k == 4 ? 6e-4 : 2e-6;  // tanh.approx: relative error 2^-11
      EXPECT_NEAR(out[9 * i + k], expected[k], tolerance * std::max(1.0, std::fabs(expected[k]))) << k << " of " << x;
    }
  }
}

/// Within the errors that kit/activation.cuh states; gelu also relative to itself, down to 6e-9. NaN stays NaN.
TEST_P(Conform, activations) {
  std::vector<float> in = {0, NAN, INFINITY, -80, -100, 1e4f, -1e4f, 3e38f, -3e38f};
  for (int i = -1600; i <= 1600; ++i) in.push_back(float(i) * 0.01f + 0.0037f);
  std::vector<float> out(4 * in.size(), NAN);
  Kernel kernel(GetParam(), kernel_text("activation.cuh", "activations_all", 64), 64, 0);
  kernel.run(in, out, i32(in.size()));
  for (size_t i = 0; i < in.size(); ++i) {
    const double x = in[i], gelu = x * std::erfc(-x / std::sqrt(2.0)) / 2, silu = x / (1 + std::exp(-x));
    const double expected[] = {x, x < 0 ? 0 : x, gelu, silu}, tolerance[] = {0, 0, 8 * 0x1p-24, 6 * 0x1p-24};
    for (int k = 0; k < 4; ++k) {
      const double got = out[4 * i + size_t(k)];
      if (!std::isfinite(x)) {
        EXPECT_TRUE(std::isnan(x) ? std::isnan(got) : got == x) << k << " of " << x;
        continue;
      }
      EXPECT_LE(std::fabs(got - expected[k]), tolerance[k] * std::fabs(x)) << k << " of " << x << " is " << got;
    }
    if (x > -6 && x < 0) { EXPECT_LE(std::fabs(out[4 * i + 2] / gelu - 1), 4e-4) << x; }
  }
}

/// The relative error that kit/tanh.cuh states, from 1e-30 to where it is 1; NaN stays NaN.
TEST_P(Conform, accurate_tanh_has_a_relative_error) {
  std::vector<float> in = {NAN, INFINITY, -INFINITY, 0.f, 0.55f, std::nextafter(0.55f, 0.f), 3e38f, -3e38f};
  for (float x = 1e-30f; x < 30; x *= x < 0.01f ? 1.7f : 1.003f) in.push_back(x), in.push_back(-x);
  std::vector<float> out(in.size(), NAN);
  Kernel kernel(GetParam(), kernel_text("activation.cuh", "tanh_all", 64), 64, 0);
  kernel.run(in, out, i32(in.size()));
  for (size_t i = 0; i < in.size(); ++i) {
    const double expected = std::tanh(double(in[i]));
    if (std::isnan(expected)) EXPECT_TRUE(std::isnan(out[i]));
    else EXPECT_LE(std::fabs(double(out[i]) - expected), std::exp2(-20.9) * std::fabs(expected)) << in[i] << " is " << out[i];
  }
}

}  // namespace
}  // namespace quern::conform
