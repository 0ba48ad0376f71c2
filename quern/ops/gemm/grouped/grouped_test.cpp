// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Of the grouped products: what cases cannot say. Error texts, plans, rows that must not be touched, and bits of a row.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <vector>

#include "quern/base/error.h"
#include "quern/device/emulated.h"
#include "quern/op/schema.h"
#include "quern/ops/gemm/grouped/plan.h"
#include "quern/ops/gemm/grouped_contiguous.h"
#include "quern/ops/gemm/grouped_masked.h"
#include "quern/ops/gemm/scaled.h"
#include "quern/testing/case_args.h"

namespace quern::gemm {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const char* const kIds[] = {"gemm.grouped_contiguous", "gemm.grouped_masked"};

template <class Args>
void expect_error(const char* id, const Args& args, ErrorKind kind, const std::string& text) {
  try {
    bind(find_op(id), &args, {});
    ADD_FAILURE() << "no error; expected: " << text;
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind);
    EXPECT_EQ(e.what(), std::string(id) + ": " + text);
  }
}

/// Views of a call that is never launched: m = 4, groups = 3, n = 300, k = 520, of which scales have 5 columns.
struct Contiguous {
  std::vector<u32> memory = std::vector<u32>(1 << 18);
  GroupedContiguousArgs args;
  Contiguous() {
    args = {.out = view(DType::bf16, {4, 300}),
            .a = view(DType::e4m3, {4, 520}),
            .b = view(DType::e5m2, {3, 300, 520}),
            .scales_a = view(DType::f32, {4, 5}),
            .scales_b = view(DType::f32, {3, 3, 5}),
            .m_indptr = view(DType::i32, {4})};
  }
  TensorView view(DType dtype, std::initializer_list<i64> shape) { return TensorView(memory.data(), dtype, shape); }
  void expect(ErrorKind kind, const char* text) const { expect_error("gemm.grouped_contiguous", args, kind, text); }
};

TEST(gemm_grouped, rejects_scales_that_do_not_fit_the_operands) {
  Contiguous c;
  c.args.scales_a = TensorView();
  c.expect(ErrorKind::value, "`scales_a` is absent, expected a tensor: `a` and `b` are of 8 bits");
  c = {};
  c.args.scales_b = TensorView();
  c.expect(ErrorKind::value, "`scales_b` is absent, expected a tensor: `a` and `b` are of 8 bits");
  c = {};
  c.args.a.dtype = c.args.b.dtype = DType::bf16;
  c.expect(ErrorKind::value, "`scales_a` is given, expected none: `a` and `b` are of 16 bits");
  c = {};
  c.args.scales_a = c.view(DType::f32, {4, 4});
  c.expect(ErrorKind::value, "`scales_a` has shape [4, 4], expected ceil_div(k,128)=5 at dim 1 (k was set by `a` [4, 520])");
  c = {};
  c.args.scales_b = c.view(DType::f32, {3, 300, 5});
  c.expect(ErrorKind::value, "`scales_b` has shape [3, 300, 5], expected ceil_div(n,128)=3 at dim 1 (n was set by `b` [3, 300, 520])");
}

TEST(gemm_grouped, rejects_other_dtypes_and_shapes) {
  Contiguous c;
  c.args.a.dtype = DType::bf16;
  c.expect(ErrorKind::value, "`bits of b` is 8, expected 16, those of `a`");
  c = {};
  c.args.a.dtype = DType::bf16, c.args.b.dtype = DType::f16;
  c.expect(ErrorKind::type, "`b` is f16, expected bf16 like `a`, e4m3 or e5m2");
  c = {};
  c.args.out.dtype = DType::e4m3;
  c.expect(ErrorKind::type, "`out` is e4m3, expected bf16, f16 or f32");
  c = {};
  c.args.b = c.view(DType::e4m3, {300, 520});
  c.expect(ErrorKind::value, "`b` has shape [300, 520], expected 3 dims [groups n k]");
  c = {};
  c.args.m_indptr = c.view(DType::i32, {3});
  c.expect(ErrorKind::value, "`m_indptr` has shape [3], expected groups+1=4 at dim 0 (groups was set by `b` [3, 300, 520])");
}

TEST(gemm_grouped, rows_of_groups_are_said_in_one_way) {
  Contiguous c;
  c.args.m_indptr = TensorView();
  c.expect(ErrorKind::value, "`group_of_row` is absent, expected one of group_of_row, group_ends and m_indptr");
  c = {};
  c.args.group_ends = c.view(DType::i32, {3});
  c.expect(ErrorKind::value, "`m_indptr` is given, expected none beside group_ends");
  c = {};
  c.args.alignment = 0;
  c.expect(ErrorKind::value, "`alignment` is 0, expected at least 1");
  EXPECT_LE(grouped_alignment(), 64);
  EXPECT_EQ(GroupedContiguousArgs().alignment, grouped_alignment());
}

