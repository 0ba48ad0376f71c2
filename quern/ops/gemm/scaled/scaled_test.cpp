// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/gemm/scaled.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "quern/base/error.h"
#include "quern/device/emulated.h"
#include "quern/op/schema.h"
#include "quern/testing/case_args.h"

namespace quern::gemm {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// Views of a call that is never launched: m = 4, n = 300, k = 520, of which scales have 5 columns or 1.
struct Call {
  std::vector<u32> memory = std::vector<u32>(1 << 16);
  ScaledArgs args;
  Call() {
    args = {.out = view(DType::bf16, 4, 300),
            .a = view(DType::e4m3, 4, 520),
            .scales_a = view(DType::f32, 4, 5),
            .b = view(DType::e5m2, 300, 520),
            .scales_b = view(DType::f32, 3, 5)};
    args.out.data = memory.data() + (1 << 15) + (1 << 14);  // behind what the others have
  }
  TensorView view(DType dtype, i64 rows, i64 columns) { return TensorView(memory.data(), dtype, {rows, columns}); }
  void expect(ErrorKind kind, const char* text) const {
    try {
      bind(find_op("gemm.scaled"), &args, {});
      ADD_FAILURE() << "no error; expected: " << text;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), kind);
      EXPECT_STREQ(e.what(), text);
    }
  }
};

TEST(gemm_scaled, rejects_wrong_scales) {
  Call c;
  c.args.scales_a = c.view(DType::f32, 3, 5);
  c.expect(ErrorKind::value, "gemm.scaled: `scale_rows_a` is 3, expected 4 (m, one for each row of `a`) or 1");
  c = {};
  c.args.scales_a = c.view(DType::f32, 4, 4);
  c.expect(ErrorKind::value, "gemm.scaled: `scale_columns_a` is 4, expected 5 (ceil(k / 128)) or 1");
  c = {};
  c.args.scales_b = c.view(DType::f32, 2, 5);
  c.expect(ErrorKind::value, "gemm.scaled: `scale_rows_b` is 2, expected n, ceil(n / 128) or 1, where n is 300");
  c = {};
  c.args.scales_b = c.view(DType::f32, 3, 6);
  c.expect(ErrorKind::value, "gemm.scaled: `scale_columns_b` is 6, expected 5 (ceil(k / 128)) or 1");
  c = {};
  c.args.scales_a = TensorView();
  c.expect(ErrorKind::value, "gemm.scaled: `scales_a` is missing, expected a tensor [scale_rows_a scale_columns_a]");
}

/// wgmma has operands of 8 bits K-major only.
TEST(gemm_scaled, rejects_columns_that_are_dense) {
  Call c;
  c.args.a.strides[0] = 1, c.args.a.strides[1] = 16;
  c.expect(ErrorKind::value, "gemm.scaled: `a` has stride 16 at its last dim, expected 1 (dense rows)");
  c = {};
  c.args.b.strides[0] = 1, c.args.b.strides[1] = 304;
  c.expect(ErrorKind::value, "gemm.scaled: `b` has stride 304 at its last dim, expected 1 (dense rows)");
}

TEST(gemm_scaled, rejects_wrong_shapes_and_dtypes) {
  Call c;
  c.args.b = c.view(DType::e4m3, 300, 519);
  c.expect(ErrorKind::value, "gemm.scaled: `b` has shape [300, 519], expected k=520 at dim 1 (k was set by `a` [4, 520])");
  c = {};
  c.args.c = c.view(DType::f32, 5, 300);
  c.expect(ErrorKind::value, "gemm.scaled: `c` has shape [5, 300], expected m=4 at dim 0 (m was set by `a` [4, 520])");
  c = {};
  c.args.a.dtype = DType::bf16;
  c.expect(ErrorKind::type, "gemm.scaled: `a` is bf16, expected e4m3 or e5m2");
  c = {};
  c.args.scales_b.dtype = DType::bf16;
  c.expect(ErrorKind::type, "gemm.scaled: `scales_b` is bf16, expected f32");
  c = {};
  c.args.out.dtype = DType::f16;
  c.expect(ErrorKind::type, "gemm.scaled: `out` is f16, expected bf16 or f32");
}

/// Every granularity of both operands is bound.
TEST(gemm_scaled, takes_every_granularity) {
  for (const i64 rows_a : {4, 1})
    for (const i64 rows_b : {300, 3, 1})
      for (const i64 columns_a : {5, 1})
        for (const i64 columns_b : {5, 1}) {
          Call c;
          c.args.scales_a = c.view(DType::f32, rows_a, columns_a);
          c.args.scales_b = c.view(DType::f32, rows_b, columns_b);
          EXPECT_NO_THROW(bind(find_op("gemm.scaled"), &c.args, {})) << rows_a << " " << rows_b << " " << columns_a << " " << columns_b;
        }
}

