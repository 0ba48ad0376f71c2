// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Warpgroups: wgmma with its layouts and types, stmatrix, elect, register exchange. The operands' images are laid out here,
// chunk by chunk, from the drawings of the PTX ISA (9.7.15.5.1.2), not by the kit.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>

#include "quern/kit/conform/runner.h"

namespace quern::conform {
namespace {

class Warpgroups : public Conform {
 protected:
  void SetUp() override {
    if (GetParam().compiler.empty() && device_of({DeviceType::cuda, 0}).info().arch.number != 90) GTEST_SKIP() << "needs a GPU of sm_90";
  }
};
INSTANTIATE_TEST_SUITE_P(Worlds, Warpgroups, ::testing::ValuesIn(worlds(0)), world_name);

std::string text_of(const std::string& function, u32 threads = 128) { return kernel_text("wgmma.cuh", function, threads); }

// ---- small formats --------------------------------------------------------------------------------------------------

/// Small integers are exact in every format; patterns by search through the format's values.
struct Type {
  const char* name;
  int bytes, exponent_bits, mantissa_bits, bias;
};
constexpr Type kBf16{"bf16", 2, 8, 7, 127}, kF16{"f16", 2, 5, 10, 15}, kE4m3{"e4m3", 1, 4, 3, 7}, kE5m2{"e5m2", 1, 5, 2, 15};

double value_of(const Type& t, u32 pattern) {
  const u32 mantissa = pattern & ((1u << t.mantissa_bits) - 1), exponent = pattern >> t.mantissa_bits & ((1u << t.exponent_bits) - 1);
  const double sign = pattern >> (t.mantissa_bits + t.exponent_bits) & 1 ? -1 : 1;
  const double fraction = std::ldexp(double(mantissa), -t.mantissa_bits);
  return sign * (exponent ? std::ldexp(1 + fraction, int(exponent) - t.bias) : std::ldexp(fraction, 1 - t.bias));
}
/// By search through the format's values; each found once.
u32 pattern_of(const Type& t, int value) {
  static std::map<std::pair<std::string, int>, u32> known;
  const auto [place, is_new] = known.try_emplace({t.name, value});
  if (!is_new) return place->second;
  const u32 sign = value < 0 ? 1u << (t.mantissa_bits + t.exponent_bits) : 0;
  for (u32 pattern = 0; pattern < 1u << (t.mantissa_bits + t.exponent_bits); ++pattern)
    if (value_of(t, pattern) == std::abs(value)) return place->second = sign | pattern;
  ADD_FAILURE() << value << " is no " << t.name;
  return 0;
}

// ---- images ---------------------------------------------------------------------------------------------------------

struct OperandPlace {
  u32 offset, swizzle, stride_mn, stride_k, base_offset, advance;
};
struct ProductHeader {
  OperandPlace a{}, b{};
  u32 image_bytes = 0, steps = 1, add = 1, unused = 0;
};

/// An operand of `rows` rows and K bytes of K, K-major: atoms of 8 rows of w bytes. In an atom of 8 rows the 16-byte chunk c
/// of row r lies in row r at place c ^ (r / (8 / (w / 16))), as the drawings have it.
void lay_k_major(std::vector<u8>& image, const OperandPlace& at, u32 rows, u32 k_bytes, const std::function<u8(u32, u32)>& byte) {
  const u32 w = 16u << at.swizzle, chunks = w / 16;
  for (u32 row = 0; row < rows; ++row)
    for (u32 k = 0; k < k_bytes; ++k) {
      const u32 column_block = k / w, chunk = k % w / 16;
      const u32 place = chunk ^ (row % 8 / (8 / chunks));
      const u32 in_block = row / 8 * at.stride_mn + row % 8 * w + (at.swizzle ? place : chunk) * 16 + k % 16;
      image.at(at.offset + column_block * at.stride_k + in_block) = byte(row, k);
    }
}
/// MN-major, 16 bits: atoms of 8 values of k, each w bytes along M or N. Row k of an atom is exchanged as above.
void lay_mn_major(std::vector<u8>& image, const OperandPlace& at, u32 rows, u32 k_bytes, const std::function<u8(u32, u32)>& byte) {
  const u32 w = 16u << at.swizzle, chunks = w / 16, elements = w / 2;
  for (u32 mn = 0; mn < rows; ++mn)
    for (u32 k = 0; k < k_bytes / 2; ++k)
      for (u32 half = 0; half < 2; ++half) {
        const u32 chunk = mn % elements / 8, place = at.swizzle ? chunk ^ (k % 8 / (8 / chunks)) : chunk;
        const u32 in_atom = k % 8 * w + place * 16 + mn % 8 * 2 + half;
        image.at(at.offset + mn / elements * at.stride_mn + k / 8 * at.stride_k + in_atom) = byte(mn, 2 * k + half);
      }
}

/// One product: operands of small integers, their image, and what must come out.
struct Product {
  Type a = kBf16, b = kBf16;
  u32 n = 64, steps = 1;
  bool a_mn = false, b_mn = false, add = true;
  double sign = 1;
  OperandPlace place_a{}, place_b{};
  int magnitude = 7;