/// The tensor cores take 8 bits of K-major operands alone; what is dense nowhere is no operand.
TEST(gemm_grouped, b_is_dense_along_k_or_with_16_bits_along_n) {
  Contiguous c;
  c.args.b.strides[1] = 1, c.args.b.strides[2] = 304;
  c.expect(ErrorKind::value, "`b` is N-major, expected K-major: `a` and `b` are of 8 bits");
  for (TensorView* v : {&c.args.a, &c.args.b}) v->dtype = DType::bf16;
  c.args.scales_a = c.args.scales_b = {};
  c.args.b.strides[1] = 2;
  c.expect(ErrorKind::value, "`b` has strides 2 and 304 at its last two dims, expected 1 at one of them (dense rows or columns)");
}

TEST(gemm_grouped, rows_beyond_31_bits_are_an_error) {
  std::vector<u32> memory(16);
  const i64 rows = i64(1) << 20;
  const auto view = [&](DType dtype, std::initializer_list<i64> shape) { return TensorView(memory.data(), dtype, shape); };
  GroupedMaskedArgs args{.out = view(DType::bf16, {4096, rows, 0}),
                         .a = view(DType::bf16, {4096, rows, 0}),
                         .b = view(DType::bf16, {4096, 0, 0}),
                         .masked_m = view(DType::i32, {4096})};
  expect_error("gemm.grouped_masked", args, ErrorKind::value, "`groups * max_m` is 4294967296, expected below 2^31");
}

Plan plan_of(const char* id, const Case& which, const char* arch = "sm_80") {
  const Op& op = find_op(id);
  const Case full = quern::testing::derived(op, which);
  const quern::testing::ArgsStorage args = quern::testing::fake_args(op, full);
  return make_plan(op, bind(op, args.get(), quern::testing::options_of(op, full)), device_info_of(Arch::parse(arch)));
}
std::string text_of(const Plan& plan) { return jit::print(plan.launches[plan.count - 1].spec); }

TEST(gemm_grouped, expected_rows_are_not_negative) {
  Case which = {{"max_m", 64}, {"groups", 3}, {"n", 64}, {"k", 64}, {"expected_m", -1}};
  try {
    plan_of(kIds[1], which);
    FAIL() << "nothing thrown";
  } catch (const Error& e) { EXPECT_STREQ(e.what(), "gemm.grouped_masked: `expected_m` is -1, expected 0 or more"); }
}

TEST(gemm_grouped, rows_of_a_group_choose_the_tile) {
  EXPECT_THAT(text_of(plan_of(kIds[1], {{"max_m", 4096}, {"groups", 8}})), HasSubstr("tile_m=64"));
  EXPECT_THAT(text_of(plan_of(kIds[1], {{"max_m", 4096}, {"groups", 8}, {"expected_m", 7}})), HasSubstr("tile_m=16"));
  EXPECT_THAT(text_of(plan_of(kIds[0], {{"m", 2048}, {"groups", 128}})), HasSubstr("tile_m=16"));
  EXPECT_THAT(text_of(plan_of(kIds[0], {{"m", 2049}, {"groups", 128}})), HasSubstr("tile_m=64"));
  EXPECT_THAT(text_of(plan_of(kIds[0], {{"m", 2049}, {"groups", 128}, {"bits8", 0}})), HasSubstr("tile_m=64"));
}

TEST(gemm_grouped, one_kernel_takes_all_rows_of_16_bits_that_are_not_aligned) {
  std::set<std::string> kernels;
  for (const double pad : {4, 2, 1})
    for (const double m : {2, 64, 2048, 65536})
      kernels.insert(text_of(plan_of(kIds[0], {{"m", m}, {"groups", 8}, {"bits8", 0}, {"a.pad", pad}})));
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_THAT(*kernels.begin(), HasSubstr("vector=1, tile_m=64, tile_n=64"));
}