std::string plan_text(const Case& which, const char* arch = "sm_80") {
  const Op& op = find_op("gemm.scaled");
  const Case full = quern::testing::derived(op, which);
  const quern::testing::ArgsStorage args = quern::testing::fake_args(op, full);
  const Plan plan = make_plan(op, bind(op, args.get(), quern::testing::options_of(op, full)), device_info_of(Arch::parse(arch)));
  return jit::print(plan.launches[0].spec) + " grid " + std::to_string(plan.launches[0].config.grid[0]);
}

/// m is no part of a kernel: a server of one weight meets at most eight.
TEST(gemm_scaled, few_kernels_serve_every_m) {
  const double shapes[][2] = {{2112, 7168}, {24576, 1536}, {32768, 512}, {7168, 16384}, {4096, 7168},
                              {7168, 2048}, {768, 7168},   {1536, 7168}, {2048, 7168},  {8192, 8192},
                              {2360, 7168}, {3344, 1024},  {3512, 7168}, {4000, 7168},  {27000, 512}};
  for (const auto& [n, k] : shapes)
    for (double recipe = 0; recipe < 4; ++recipe) {
      std::set<std::string> kernels;
      for (double m = 1; m <= 16384; m += m < 136 ? 1 : 97) {
        const std::string text = plan_text({{"m", m}, {"n", n}, {"k", k}, {"recipe", recipe}}, "sm_90a");
        kernels.insert(text.substr(0, text.find(" grid")));
      }
      EXPECT_LE(kernels.size(), 8u) << n << " x " << k << ": " << ::testing::PrintToString(kernels);
    }
}

/// Memory for a call on the emulated device, of numbers that no sum of f32 holds exactly.
struct Numbers {
  i64 rows = 70, n = 130, k = 1000;
  std::vector<u8> a, b;
  std::vector<float> scales_a, scales_b;
  Numbers() {
    Random random(7);
    for (i64 i = 0; i < rows * k; ++i) a.push_back(u8(0x20 + random.below(0x30) + 0x80 * random.below(2)));
    for (i64 i = 0; i < n * k; ++i) b.push_back(u8(0x20 + random.below(0x30) + 0x80 * random.below(2)));
    for (i64 i = 0; i < rows * 8; ++i) scales_a.push_back(float(1 + random.uniform() / 2));
    for (i64 i = 0; i < n * 8; ++i) scales_b.push_back(float(1 + random.uniform() / 2));
  }
  /// Bits of f32 rows [first, first + m) of out; the scales of a lie column by column.
  std::vector<u32> run(Device& device, i64 first, i64 m) {
    std::vector<u32> out(static_cast<size_t>(m * n));
    TensorView of_a(scales_a.data(), DType::f32, {rows, 8});
    of_a.strides[0] = 1, of_a.strides[1] = rows;
    scaled({.out = TensorView(out.data(), DType::f32, {m, n}),
            .a = TensorView(a.data() + first * k, DType::e4m3, {m, k}),
            .scales_a = of_a.slice(0, first, first + m),
            .b = TensorView(b.data(), DType::e4m3, {n, k}),
            .scales_b = TensorView(scales_b.data(), DType::f32, {n, 8})},
           {.device = &device});
    return out;
  }
};

/// Rows of both tiles, at every place of them.
TEST(gemm_scaled, rows_have_the_same_bits_for_every_m) {
  DeviceInfo info = device_info_of(Arch::parse("sm_90a"));
  info.emulated = 1;
  const auto device = make_emulated_device(info, emulated_options_from_env());
  Numbers numbers;
  const std::vector<u32> all = numbers.run(*device, 0, numbers.rows);
  for (const i64 m : {1, 15, 16, 17, 63, 64, 65}) {
    const i64 first = numbers.rows - m;
    const std::vector<u32> part = numbers.run(*device, first, m);
    EXPECT_EQ(std::memcmp(part.data(), all.data() + first * numbers.n, part.size() * 4), 0) << "m=" << m;
  }
}

