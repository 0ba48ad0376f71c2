// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/gemm/dense.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "quern/base/error.h"
#include "quern/device/emulated.h"
#include "quern/op/schema.h"
#include "quern/testing/case_args.h"

namespace quern::gemm {
namespace {

using ::testing::HasSubstr;

/// Views of a call that is never launched.
struct Call {
  std::vector<u16> memory = std::vector<u16>(1 << 16);
  DenseArgs args;
  Call() {
    args = {.out = TensorView(memory.data(), DType::bf16, {4, 16}),
            .a = TensorView(memory.data(), DType::bf16, {4, 32}),
            .b = TensorView(memory.data(), DType::bf16, {16, 32})};
  }
  void expect(ErrorKind kind, const char* text) const {
    try {
      bind(find_op("gemm.dense"), &args, {});
      ADD_FAILURE() << "no error; expected: " << text;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), kind);
      EXPECT_STREQ(e.what(), text);
    }
  }
};

TEST(gemm_dense, rejects_wrong_shapes) {
  Call c;
  c.args.b = TensorView(c.memory.data(), DType::bf16, {16, 40});
  c.expect(ErrorKind::value, "gemm.dense: `b` has shape [16, 40], expected k=32 at dim 1 (k was set by `a` [4, 32])");
  c = {};
  c.args.out = TensorView(c.memory.data(), DType::bf16, {4, 17});
  c.expect(ErrorKind::value, "gemm.dense: `out` has shape [4, 17], expected n=16 at dim 1 (n was set by `b` [16, 32])");
  c = {};
  c.args.bias = TensorView(c.memory.data(), DType::bf16, {4});
  c.expect(ErrorKind::value, "gemm.dense: `bias` has shape [4], expected n=16 at dim 0 (n was set by `b` [16, 32])");
}

TEST(gemm_dense, rejects_wrong_dtypes) {
  Call c;
  c.args.a.dtype = DType::f32;
  c.expect(ErrorKind::type, "gemm.dense: `a` is f32, expected bf16 or f16");
  c = {};
  c.args.b.dtype = DType::f16;
  c.expect(ErrorKind::type, "gemm.dense: `b` is f16, expected bf16 like `a`");
  c = {};
  c.args.out.dtype = DType::f16;
  c.expect(ErrorKind::type, "gemm.dense: `out` is f16, expected bf16 like `a` or f32");
  c = {};
  c.args.bias = TensorView(c.memory.data(), DType::f16, {16});
  c.expect(ErrorKind::type, "gemm.dense: `bias` is f16, expected bf16 like `out` or f32");
}

Plan plan_of(const DeviceInfo& device, const Case& which) {
  const Op& op = find_op("gemm.dense");
  const Case full = quern::testing::derived(op, which);
  const quern::testing::ArgsStorage args = quern::testing::fake_args(op, full);
  return make_plan(op, bind(op, args.get(), quern::testing::options_of(op, full)), device);
}

std::string plan_text(const DeviceInfo& device, const Case& which) {
  const Plan plan = plan_of(device, which);
  const auto* config = plan.launches[0].spec.config;
  i32 field[12];
  std::memcpy(field, config, sizeof field);
  std::string s = std::to_string(field[3]) + "x" + std::to_string(field[4]) + " vector " + std::to_string(field[2]);
  if (field[9]) s += " fold";
  return s + " grid " + std::to_string(plan.launches[0].config.grid[0]) + " splits " +
         std::to_string(plan.launches[0].config.grid[1]) + " launches " + std::to_string(plan.count);
}

TEST(gemm_dense, plans_of_a_layer) {
  const DeviceInfo h200 = device_info_of(Arch::parse("sm_90a"));
  const auto plan = [&](double m, double n, double k) { return plan_text(h200, {{"m", m}, {"n", n}, {"k", k}}); };
  EXPECT_EQ(plan(1, 28672, 4096), "16x64 vector 8 grid 448 splits 1 launches 1");
  EXPECT_EQ(plan(4, 4096, 14336), "16x64 vector 8 grid 64 splits 4 launches 2");
  EXPECT_EQ(plan(16, 6144, 4096), "16x64 vector 8 grid 96 splits 2 launches 2");
  EXPECT_EQ(plan(64, 28672, 4096), "64x128 vector 8 grid 224 splits 1 launches 1");
}