/// The grid follows from sizes alone, and has no more blocks than there can be tiles or than the GPU holds.
TEST(gemm_grouped, the_grid_is_that_of_the_gpu_at_most) {
  const Plan many = plan_of(kIds[1], {{"max_m", 4096}, {"groups", 256}, {"n", 7168}});
  EXPECT_EQ(many.count, 1);
  EXPECT_EQ(many.launches[0].config.grid[0], 2 * 108u);
  const Plan few = plan_of(kIds[1], {{"max_m", 65}, {"groups", 3}, {"n", 129}});
  EXPECT_EQ(few.launches[0].config.grid[0], 3 * 2 * 3u);
  const Plan rows = plan_of(kIds[0], {{"m", 129}, {"groups", 1}, {"n", 129}, {"layout", 2}});
  EXPECT_EQ(rows.count, 1);
  EXPECT_EQ(rows.launches[0].config.grid[0], 3 * 3u);
  const Plan of_row = plan_of(kIds[0], {{"m", 129}, {"groups", 5}, {"n", 129}, {"layout", 0}});
  EXPECT_EQ(of_row.count, 2);
  EXPECT_EQ(of_row.workspace, 5 * 8);
}

/// What the server has to compile for a layer: few kernels, whatever the number of rows and groups that have some.
TEST(gemm_grouped, few_kernels_serve_all_numbers_of_rows) {
  const double layers[][3] = {{4, 4096, 7168}, {8, 7168, 2048}, {16, 7168, 2048}, {128, 1536, 2048}, {256, 4096, 7168}, {1, 256, 7168}};
  for (const auto& [groups, n, k] : layers)
    for (const double bits8 : {0, 1}) {
      std::set<std::string> contiguous, masked;
      for (double m = 1; m <= 65536; m = std::ceil(m * 1.13)) {
        contiguous.insert(text_of(plan_of(kIds[0], {{"m", m}, {"groups", groups}, {"n", n}, {"k", k}, {"bits8", bits8}}, "sm_90a")));
        masked.insert(text_of(
            plan_of(kIds[1], {{"max_m", 4096}, {"expected_m", m}, {"groups", groups}, {"n", n}, {"k", k}, {"bits8", bits8}}, "sm_90a")));
      }
      EXPECT_LE(contiguous.size(), 8u) << groups << " x " << n << " x " << k;
      EXPECT_LE(masked.size(), 8u) << groups << " x " << n << " x " << k;
    }
}

// ---- results ----

std::unique_ptr<Device> hopper(i32 sms = 132) {
  DeviceInfo info = device_info_of(Arch::parse("sm_90a"));
  info.emulated = 1;
  info.sms = sms;
  return make_emulated_device(info, emulated_options_from_env());
}

constexpr float kUntouched = -77.f;

/// f32 results of 8-bit operands, of numbers that no sum of f32 holds exactly.
struct Numbers {
  i64 rows, groups, n, k, blocks, blocks_n;
  DType out_dtype = DType::f32;  // of 16 bits: the first half of `out`
  std::vector<u8> a, b;
  std::vector<float> scales_a, scales_b, out;
  Numbers(i64 rows, i64 groups, i64 n = 136, i64 k = 400)
      : rows(rows), groups(groups), n(n), k(k), blocks(ceil_div<i64>(k, 128)), blocks_n(ceil_div<i64>(n, 128)) {
    Random random(7);
    const auto fill = [&](std::vector<u8>& to, i64 count) {
      for (i64 i = 0; i < count; ++i) to.push_back(u8(0x20 + random.below(0x30) + 0x80 * random.below(2)));
    };
    fill(a, rows * k), fill(b, groups * n * k);
    for (i64 i = 0; i < rows * blocks; ++i) scales_a.push_back(float(1 + random.uniform() / 2));
    for (i64 i = 0; i < groups * blocks_n * blocks; ++i) scales_b.push_back(float(1 + random.uniform() / 2));
    out.assign(size_t(rows * n), kUntouched);
  }
  GroupedContiguousArgs contiguous() {
    return {.out = TensorView(out.data(), DType::f32, {rows, n}),
            .a = TensorView(a.data(), DType::e4m3, {rows, k}),
            .b = TensorView(b.data(), DType::e4m3, {groups, n, k}),
            .scales_a = TensorView(scales_a.data(), DType::f32, {rows, blocks}),
            .scales_b = TensorView(scales_b.data(), DType::f32, {groups, blocks_n, blocks})};
  }
  /// Of `max_m` rows a group.
  GroupedMaskedArgs masked(i64 max_m, std::vector<i32>& masked_m) {
    return {.out = TensorView(out.data(), out_dtype, {groups, max_m, n}),
            .a = TensorView(a.data(), DType::e4m3, {groups, max_m, k}),
            .b = TensorView(b.data(), DType::e4m3, {groups, n, k}),
            .scales_a = TensorView(scales_a.data(), DType::f32, {groups, max_m, blocks}),
            .scales_b = TensorView(scales_b.data(), DType::f32, {groups, blocks_n, blocks}),
            .masked_m = TensorView(masked_m.data(), DType::i32, {groups})};
  }
  const float* row(i64 i) const { return out.data() + i * n; }
  bool untouched(i64 i) const {
    for (i64 j = 0; j < n; ++j)
      if (row(i)[j] != kUntouched) return false;
    return true;
  }
};