/// Pairs of tiles, of which a block makes several and the last has one tile alone, with all that follows the sums: each row has the bits
/// that it has among few others. Scales as TMA takes them, as it does not, and of all of K.
TEST(gemm_scaled, pairs_of_tiles_give_the_bits_of_single_ones) {
  DeviceInfo info = device_info_of(Arch::parse("sm_90a"));
  info.emulated = 1;
  info.sms = 6;
  const auto device = make_emulated_device(info, emulated_options_from_env());
  const i64 m = 300, n = 5640, k = 288, blocks = 3, blocks_n = 45;
  Random random(9);
  std::vector<u8> a(size_t(m * k)), b(size_t(n * k));
  for (std::vector<u8>* of : {&a, &b})
    for (u8& x : *of) x = u8(0x20 + random.below(0x30) + 0x80 * random.below(2));
  std::vector<float> scales_a(size_t(m * blocks)), scales_b(n), bias(n), c(size_t(m * n));
  for (std::vector<float>* of : {&scales_a, &scales_b, &bias, &c})
    for (float& x : *of) x = float(1 + random.uniform());
  const Op& op = find_op("gemm.scaled");
  enum Scales { columns, rows_of_three, once };
  for (const Scales kind : {columns, rows_of_three, once})
    for (const bool more : {false, true}) {
      const auto args = [&](std::vector<float>& out, i64 first, i64 rows) {
        ScaledArgs call{.out = TensorView(out.data(), more ? DType::f32 : DType::bf16, {rows, n}),
                        .a = TensorView(a.data() + first * k, DType::e4m3, {rows, k}),
                        .scales_a = TensorView(scales_a.data() + (kind == rows_of_three ? first * blocks : first), DType::f32,
                                               {rows, kind == once ? 1 : blocks}),
                        .b = TensorView(b.data(), DType::e4m3, {n, k}),
                        .scales_b = TensorView(scales_b.data(), DType::f32, {kind == once ? n : blocks_n, kind == once ? 1 : blocks})};
        if (kind == columns) call.scales_a.strides[0] = 1, call.scales_a.strides[1] = m;
        if (more) call.bias = TensorView(bias.data(), DType::f32, {n}), call.c = TensorView(c.data() + first * n, DType::f32, {rows, n});
        return call;
      };
      const RunOptions options{.device = device.get(), .variant = "warp_specialised_sm90:128x192_pair"};
      std::vector<float> all(size_t(m * n), NAN);
      ScaledArgs whole = args(all, 0, m);
      const Plan plan = make_plan(op, bind(op, &whole, options), device->info());
      EXPECT_THAT(jit::print(plan.launches[0].spec), HasSubstr("pair=1"));
      scaled(whole, options);
      const i64 size = size_of(whole.out.dtype);
      for (const i64 first : {0, 64, 128, 170, 256}) {
        const i64 rows = min_of<i64>(m - first, 130);
        std::vector<float> part(size_t(rows * n), 0.f);  // other poison than that of `all`: what both leave out differs
        scaled(args(part, first, rows), options);
        EXPECT_EQ(std::memcmp(reinterpret_cast<const u8*>(all.data()) + first * n * size, part.data(), size_t(rows * n * size)), 0)
            << "rows from " << first << ", scales " << kind << ", c " << more;
      }
    }
}