/// As many columns a tile as leave the last round fullest; few rows and other GPUs stay with mma_ring.
TEST(gemm_dense, plans_of_many_rows) {
  const auto tile = [](const char* arch, double m, double n, double k, double batch_invariant = 0) {
    const Plan p = plan_of(device_info_of(Arch::parse(arch)), {{"m", m}, {"n", n}, {"k", k}, {"batch_invariant", batch_invariant}});
    const std::string printed = jit::print(p.launches[0].spec);
    return jit::function_of(printed) + printed.substr(printed.find(", tile_m"), printed.find(", stages") - printed.find(", tile_m")) + " grid " +
           std::to_string(p.launches[0].config.grid[0]);
  };
  EXPECT_EQ(tile("sm_90a", 4096, 4096, 4096), "dense_warp_specialised_sm90, tile_m=128, tile_n=256 grid 132");
  EXPECT_EQ(tile("sm_90a", 4096, 2112, 7168), "dense_warp_specialised_sm90, tile_m=128, tile_n=192 grid 132");
  EXPECT_EQ(tile("sm_90a", 4096, 2113, 7168).substr(0, 14), "dense_mma_ring");
  EXPECT_EQ(tile("sm_90a", 128, 28672, 4096).substr(0, 14), "dense_mma_ring");
  EXPECT_EQ(tile("sm_90a", 4096, 4096, 4096, 1).substr(0, 14), "dense_mma_ring");
  EXPECT_EQ(tile("sm_80", 4096, 4096, 4096).substr(0, 14), "dense_mma_ring");
}

TEST(gemm_dense, alignment_decides_the_width_of_copies) {
  const DeviceInfo h200 = device_info_of(Arch::parse("sm_90a"));
  const auto plan = [&](const char* word, double v) {
    return plan_text(h200, {{"m", 3}, {"n", 64}, {"k", 64}, {word, v}});
  };
  EXPECT_THAT(plan("a.pad", 0), HasSubstr("vector 8"));
  EXPECT_THAT(plan("a.pad", 4), HasSubstr("vector 4"));
  EXPECT_THAT(plan("b.pad", 2), HasSubstr("vector 2"));
  EXPECT_THAT(plan("b.shift", 1), HasSubstr("vector 1"));
}

TEST(gemm_dense, invariant_splits_depend_on_n_and_k_alone) {
  const auto splits = [](const DeviceInfo& device, double m) {
    return plan_text(device, {{"m", m}, {"n", 4096}, {"k", 14336}, {"batch_invariant", 1}});
  };
  const DeviceInfo h200 = device_info_of(Arch::parse("sm_90a")), a100 = device_info_of(Arch::parse("sm_80"));
  EXPECT_THAT(splits(h200, 1), HasSubstr("splits 4"));
  EXPECT_THAT(splits(a100, 1), HasSubstr("splits 4"));
  EXPECT_THAT(splits(h200, 64), HasSubstr("splits 4"));
  EXPECT_THAT(splits(h200, 4096), HasSubstr("fold"));
}

/// Rows of every tile, with splits that are added by the second launch and in the block, on a device that is small
/// enough for the latter.
TEST(gemm_dense, invariant_rows_have_the_same_bits_for_every_m) {
  DeviceInfo small = device_info_of(Arch::parse("sm_90a"));
  small.emulated = 1;
  small.sms = 8;
  const auto device = make_emulated_device(small, emulated_options_from_env());
  const i64 rows = 200, n = 136, k = 4160;
  Random random(7);
  const auto fill = [&](i64 count) {
    std::vector<u16> v(static_cast<size_t>(count));
    for (u16& x : v) x = u16(0x3c00 + random.below(0x400) + random.below(2) * 0x8000);  // bf16, about 0.008 .. 2
    return v;
  };
  auto a = fill(rows * k), b = fill(n * k);
  const auto run_rows = [&](i64 first, i64 m) {
    std::vector<u32> out(size_t(m * n));
    dense({.out = TensorView(out.data(), DType::f32, {m, n}),
           .a = TensorView(a.data() + first * k, DType::bf16, {m, k}),
           .b = TensorView(b.data(), DType::bf16, {n, k})},
          {.device = device.get(), .batch_invariant = true});
    return out;
  };
  const std::vector<u32> all = run_rows(0, rows);
  for (const i64 m : {1, 16, 17, 33, 64, 65}) {
    const i64 first = rows - m;
    const std::vector<u32> part = run_rows(first, m);
    EXPECT_EQ(std::memcmp(part.data(), all.data() + first * n, part.size() * 4), 0) << "m=" << m;
  }
}

}  // namespace
}  // namespace quern::gemm