/// Every variant that runs the call.
std::vector<const char*> variants(const char* id) {
  std::vector<const char*> names;
  for (const Variant& v : find_op(id).variants) names.push_back(v.name);
  return names;
}

/// The three ways to say which rows a group has give the same bits; what stands between groups is left alone.
TEST(gemm_grouped, layouts_agree) {
  const auto device = hopper();
  for (const char* variant : variants(kIds[0])) {
    Numbers of_row(96, 3), of_ends(96, 3), of_indptr(96, 3);
    std::vector<i32> group_of_row(96, -1), ends = {5, 33, 80}, indptr = {0, 16, 48, 96};
    for (i64 i = 0; i < 96; ++i) group_of_row[size_t(i)] = i < 5 ? 0 : i >= 16 && i < 33 ? 1 : i >= 48 && i < 80 ? 2 : -1;
    GroupedContiguousArgs args = of_row.contiguous();
    args.group_of_row = TensorView(group_of_row.data(), DType::i32, {96});
    grouped_contiguous(args, {.device = device.get(), .variant = variant});
    args = of_ends.contiguous();
    args.group_ends = TensorView(ends.data(), DType::i32, {3});
    grouped_contiguous(args, {.device = device.get(), .variant = variant});
    args = of_indptr.contiguous();
    args.m_indptr = TensorView(indptr.data(), DType::i32, {4});
    grouped_contiguous(args, {.device = device.get(), .variant = variant});
    EXPECT_EQ(of_row.out, of_ends.out) << variant;
    for (i64 i = 0; i < 96; ++i) {
      EXPECT_EQ(of_row.untouched(i), group_of_row[size_t(i)] < 0) << variant << " row " << i;
      if (group_of_row[size_t(i)] >= 0) {
        EXPECT_EQ(std::memcmp(of_row.row(i), of_indptr.row(i), size_t(of_row.n) * 4), 0) << variant << " row " << i;
      }
      EXPECT_FALSE(of_indptr.untouched(i)) << variant << " row " << i;
    }
  }
}

/// A row has the same bits wherever it stands in its group, and alone.
TEST(gemm_grouped, a_row_depends_on_no_other) {
  const auto device = hopper();
  for (const char* variant : variants(kIds[1])) {
    Numbers all(2 * 70, 2);
    std::vector<i32> counts = {70, 70};
    grouped_masked(all.masked(70, counts), {.device = device.get(), .variant = variant});
    for (const i32 few : {1, 15, 17, 64}) {
      Numbers some(2 * 70, 2);
      counts = {few, 0};
      GroupedMaskedArgs args = some.masked(70, counts);
      args.expected_m = few;  // another tile
      grouped_masked(args, {.device = device.get(), .variant = variant});
      EXPECT_EQ(std::memcmp(some.out.data(), all.out.data(), size_t(few * all.n) * 4), 0) << variant << " " << few;
      for (i64 i = few; i < 140; ++i) EXPECT_TRUE(some.untouched(i)) << variant << " " << few << " row " << i;
    }
  }
}

/// A group's rows are gemm.scaled's product of its matrices, bit for bit, in each variant.
TEST(gemm_grouped, rows_have_the_bits_of_the_plain_product) {
  const auto device = hopper();
  for (const char* variant : variants(kIds[0])) {
    Numbers grouped(150, 2), plain(150, 2);
    std::vector<i32> indptr = {0, 21, 150};
    GroupedContiguousArgs args = grouped.contiguous();
    args.m_indptr = TensorView(indptr.data(), DType::i32, {3});
    grouped_contiguous(args, {.device = device.get(), .variant = variant});
    for (i64 g = 0; g < 2; ++g) {
      const i64 first = indptr[size_t(g)], m = indptr[size_t(g) + 1] - first;
      scaled({.out = TensorView(plain.out.data() + first * plain.n, DType::f32, {m, plain.n}),
              .a = TensorView(plain.a.data() + first * plain.k, DType::e4m3, {m, plain.k}),
              .scales_a = TensorView(plain.scales_a.data() + first * plain.blocks, DType::f32, {m, plain.blocks}),
              .b = TensorView(plain.b.data() + g * plain.n * plain.k, DType::e4m3, {plain.n, plain.k}),
              .scales_b = TensorView(plain.scales_b.data() + g * 2 * plain.blocks, DType::f32, {2, plain.blocks})},
             {.device = device.get(), .variant = variant, .batch_invariant = true});
    }
    EXPECT_EQ(std::memcmp(grouped.out.data(), plain.out.data(), grouped.out.size() * 4), 0) << variant;
  }
}