/// Wide and tall tiles of which a block makes several, each from another stage of the ring on: each row has the bits that it has among few
/// others, whose tiles are of 128 x 128. Scales of each stage, and of all of K.
TEST(gemm_scaled, large_tiles_give_the_bits_of_smaller_ones) {
  DeviceInfo info = device_info_of(Arch::parse("sm_90a"));
  info.emulated = 1;
  info.sms = 6;
  const auto device = make_emulated_device(info, emulated_options_from_env());
  const i64 m = 8576, most_n = 256, k = 25 * 128 + 48, blocks = 26;
  Random random(11);
  std::vector<u8> a(size_t(m * k)), b(size_t(most_n * k));
  for (std::vector<u8>* of : {&a, &b})
    for (u8& x : *of) x = u8(0x20 + random.below(0x30) + 0x80 * random.below(2));
  std::vector<float> scales_a(size_t(m * blocks)), scales_b(size_t(most_n * blocks));
  for (std::vector<float>* of : {&scales_a, &scales_b})
    for (float& x : *of) x = float(1 + random.uniform());
  const Op& op = find_op("gemm.scaled");
  struct Tiles {
    bool all_of_k;
    i64 n;
    DType out;
    const char* tile;
    const char* name;
  };
  for (const Tiles& tiles : {Tiles{true, 192, DType::f32, "tile_m=128, tile_n=192", "128x192"},
                             Tiles{true, 176, DType::f32, "tile_m=128, tile_n=176", "128x176"},
                             Tiles{true, 256, DType::bf16, "tile_m=256, tile_n=128", "256x128"},
                             Tiles{false, 176, DType::bf16, "tile_m=128, tile_n=176", "128x176"},
                             Tiles{false, 256, DType::bf16, "tile_m=256, tile_n=128", "256x128"}}) {
    const i64 columns = tiles.all_of_k ? 1 : blocks, size = size_of(tiles.out);
    const auto tile_of = [&](std::vector<float>& out, i64 first, i64 rows, const char* name) {
      const std::string variant = std::string("warp_specialised_sm90:") + name;
      const RunOptions options{.device = device.get(), .variant = variant.c_str()};
      ScaledArgs args{.out = TensorView(out.data(), tiles.out, {rows, tiles.n}),
                      .a = TensorView(a.data() + first * k, DType::e4m3, {rows, k}),
                      .scales_a = TensorView(scales_a.data() + first * columns, DType::f32, {rows, columns}),
                      .b = TensorView(b.data(), DType::e4m3, {tiles.n, k}),
                      .scales_b = TensorView(scales_b.data(), DType::f32, {tiles.all_of_k ? tiles.n : 2, columns})};
      const std::string kernel = jit::print(make_plan(op, bind(op, &args, options), device->info()).launches[0].spec);
      scaled(args, options);
      return kernel;
    };
    std::vector<float> all(size_t(m * tiles.n), NAN);
    EXPECT_THAT(tile_of(all, 0, m, tiles.name),
                AllOf(HasSubstr(tiles.tile), HasSubstr(tiles.all_of_k ? "column_scales=1" : "column_scales=0")));
    for (const i64 first : {i64(0), i64(64), i64(4096), m - 130}) {
      std::vector<float> part(size_t(130 * tiles.n), 0.f);  // other poison than that of `all`
      EXPECT_THAT(tile_of(part, first, 130, "128x128"), HasSubstr("tile_m=128, tile_n=128"));
      EXPECT_EQ(std::memcmp(reinterpret_cast<const u8*>(all.data()) + first * tiles.n * size, part.data(), size_t(130 * tiles.n * size)), 0)
          << tiles.tile << ", scales of all of K " << tiles.all_of_k << ", rows from " << first;
    }
  }
}

/// Powers of two of the scales are exact, so the order of sums is seen: each group from zero, then groups ascending. Group 0 is
/// 2^24 in all, groups 1 and 2 are 1 each: ascending, each is lost; any other order keeps their 2.
TEST(gemm_scaled, groups_are_summed_in_ascending_order) {
  DeviceInfo info = device_info_of(Arch::parse("sm_90a"));
  info.emulated = 1;
  const auto device = make_emulated_device(info, emulated_options_from_env());
  std::vector<u8> a(384), b(384);
  a[0] = a[128] = a[256] = b[0] = b[128] = b[256] = 0x38;  // 1 as e4m3
  std::vector<float> scales_a = {0x1p24f, 1.f, 1.f}, scales_b = {1.f};
  float out = 0;
  scaled({.out = TensorView(&out, DType::f32, {1, 1}),
          .a = TensorView(a.data(), DType::e4m3, {1, 384}),
          .scales_a = TensorView(scales_a.data(), DType::f32, {1, 3}),
          .b = TensorView(b.data(), DType::e4m3, {1, 384}),
          .scales_b = TensorView(scales_b.data(), DType::f32, {1, 1})},
         {.device = device.get()});
  EXPECT_EQ(out, 0x1p24f);
  scales_a = {1.f, 1.f, 0x1p24f};
  scaled({.out = TensorView(&out, DType::f32, {1, 1}),
          .a = TensorView(a.data(), DType::e4m3, {1, 384}),
          .scales_a = TensorView(scales_a.data(), DType::f32, {1, 3}),
          .b = TensorView(b.data(), DType::e4m3, {1, 384}),
          .scales_b = TensorView(scales_b.data(), DType::f32, {1, 1})},
         {.device = device.get()});
  EXPECT_EQ(out, 0x1p24f + 2);
}

/// A NaN of either format is no number of a sum, wherever it stands, and stays in its row and column.
TEST(gemm_scaled, nan_spreads_over_its_row_alone) {
  DeviceInfo info = device_info_of(Arch::parse("sm_90a"));
  info.emulated = 1;
  const auto device = make_emulated_device(info, emulated_options_from_env());
  Numbers numbers;
  numbers.a[size_t(3 * numbers.k + 999)] = 0x7f;
  const std::vector<u32> out = numbers.run(*device, 0, 5);
  for (size_t i = 0; i < out.size(); ++i) {
    float value;
    std::memcpy(&value, &out[i], 4);
    EXPECT_EQ(value != value, i64(i) / numbers.n == 3) << i;
  }
}

}  // namespace
}  // namespace quern::gemm