  u32 k() const { return 32 * steps / u32(a.bytes); }
  int a_at(u32 row, u32 i) const { return int((row * 37 + i * 11 + row * i) % u32(2 * magnitude + 1)) - magnitude; }
  int b_at(u32 row, u32 i) const { return int((row * 29 + i * 7 + row * i * 3 + 5) % u32(2 * magnitude + 1)) - magnitude; }
  double c_at(u32 row, u32 column) const { return double((row * 5 + column * 3) % 61) - 30; }

  static u8 byte_of(const Type& t, int value, u32 at) { return u8(pattern_of(t, value) >> (8 * at)); }
  std::vector<u8> input() const {
    const auto bytes_of = [](const Type& t, auto at) {
      return [=](u32 row, u32 k) { return byte_of(t, at(row, k / u32(t.bytes)), k % u32(t.bytes)); };
    };
    const auto byte_a = bytes_of(a, [this](u32 r, u32 i) { return a_at(r, i); });
    const auto byte_b = bytes_of(b, [this](u32 r, u32 i) { return b_at(r, i); });
    ProductHeader header{place_a, place_b, image_bytes, steps, add, 0};
    std::vector<u8> image(image_bytes, 0xff);
    (a_mn ? lay_mn_major : lay_k_major)(image, place_a, 64, 32 * steps, byte_a);
    (b_mn ? lay_mn_major : lay_k_major)(image, place_b, n, 32 * steps, byte_b);
    std::vector<u8> in(sizeof(header) + image.size());
    std::memcpy(in.data(), &header, sizeof(header));
    std::memcpy(in.data() + sizeof(header), image.data(), image.size());
    for (u32 row = 0; row < 64; ++row)
      for (u32 column = 0; column < n; ++column) {
        const float value = float(c_at(row, column));
        const u8* bytes = reinterpret_cast<const u8*>(&value);
        in.insert(in.end(), bytes, bytes + 4);
      }
    for (u32 row = 0; row < 64; ++row)
      for (u32 i = 0; i < 32 * steps; ++i) in.push_back(byte_a(row, i));
    return in;
  }
  void check(Kernel& kernel, i32 which, const std::string& what) const {
    std::vector<float> out(64 * n, NAN);
    kernel.run(input(), out, which);
    int wrong = 0;
    for (u32 row = 0; row < 64; ++row)
      for (u32 column = 0; column < n; ++column) {
        double sum = 0;
        for (u32 i = 0; i < k(); ++i) sum += a_at(row, i) * b_at(column, i);
        const double expected = sign * sum + (add ? c_at(row, column) : 0);
        if (out[row * n + column] == expected || ++wrong > 3) continue;
        ADD_FAILURE() << what << ": [" << row << ", " << column << "] is " << out[row * n + column] << ", expected " << expected;
      }
    EXPECT_EQ(wrong, 0) << what;
  }
  u32 image_bytes = 0;
};

/// The usual tiles behind each other: rows of 128 bytes of K, exchanged.
Product usual(u32 n, u32 steps = 4) {
  Product product;
  product.n = n, product.steps = steps;
  product.place_a = {0, u32(Swizzle::b128), 1024, 16, 0, 32};
  product.place_b = {64 * 128, u32(Swizzle::b128), 1024, 16, 0, 32};
  product.image_bytes = (64 + n) * 128;
  return product;
}

// ---- wgmma ----------------------------------------------------------------------------------------------------------

TEST_P(Warpgroups, wgmma_of_every_n) {
  const EmulatedOptions& options = GetParam().options;
  for (const auto& [first, last] : {std::pair{8, 64}, std::pair{72, 160}, std::pair{168, 256}}) {
    // A sample has the narrow ones checked and assembled, which takes 0.6 s a wide one, and the wide ones with asan; plain and
    // on a GPU all.
    if (!full_sweep() && ((options.checked && first > 8) || (options.asan && last < 256))) continue;
    Kernel kernel(GetParam(),
                  text_of("product_of_every_n<quern::bf16, quern::bf16, " + std::to_string(first) + ", " + std::to_string(last) + ">"), 128,
                  (64 + u32(last)) * 128, {}, full_sweep() || first == 8);
    for (int n = first; n <= last; n += 8) {
      Product product = usual(u32(n));
      product.add = n % 16 == 0;
      product.check(kernel, n, "n = " + std::to_string(n));
    }
  }
}

/// K-major: groups of 8 rows at a distance of their own. Without swizzle the halves of 32 bytes have one too.
OperandPlace k_major_place(u32 offset, Swizzle swizzle, u32 rows) {
  const u32 w = 16u << int(swizzle);
  if (swizzle == Swizzle::none) return {offset, 0, 256, rows / 8 * 256 + 16, 0, 2 * (rows / 8 * 256 + 16)};
  return {offset, u32(swizzle), 16 * w, 16, 0, 32};
}
/// MN-major; the groups of k next to each other, or those of M or N.
OperandPlace mn_major_place(u32 offset, Swizzle swizzle, u32 rows, u32 steps, bool k_first) {
  const u32 w = 16u << int(swizzle), atom = 8 * w, across = rows * 2 / w, groups = 2 * steps;
  const u32 stride_mn = k_first ? groups * atom : atom, stride_k = k_first ? atom : across * atom;
  return {offset, u32(swizzle), stride_mn, stride_k, 0, 2 * stride_k};
}

TEST_P(Warpgroups, wgmma_finds_operands_of_every_layout) {
  Kernel kernel(GetParam(), text_of("product_of_every_major"), 128, 64 << 10);
  for (int which = 0; which < 5; ++which)
    for (const Swizzle swizzle_a : {Swizzle::none, Swizzle::b32, Swizzle::b64, Swizzle::b128})
      for (const Swizzle swizzle_b : {Swizzle::none, Swizzle::b32, Swizzle::b64, Swizzle::b128}) {
        if (which == 4 && swizzle_a != Swizzle::none) continue;
        Product product;
        product.a_mn = which == 1 || which == 3;
        product.b_mn = which >= 2;
        // As many steps as 128 bytes of K, or an atom's width, hold.
        const auto most = [](bool mn, Swizzle s) { return mn || s == Swizzle::none ? 4u : (16u << int(s)) / 32; };
        product.steps = min_of(most(product.a_mn, swizzle_a), most(product.b_mn, swizzle_b));
        const bool k_first = int(swizzle_a) % 2 == int(swizzle_b) / 2;
        product.place_a = product.a_mn ? mn_major_place(1024, swizzle_a, 64, product.steps, k_first) : k_major_place(1024, swizzle_a, 64);
        product.place_b =
            product.b_mn ? mn_major_place(32 << 10, swizzle_b, 64, product.steps, !k_first) : k_major_place(32 << 10, swizzle_b, 64);
        product.image_bytes = 64 << 10;
        product.check(
            kernel, which,
            "majors " + std::to_string(which) + " swizzles " + std::to_string(int(swizzle_a)) + ", " + std::to_string(int(swizzle_b)));
      }
}

/// Atoms that begin at odd multiples of 128: the pattern begins there, and the base offset says so.
TEST_P(Warpgroups, wgmma_base_offset) {
  Kernel kernel(GetParam(), text_of("product_of_every_major"), 128, 64 << 10);
  for (const Swizzle swizzle : {Swizzle::b32, Swizzle::b64, Swizzle::b128})
    for (const u32 base : {1u, 3u, 6u}) {
      Product product;
      product.place_a = {128 * base, u32(swizzle), 8 * (16u << int(swizzle)), 16, base, 32};
      product.place_b = k_major_place(32 << 10, swizzle, 64);
      product.steps = (16u << int(swizzle)) / 32;
      product.image_bytes = 64 << 10;
      product.check(kernel, 0, "swizzle " + std::to_string(int(swizzle)) + " base offset " + std::to_string(base));
    }
}

void check_types(const World& world, const char* function, u32 n) {
  Kernel kernel(world, text_of(function), 128, (64 + n) * 128);
  const std::pair<Type, Type> types[] = {{kBf16, kBf16}, {kF16, kF16},   {kF16, kF16},   {kE4m3, kE4m3},
                                         {kE4m3, kE5m2}, {kE5m2, kE4m3}, {kE5m2, kE5m2}, {kE4m3, kE4m3}};
  for (int which = 0; which < 8; ++which)
    for (const bool add : {false, true}) {
      Product product = usual(n);
      std::tie(product.a, product.b) = types[which];
      product.add = add;
      product.magnitude = 4;  // 2 fraction bits; and no sum needs more than the 11 of f16
      product.check(kernel, which, std::string(function) + " of types " + std::to_string(which));
    }
}
TEST_P(Warpgroups, wgmma_of_every_type) { check_types(GetParam(), "product_of_every_type_shared", 48); }
TEST_P(Warpgroups, wgmma_with_a_from_registers) { check_types(GetParam(), "product_of_every_type_registers", 80); }

TEST_P(Warpgroups, wgmma_negates) {
  Kernel kernel(GetParam(), text_of("product_negated"), 128, 80 * 128);
  for (const int which : {0, 1, 3}) {
    Product product = usual(16);
    product.a = product.b = which == 0 ? kBf16 : which == 1 ? kF16 : kE4m3;
    product.magnitude = 4;
    product.sign = which == 3 ? 1 : -1;
    product.check(kernel, which, "negated " + std::to_string(which));
  }
}

TEST_P(Warpgroups, wgmma_groups_in_flight) {
  Kernel kernel(GetParam(), text_of("product_pipeline", 256), 256, 96 * 128);
  const Product product = usual(32);
  kernel.under_every_policy([&] {
    for (const i32 warpgroup : {0, 1}) {
      std::vector<float> out(2 * 64 * 32, NAN);
      kernel.run(product.input(), out, warpgroup);
      for (u32 sum = 0; sum < 2; ++sum)
        for (u32 row = 0; row < 64; ++row)
          for (u32 column = 0; column < 32; ++column) {
            double expected = 0;
            for (u32 i = 0; i < 64; ++i)
              if (i / 16 % 2 == sum) expected += product.a_at(row, i) * product.b_at(column, i);
            ASSERT_EQ(out[(64 * sum + row) * 32 + column], expected) << sum << ", " << row << ", " << column;
          }
    }
  });
}

/// Of every kind of number, the same as mma.sync bit for bit: also those of proofs. Of small integers on a GPU too.
TEST_P(Warpgroups, wgmma_is_what_mma_is) {
  for (const Number number : {Number::real, Number::order_free, Number::tree}) {
    World world = GetParam();
    world.options.number = number;
    std::vector<u16> in(80 * 16);
    for (u32 i = 0; i < in.size(); ++i)
      in[i] = number == Number::real ? u16(pattern_of(kBf16, int(i * 37 % 31) - 15)) : u16(i * 1237 % 30011);
    std::vector<u32> out(3 * 1024, 0x7fffffff);
    Kernel kernel(world, text_of("wgmma_and_mma"), 128, 2560);
    kernel.run(in, out, 0);
    std::vector<u32> values(out.begin(), out.begin() + 1024);
    std::sort(values.begin(), values.end());
    EXPECT_GT(std::unique(values.begin(), values.end()) - values.begin(), 100) << int(number);
    for (u32 i = 0; i < 1024; ++i) {
      ASSERT_NE(out[i], 0x7fffffffu) << int(number) << " element " << i;
      ASSERT_EQ(out[i], out[2048 + i]) << int(number) << " element " << i;
      ASSERT_EQ(out[1024 + i], out[2048 + i]) << int(number) << " element " << i << ", A from registers";
    }
    if (world.compiler.empty() || world.options.checked || world.options.asan) break;  // numbers of proofs are emulated, without hooks
  }
}

// ---- FP8 ------------------------------------------------------------------------------------------------------------

double truncated(double x, int exponent) { return std::ldexp(std::trunc(std::ldexp(x, -exponent)), exponent); }

/// A chain of FP8 products as Hopper is said to add them: terms cut behind 13 bits below the largest exponent, and the sum
/// behind 13 fraction bits. *bound: what the cuts may amount to, all in one direction.
double modelled_chain(const std::vector<double>& a, const std::vector<double>& b, double* bound) {
  constexpr int kBits = 13;
  const auto exponent_of = [](double x) { return std::max(int(std::floor(std::log2(std::fabs(x)))), -6); };  // e4m3
  double sum = 0;
  *bound = 0;
  for (size_t first = 0; first < a.size(); first += 32) {
    int largest = sum == 0 ? -60 : int(std::floor(std::log2(std::fabs(sum))));
    for (size_t i = first; i < first + 32; ++i)
      if (a[i] != 0 && b[i] != 0) largest = std::max(largest, exponent_of(a[i]) + exponent_of(b[i]));
    double next = truncated(sum, largest - kBits);
    for (size_t i = first; i < first + 32; ++i) next += truncated(a[i] * b[i], largest - kBits);
    *bound += 33 * std::ldexp(1, largest - kBits);
    if (next != 0) {
      const int exponent = int(std::floor(std::log2(std::fabs(next))));
      next = truncated(next, exponent - kBits);
      *bound += std::ldexp(1, exponent - kBits);
    }
    sum = next;
  }
  return sum;
}

/// On the emulated device the model is met bit by bit. On a GPU both distances are measured and printed; it must be as near to
/// the exact sum as the model's cuts allow.
TEST_P(Warpgroups, fp8_sums_lose_bits) {
  constexpr u32 kSteps = 64, kRows = 64, kColumns = 16;
  std::vector<u8> in(2560 * kSteps);
  u64 random = 88172645463325252u;
  const auto next = [&] {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    // Exponents 3 to 10 of 15: products span 2^-8 to 2^7. Signs mostly plus, so that the sum grows beyond its terms.
    const u32 bits = u32(random >> 20);
    return u8((bits % 8 + 3) << 3 | (bits >> 8 & 7) | (bits >> 16) % 8 / 7 << 7);
  };
  std::vector<std::vector<double>> a(kRows, std::vector<double>(32 * kSteps)), b(kColumns, std::vector<double>(32 * kSteps));
  for (u32 step = 0; step < kSteps; ++step)
    for (u32 row = 0; row < kRows + kColumns; ++row)
      for (u32 k = 0; k < 32; ++k) {
        const u8 byte = next();
        const bool is_a = row < kRows;
        const u32 r = is_a ? row : row - kRows, half = is_a ? 1024 : 256;
        in[2560 * step + (is_a ? 0 : 2048) + k / 16 * half + r / 8 * 128 + r % 8 * 16 + k % 16] = byte;
        (is_a ? a : b)[r][32 * step + k] = value_of(kE4m3, byte);
      }
  std::vector<float> out(kRows * kColumns, NAN);
  Kernel kernel(GetParam(), text_of("fp8_chain"), 128, 2560);
  kernel.run(in, out, kSteps);
  double from_model = 0, from_exact = 0, model_from_exact = 0;
  for (u32 row = 0; row < kRows; ++row)
    for (u32 column = 0; column < kColumns; ++column) {
      double exact = 0, bound = 0;
      for (u32 i = 0; i < 32 * kSteps; ++i) exact += a[row][i] * b[column][i];
      const double model = modelled_chain(a[row], b[column], &bound), got = out[row * kColumns + column];
      from_model = std::max(from_model, std::fabs(got - model) / std::fabs(exact));
      from_exact = std::max(from_exact, std::fabs(got - exact) / std::fabs(exact));
      model_from_exact = std::max(model_from_exact, std::fabs(model - exact) / std::fabs(exact));
      ASSERT_TRUE(std::fabs(got - exact) <= bound) << row << ", " << column << " is " << got << ", exact " << exact << ", model " << model;
      ASSERT_TRUE(std::fabs(got - model) <= (GetParam().compiler.empty() ? bound : 0))
          << row << ", " << column << " is " << got << ", model " << model;
    }
  std::printf("fp8 sums of %u products: at most %.3g from the model, %.3g from exact (the model: %.3g), relative\n", 32 * kSteps,
              from_model, from_exact, model_from_exact);
  EXPECT_GT(model_from_exact, 0x1p-13);  // else the data shows nothing
}

// ---- beside wgmma ---------------------------------------------------------------------------------------------------

TEST_P(Warpgroups, stmatrix_layouts) {
  std::vector<u32> in(128), out(6 * 128);
  for (u32 i = 0; i < in.size(); ++i) in[i] = (i * 2654435761u) | 1;
  Kernel kernel(GetParam(), text_of("stmatrix_all", 32), 32, 3072);
  kernel.run(in, out, 0);
  const u32 matrices[] = {1, 2, 4};
  for (u32 kind = 0; kind < 6; ++kind)
    for (u32 i = 0; i < 256; ++i) {
      const u32 matrix = i / 64, row = i % 64 / 8, column = i % 8;
      // Lane t holds of a matrix row t / 4, columns 2 (t % 4) and the next; transposed, the same of its transpose.
      const u32 major = kind < 3 ? row : column, minor = kind < 3 ? column : row;
      const u32 word = in[4 * (4 * major + minor / 2) + matrix];
      const u32 expected = matrix < matrices[kind % 3] ? (minor % 2 ? word >> 16 : word & 0xffff) : 0;
      const u32 got = out[128 * kind + i / 2] >> (i % 2 * 16) & 0xffff;
      ASSERT_EQ(got, expected) << "kind " << kind << " matrix " << matrix << " row " << row << " column " << column;
    }
}

TEST_P(Warpgroups, elect_takes_one_lane) {
  std::vector<u32> in(1), out(96, 7);
  Kernel kernel(GetParam(), text_of("elect_all", 32), 32, 0);
  kernel.run(in, out, 0);
  EXPECT_EQ(std::count(out.begin(), out.begin() + 32, 1u), 1);
  EXPECT_EQ(std::count(out.begin(), out.begin() + 32, 0u), 31);
  EXPECT_TRUE(std::equal(out.begin(), out.begin() + 32, out.begin() + 32));
  EXPECT_EQ(std::count(out.begin() + 72, out.begin() + 88, 1u), 1);
  EXPECT_EQ(std::count(out.begin() + 72, out.begin() + 88, 0u), 15);
  EXPECT_EQ(std::count(out.begin() + 64, out.end(), 9u), 16);
}

TEST_P(Warpgroups, registers_move_between_warpgroups) {
  std::vector<u32> in(1), out(256);
  Kernel kernel(GetParam(), text_of("warpgroups_all", 384), 384, 1024);
  kernel.run(in, out, 0);
  for (u32 t = 0; t < 256; ++t) {
    const u32 from = (t % 128 + 77) % 128;
    EXPECT_EQ(out[t], 1000 * (t / 128) + from + 2 * (from / 32)) << t;
  }
}

// ---- what ptxas says ------------------------------------------------------------------------------------------------

TEST(warpgroup_kernels, compile_without_spills_and_serialised_products) {
  if (!jit::NvrtcCompiler::get(Arch{90, true})) GTEST_SKIP() << "needs NVRTC";
  const std::pair<const char*, u32> kernels[] = {{"product_of_every_n<quern::bf16, quern::bf16, 8, 64>", 128},
                                                 {"product_of_every_n<quern::bf16, quern::bf16, 168, 256>", 128},
                                                 {"product_of_every_major", 128},
                                                 {"product_of_every_type_shared", 128},
                                                 {"product_of_every_type_registers", 128},
                                                 {"product_negated", 128},
                                                 {"product_pipeline", 256},
                                                 {"fp8_chain", 128},
                                                 {"wgmma_and_mma", 128},
                                                 {"stmatrix_all", 32},
                                                 {"elect_all", 32},
                                                 {"warpgroups_all", 384}};
  for (const auto& [function, threads] : kernels) {
    const jit::CompileResult result = compile_gpu(text_of(function, threads), Arch{90, true});
    EXPECT_EQ(result.spill_bytes, 0) << function;
    EXPECT_EQ(result.stack_bytes, 0) << function;
    EXPECT_FALSE(result.serialised_wgmma) << result.log;
    EXPECT_FALSE(result.ignored_setmaxnreg) << result.log;
    EXPECT_TRUE(result.warnings.empty()) << result.log;
  }
}

}  // namespace
}  // namespace quern::conform