/// Of 16 bits, b [groups, n, k] with k or n dense gives the same bits. k is no whole number of stages: behind its last column the box of an
/// N-major b must not bring the next group's, which are NaN.
TEST(gemm_grouped, an_n_major_b_gives_the_same_bits) {
  constexpr i64 kRows = 150, kGroups = 3, kN = 200, kK = 104, kPitch = kN + 8;
  const auto device = hopper();
  Random random(11);
  std::vector<u16> a(kRows * kK), b(kGroups * kN * kK), n_major(kGroups * kK * kPitch, 0x7fc0);
  for (u16& x : a) x = u16(0x3f00 + random.below(0x100));
  for (u16& x : b) x = u16(0x3f00 + random.below(0x100) + 0x8000 * random.below(2));
  for (i64 j = 0; j < kN * kK; ++j) b[size_t(kN * kK + j)] = 0x7fc0;  // of group 1, which has no rows
  for (i64 g = 0; g < kGroups; ++g)
    for (i64 j = 0; j < kN; ++j)
      for (i64 x = 0; x < kK; ++x) n_major[size_t((g * kK + x) * kPitch + j)] = b[size_t((g * kN + j) * kK + x)];
  TensorView transposed(n_major.data(), DType::bf16, {kGroups, kN, kK});
  transposed.strides[0] = kK * kPitch, transposed.strides[1] = 1, transposed.strides[2] = kPitch;
  for (const char* variant : variants(kIds[0])) {
    std::vector<i32> indptr = {0, 21, 21, i32(kRows)}, counts = {21, 0, 50};
    std::vector<float> of_rows[2], of_counts[2];
    for (const bool is_n_major : {false, true}) {
      const TensorView of_b = is_n_major ? transposed : TensorView(b.data(), DType::bf16, {kGroups, kN, kK});
      std::vector<float>&out = of_rows[is_n_major], &masked = of_counts[is_n_major];
      out.assign(kRows * kN, kUntouched), masked.assign(kRows * kN, kUntouched);
      grouped_contiguous({.out = TensorView(out.data(), DType::f32, {kRows, kN}),
                          .a = TensorView(a.data(), DType::bf16, {kRows, kK}),
                          .b = of_b,
                          .m_indptr = TensorView(indptr.data(), DType::i32, {kGroups + 1})},
                         {.device = device.get(), .variant = variant});
      grouped_masked({.out = TensorView(masked.data(), DType::f32, {kGroups, 50, kN}),
                      .a = TensorView(a.data(), DType::bf16, {kGroups, 50, kK}),
                      .b = of_b,
                      .masked_m = TensorView(counts.data(), DType::i32, {kGroups})},
                     {.device = device.get(), .variant = variant});
    }
    for (const auto& results : {of_rows, of_counts}) {
      EXPECT_EQ(std::memcmp(results[0].data(), results[1].data(), results[0].size() * 4), 0) << variant;
      EXPECT_TRUE(std::isfinite(results[1][0]) && results[1][0] != kUntouched) << variant;
    }
  }
}

/// More columns of K than rings of stages and of scales hold several times, and a tail: what a warpgroup without rows passes over it passes
/// over in time. 29 stages: tiles begin at any stage of rings of 3, 4 and 5, and their warpgroups together.
constexpr i64 kManyStages = 28 * 128 + 16;

/// Whatever the height of a tile: groups of all, half and a quarter of one of 256 rows, and where the next begins less than 128 rows before
/// the last.
TEST(gemm_grouped, tiles_of_256_rows_give_the_bits_of_those_of_128) {
  const auto device = hopper();
  std::vector<i32> counts = {300, 1, 0, 64, 65, 127, 128, 129, 191, 192, 193, 255, 256, 257, 264, 299};
  counts.resize(33, 130);
  const i64 groups = i64(counts.size()), max_m = 300, n = 264;
  std::vector<std::vector<float>> results;
  for (const i32 expected : {200, 100}) {
    Numbers numbers(groups * max_m, groups, n, kManyStages);
    numbers.out_dtype = DType::bf16;
    GroupedMaskedArgs args = numbers.masked(max_m, counts);
    args.expected_m = expected;
    const RunOptions options{.device = device.get()};
    const Op& op = find_op(kIds[1]);
    EXPECT_THAT(text_of(make_plan(op, bind(op, &args, options), device->info())), HasSubstr(expected == 200 ? "tile_m=256" : "tile_m=128"));
    grouped_masked(args, options);
    results.push_back(numbers.out);
  }
  EXPECT_EQ(std::memcmp(results[0].data(), results[1].data(), results[0].size() * 4), 0);
  const auto* rows = reinterpret_cast<const u16*>(results[0].data());
  u16 poison[2];
  std::memcpy(poison, &kUntouched, 4);
  for (i64 g = 0; g < groups; ++g)
    for (i64 i = 0; i < max_m; ++i) {
      const u16* row = rows + (g * max_m + i) * n;
      bool untouched = true;
      for (i64 j = 0; j < n; ++j) untouched = untouched && row[j] == poison[j % 2];
      EXPECT_EQ(untouched, i >= counts[size_t(g)]) << "group " << g << " row " << i;
    }
}

/// How many columns are in the tail's tiles follows from the rows that are there: none, all, or those behind 13 wide tiles.
TEST(gemm_grouped, tiles_of_a_tail_give_the_bits_of_others) {
  const auto device = hopper();
  struct Rows {
    std::vector<i32> counts;
    u32 along_m, wide, tail;
    i64 k;
  };
  const i64 max_m = 340, n = 4104;
  const Op& op = find_op(kIds[1]);
  const RunOptions options{.device = device.get()};
  for (Rows& rows : std::vector<Rows>{{{206, 283, 332, 246}, 10, 13, 13, kManyStages},
                                      {{129, 240, 1, 246}, 7, 0, 33, 704},
                                      {{270, 283, 332, 193}, 11, 22, 0, 304},
                                      {{0, 340, 300, 64}, 7, 0, 33, 128},
                                      {{340, 0, 0, 340}, 6, 22, 0, 144}}) {
    const ColumnTiles tiles = best_column_tiles(rows.along_m, u32(n), kTailSm90Tile);
    EXPECT_EQ(tiles.wide, rows.wide) << rows.along_m;
    EXPECT_EQ(tiles.tail, rows.tail) << rows.along_m;
    std::vector<std::vector<float>> results;
    for (const i32 expected : {201, 64}) {
      Numbers numbers(4 * max_m, 4, n, rows.k);
      numbers.out_dtype = DType::bf16;
      GroupedMaskedArgs args = numbers.masked(max_m, rows.counts);
      args.expected_m = expected;
      EXPECT_THAT(text_of(make_plan(op, bind(op, &args, options), device->info())), HasSubstr(expected == 201 ? "tail=128" : "tail=0"));
      grouped_masked(args, options);
      results.push_back(numbers.out);
    }
    EXPECT_EQ(std::memcmp(results[0].data(), results[1].data(), results[0].size() * 4), 0) << rows.along_m;
    for (i64 g = 0; g < 4; ++g)  // the second half of `out` is nobody's, the first half holds rows of bf16
      for (const i64 i : {rows.counts[size_t(g)] - 1, rows.counts[size_t(g)]})
        for (const i64 j : {i64(0), n - 1}) {
          if (i < 0 || i >= max_m) continue;
          u16 poison[2], value;
          std::memcpy(poison, &kUntouched, 4);
          std::memcpy(&value, reinterpret_cast<const u16*>(results[0].data()) + (g * max_m + i) * n + j, 2);
          EXPECT_EQ(value == poison[j % 2], i >= rows.counts[size_t(g)]) << "group " << g << " row " << i << " column " << j;
        }
  }
}

/// Of groups with rows for one warpgroup, for both, and one of the next tile; of pairs of tiles of one group, of two, of the last one
/// alone, and of more groups than a warp looks at together. a's scales as TMA takes them, and as it does not.
TEST(gemm_grouped, tiles_of_192_columns_give_the_bits_of_the_plain_product) {
  struct Tiles {
    i64 groups, max_m;
    i32 expected;
    i64 n;
    const char* pair;
    std::vector<i32> counts, last;
    i32 sms = 132;
  };
  for (Tiles tiles : {Tiles{33, 132, 40, 768, "pair=0", {1, 64, 0, 65, 128, 129}, {2}, 6},
                      Tiles{44, 260, 256, 768, "pair=1", {1, 0, 65, 129, 193, 256, 257}, {}},
                      Tiles{44, 260, 256, 768, "pair=1", {257, 1, 0, 129}, {130, 0, 65, 128}, 6}}) {
    const auto device = hopper(tiles.sms);
    const i64 n = tiles.n;
    tiles.counts.resize(size_t(tiles.groups) - tiles.last.size(), 0);
    tiles.counts.insert(tiles.counts.end(), tiles.last.begin(), tiles.last.end());
    Numbers copied(tiles.groups * tiles.max_m, tiles.groups, n, kManyStages),
        boxed(tiles.groups * tiles.max_m, tiles.groups, n, kManyStages), plain(tiles.groups * tiles.max_m, tiles.groups, n, kManyStages);
    const RunOptions options{.device = device.get()};
    const Op& op = find_op(kIds[1]);
    for (Numbers* numbers : {&copied, &boxed}) {
      GroupedMaskedArgs args = numbers->masked(tiles.max_m, tiles.counts);
      args.expected_m = tiles.expected;
      if (numbers == &boxed) {
        std::vector<float> columns(numbers->scales_a.size());
        for (i64 g = 0; g < tiles.groups; ++g)
          for (i64 i = 0; i < tiles.max_m; ++i)
            for (i64 x = 0; x < numbers->blocks; ++x)
              columns[size_t((g * numbers->blocks + x) * tiles.max_m + i)] =
                  numbers->scales_a[size_t((g * tiles.max_m + i) * numbers->blocks + x)];
        numbers->scales_a = columns;
        args.scales_a = TensorView(numbers->scales_a.data(), DType::f32, {tiles.groups, tiles.max_m, numbers->blocks});
        args.scales_a.strides[1] = 1, args.scales_a.strides[2] = tiles.max_m;
      }
      EXPECT_THAT(text_of(make_plan(op, bind(op, &args, options), device->info())), AllOf(HasSubstr("tile_n=192"), HasSubstr(tiles.pair)));
      grouped_masked(args, options);
    }
    for (i64 g = 0; g < tiles.groups; ++g) {
      const i64 m = tiles.counts[size_t(g)], first = g * tiles.max_m;
      if (m == 0) continue;
      scaled(
          {.out = TensorView(plain.out.data() + first * n, DType::f32, {m, n}),
           .a = TensorView(plain.a.data() + first * plain.k, DType::e4m3, {m, plain.k}),
           .scales_a = TensorView(plain.scales_a.data() + first * plain.blocks, DType::f32, {m, plain.blocks}),
           .b = TensorView(plain.b.data() + g * n * plain.k, DType::e4m3, {n, plain.k}),
           .scales_b = TensorView(plain.scales_b.data() + g * plain.blocks_n * plain.blocks, DType::f32, {plain.blocks_n, plain.blocks})},
          {.device = device.get(), .variant = "warp_specialised_sm90", .batch_invariant = true});
      EXPECT_EQ(std::memcmp(copied.row(first), plain.row(first), size_t(m * n) * 4), 0) << tiles.pair << " group " << g;
      for (i64 i = 0; i < m; ++i) EXPECT_FALSE(plain.untouched(first + i)) << tiles.pair << " group " << g << " row " << i;
    }
    EXPECT_EQ(copied.out, plain.out);  // and the rest untouched
    EXPECT_EQ(boxed.out, plain.out);
  }
}

/// More stages than a slot of a tile's scales of b has, in blocks that make several tiles; in pairs whose two tiles share b.
TEST(gemm_grouped, tiles_go_on_in_the_next_slot) {
  const auto device = hopper(4);
  const i64 k = 128 * 128 + 272;
  struct Tiles {
    i64 rows, n, m;
    DType out;
    const char* tile;
    const char* pair;
  };
  for (const Tiles& tiles :
       {Tiles{1664, 1920, 1, DType::f32, "tile_n=192", "pair=0"}, Tiles{4352, 2112, 129, DType::f32, "tile_n=192", "pair=1"},
        Tiles{1664, 2304, 1, DType::bf16, "tile_m=256", "pair=0"}, Tiles{1664, 1760, 1, DType::f32, "tile_n=176", "pair=0"},
        Tiles{1664, 1920, 1, DType::bf16, "tail=128", "pair=0"}}) {
    const i64 m = tiles.m;
    Numbers grouped(tiles.rows, 1, tiles.n, k), plain(m, 1, tiles.n, k);
    GroupedContiguousArgs args = grouped.contiguous();
    args.out.dtype = tiles.out;
    std::vector<i32> indptr = {0, i32(m)};
    args.m_indptr = TensorView(indptr.data(), DType::i32, {2});
    plain.out.assign(plain.out.size(), 0.f);  // other poison than that of `grouped`
    const RunOptions options{.device = device.get()};
    const Op& op = find_op(kIds[0]);
    EXPECT_THAT(text_of(make_plan(op, bind(op, &args, options), device->info())), AllOf(HasSubstr(tiles.tile), HasSubstr(tiles.pair)));
    grouped_contiguous(args, options);
    scaled({.out = TensorView(plain.out.data(), tiles.out, {m, tiles.n}),
            .a = TensorView(grouped.a.data(), DType::e4m3, {m, k}),
            .scales_a = TensorView(grouped.scales_a.data(), DType::f32, {m, grouped.blocks}),
            .b = TensorView(grouped.b.data(), DType::e4m3, {tiles.n, k}),
            .scales_b = TensorView(grouped.scales_b.data(), DType::f32, {grouped.blocks_n, grouped.blocks})},
           {.device = device.get(), .variant = "swap_ab_sm90", .batch_invariant = true});
    EXPECT_EQ(std::memcmp(grouped.out.data(), plain.out.data(), size_t(m * tiles.n) * size_t(size_of(tiles.out))), 0)
        << tiles.tile << " " << tiles.pair;
    EXPECT_TRUE(grouped.untouched(m));
  }
}

/// What stands behind the rows of a group in a does not matter.
TEST(gemm_grouped, rows_behind_the_last_do_not_matter) {
  const auto device = hopper();
  for (const char* variant : variants(kIds[1])) {
    Numbers clean(2 * 70, 2), dirty(2 * 70, 2);
    std::vector<i32> counts = {33, 5};
    for (i64 g = 0; g < 2; ++g)
      for (i64 i = counts[size_t(g)]; i < 70; ++i) {
        std::fill_n(dirty.a.begin() + (g * 70 + i) * dirty.k, dirty.k, u8(0x7f));  // NaN
        std::fill_n(dirty.scales_a.begin() + (g * 70 + i) * dirty.blocks, dirty.blocks, std::numeric_limits<float>::quiet_NaN());
      }
    grouped_masked(clean.masked(70, counts), {.device = device.get(), .variant = variant});
    grouped_masked(dirty.masked(70, counts), {.device = device.get(), .variant = variant});
    EXPECT_EQ(clean.out, dirty.out) << variant;
  }
}

/// Numbers that break the rules end at the bounds of the tensors, as documented.
TEST(gemm_grouped, broken_contents_are_cut) {
  const auto device = hopper();
  for (const char* variant : variants(kIds[0])) {
    Numbers good(64, 4), bad(64, 4);
    std::vector<i32> ascending = {0, 20, 20, 20, 64}, broken = {-9, 20, 3, 19, 1 << 30};
    GroupedContiguousArgs args = good.contiguous();
    args.m_indptr = TensorView(ascending.data(), DType::i32, {5});
    grouped_contiguous(args, {.device = device.get(), .variant = variant});
    args = bad.contiguous();
    args.m_indptr = TensorView(broken.data(), DType::i32, {5});
    grouped_contiguous(args, {.device = device.get(), .variant = variant});
    EXPECT_EQ(good.out, bad.out) << variant;

    Numbers twice(64, 4);
    std::vector<i32> group_of_row(64);
    for (i64 i = 0; i < 64; ++i) group_of_row[size_t(i)] = i < 16 ? 2 : i < 32 ? 4 : i < 48 ? 2 : 0;  // 4: none; 2 again
    args = twice.contiguous();
    args.group_of_row = TensorView(group_of_row.data(), DType::i32, {64});
    grouped_contiguous(args, {.device = device.get(), .variant = variant});
    for (i64 i = 0; i < 64; ++i) EXPECT_EQ(twice.untouched(i), i >= 16 && i < 48) << variant << " row " << i;
  }
}

/// The same plan serves other numbers of rows: nothing of them is kept between calls.
TEST(gemm_grouped, contents_may_change_between_replays) {
  const auto device = hopper();
  for (const char* variant : variants(kIds[0])) {
    Numbers numbers(64, 2), other(64, 2);
    std::vector<i32> group_of_row(64, -1);
    alignas(256) char workspace[256];
    GroupedContiguousArgs args = numbers.contiguous();
    args.group_of_row = TensorView(group_of_row.data(), DType::i32, {64});
    const RunOptions options{.device = device.get(), .variant = variant, .workspace = {workspace, 256}};
    std::fill_n(group_of_row.begin(), 64, 1);
    grouped_contiguous(args, options);
    numbers.out.assign(numbers.out.size(), kUntouched);
    std::fill_n(group_of_row.begin(), 64, -1);
    std::fill_n(group_of_row.begin() + 32, 3, 0);
    grouped_contiguous(args, options);
    for (i64 i = 0; i < 64; ++i) EXPECT_EQ(numbers.untouched(i), i < 32 || i >= 35) << variant << " row " << i;
  }
}

}  // namespace
}  // namespace quern::gemm
