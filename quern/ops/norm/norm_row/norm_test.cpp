// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "quern/base/host_dtype.h"
#include "quern/device/emulated.h"
#include "quern/op/schema.h"
#include "quern/ops/norm/fused_add_rms_norm.h"
#include "quern/ops/norm/rms_norm.h"

namespace quern::norm {
namespace {

/// Kind and text of the Error that a call throws.
std::pair<ErrorKind, std::string> error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) { return {e.kind(), e.what()}; }
  return {ErrorKind::internal, "no error"};
}

class norm_rms_norm : public testing::Test {
 protected:
  std::vector<float> memory = std::vector<float>(64);
  TensorView tensor(std::initializer_list<i64> shape) { return TensorView(memory.data(), DType::f32, shape); }
  RmsNormArgs good() { return {.out = tensor({2, 8}), .x = tensor({2, 8}), .weight = tensor({8})}; }
  std::pair<ErrorKind, std::string> error(const RmsNormArgs& args, const RunOptions& options = {}) {
    return error_of([&] { rms_norm(args, options); });
  }
};
using Pair = std::pair<ErrorKind, std::string>;

TEST_F(norm_rms_norm, rejects_wrong_weight_length) {
  RmsNormArgs a = good();
  a.weight = tensor({9});
  EXPECT_EQ(error(a),
            Pair(ErrorKind::value, "norm.rms_norm: `weight` has shape [9], expected hidden=8 at dim 0 (hidden was set by `x` [2, 8])"));
}
TEST_F(norm_rms_norm, rejects_wrong_dtype) {
  RmsNormArgs a = good();
  a.weight.dtype = DType::bf16;
  EXPECT_EQ(error(a), Pair(ErrorKind::type, "norm.rms_norm: `weight` is bf16, expected f32 like `x` or f32"));
  a = good();
  a.x.dtype = DType::i32;
  EXPECT_EQ(error(a), Pair(ErrorKind::type, "norm.rms_norm: `x` is i32, expected f32, f16 or bf16"));
}
TEST_F(norm_rms_norm, rejects_wrong_rank_and_missing) {
  RmsNormArgs a = good();
  a.x = tensor({16});
  EXPECT_EQ(error(a), Pair(ErrorKind::value, "norm.rms_norm: `x` has shape [16], expected 2 dims [tokens hidden]"));
  a = good();
  a.out = {};
  EXPECT_EQ(error(a), Pair(ErrorKind::value, "norm.rms_norm: `out` is missing, expected a tensor [tokens hidden]"));
}
TEST_F(norm_rms_norm, rejects_strides_that_it_cannot_walk) {
  RmsNormArgs a = good();
  a.x.strides[1] = 2;
  EXPECT_EQ(error(a), Pair(ErrorKind::value, "norm.rms_norm: `x` has stride 2 at its last dim, expected 1 (dense rows)"));
  a = good();
  a.out.strides[0] = 4;
  EXPECT_EQ(error(a), Pair(ErrorKind::value, "norm.rms_norm: `out` has stride 4 at dim 0, so that its rows overlap, expected at least 8"));
}
TEST_F(norm_rms_norm, rejects_no_data_misalignment_and_another_device) {
  RmsNormArgs a = good();
  a.x.data = nullptr;
  EXPECT_EQ(error(a), Pair(ErrorKind::value, "norm.rms_norm: `x` has no data, expected a pointer, its shape is [2, 8]"));
  a = good();
  a.x.data = reinterpret_cast<char*>(memory.data()) + 2;
  EXPECT_EQ(error(a),
            Pair(ErrorKind::value, "norm.rms_norm: `x` starts at an address that is no multiple of 4, expected natural alignment"));
  a = good();
  a.weight.device = {DeviceType::cuda, 1};
  EXPECT_EQ(error(a), Pair(ErrorKind::value, "norm.rms_norm: `weight` is on cuda:1, expected the host like the tensors before it"));
}
TEST_F(norm_rms_norm, rejects_an_unknown_variant) {
  EXPECT_EQ(error(good(), {.variant = "tuned"}), Pair(ErrorKind::value, "norm.rms_norm: `variant` is 'tuned', expected one of portable"));
}
TEST_F(norm_rms_norm, plans_rows_within_registers_and_longer_ones_by_reading_twice) {
  const DeviceInfo h200 = device_info_of(Arch::parse("sm_90a"));
  const auto kernel = [&](i64 hidden, i64 tokens = 1 << 20) {
    RmsNormArgs a;
    void* fake = reinterpret_cast<void*>(4096);
    a.x = a.out = TensorView(fake, DType::bf16, {tokens, hidden});
    a.weight = TensorView(reinterpret_cast<void*>(i64(1) << 44), DType::bf16, {hidden});
    const Op& op = find_op("norm.rms_norm");
    return make_plan(op, bind(op, &a, {}), h200);
  };
  EXPECT_EQ(jit::print(kernel(128).launches[0].spec),
            "norm_row<dtype=bf16, add_residual=0, vector=8, held=1, row_threads=32, threads=256, min_blocks=4>");
  EXPECT_EQ(jit::print(kernel(4096).launches[0].spec),
            "norm_row<dtype=bf16, add_residual=0, vector=8, held=2, row_threads=256, threads=256, min_blocks=4>");
  EXPECT_EQ(jit::print(kernel(16384).launches[0].spec),
            "norm_row<dtype=bf16, add_residual=0, vector=8, held=2, row_threads=1024, threads=1024, min_blocks=1>");
  EXPECT_EQ(jit::print(kernel(16392).launches[0].spec),
            "norm_row<dtype=bf16, add_residual=0, vector=8, held=0, row_threads=1024, threads=1024, min_blocks=1>");
  // As many blocks as the device holds; from forty rows for each of them on, blocks of four rows
  EXPECT_EQ(kernel(4096, 100).launches[0].config.grid[0], 100u);
  EXPECT_EQ(kernel(4096, 132 * 4 * 40 - 1).launches[0].config.grid[0], 132u * 4);
  EXPECT_EQ(kernel(4096, 132 * 4 * 40).launches[0].config.grid[0], 132u * 40);
  EXPECT_EQ(kernel(4096, 132 * 4 * 40 + 1).launches[0].config.grid[0], 132u * 40 + 1);
  EXPECT_EQ(kernel(128).launches[0].config.grid[0], 132u * 4);
  EXPECT_EQ(kernel(2048).launches[0].config.grid[0], 132u * 8);
  EXPECT_EQ(kernel(16384).launches[0].config.grid[0], 132u);
}
/// 2^33 elements: sizes past 2^31 are planned, and nothing in Params is narrower than them.
TEST_F(norm_rms_norm, plans_sizes_past_32_bits) {
  RmsNormArgs a;
  void* fake = reinterpret_cast<void*>(4096);
  a.x = a.out = TensorView(fake, DType::bf16, {i64(1) << 33, 128});
  a.weight = TensorView(reinterpret_cast<void*>(i64(1) << 44), DType::bf16, {128});
  const Op& op = find_op("norm.rms_norm");
  const Problem problem = bind(op, &a, {});
  EXPECT_EQ(problem[Axis::tokens], i64(1) << 33);
  EXPECT_GT(make_plan(op, problem, device_info_of(Arch::parse("sm_90a"))).launches[0].config.grid[0], 0u);
}
/// The sum's tree depends on dtype and hidden alone: rows at odd addresses, which are read element by element, have the bits of
/// aligned ones.
TEST_F(norm_rms_norm, has_the_same_bits_at_any_alignment) {
  for (const i64 hidden : {96, 1000, 4096}) {
    std::vector<u16> x(size_t(hidden) + 8), weight(size_t(hidden) + 8), out(size_t(hidden) + 8), shifted(size_t(hidden) + 8),
        moved(size_t(hidden) + 8);
    for (i64 h = 0; h < hidden; ++h) {
      x[size_t(h)] = moved[size_t(h) + 1] = u16(0x3f00 + (h * 37) % 256 + (h % 3 ? 0x8000 : 0));
      weight[size_t(h)] = u16(0x3f80 + h % 64);
    }
    const auto row = [&](u16* data) { return TensorView(data, DType::bf16, {1, hidden}); };
    const TensorView w(weight.data(), DType::bf16, {hidden});
    rms_norm({.out = row(out.data()), .x = row(x.data()), .weight = w});
    rms_norm({.out = row(shifted.data() + 1), .x = row(moved.data() + 1), .weight = w});
    EXPECT_TRUE(std::equal(out.begin(), out.begin() + hidden, shifted.begin() + 1)) << "hidden " << hidden;
    EXPECT_NE(out[0], 0);
  }
}
/// One multiprocessor, so that the rule for long lists of rows begins at 160; on 132 a block has one row.
TEST_F(norm_rms_norm, has_the_same_bits_with_four_rows_a_block) {
  DeviceInfo one = device_info_of(Arch::parse("sm_90a"));
  one.emulated = one.sms = 1;
  const auto device = make_emulated_device(one, emulated_options_from_env());
  const i64 hidden = 4096;
  for (const i64 tokens : {159, 160, 161, 163}) {
    std::vector<u16> x(size_t(tokens * hidden)), weight(size_t(hidden), u16(0x3f80)), many(x.size(), u16(0xffff)),
        alone(x.size(), u16(0xffff));
    for (size_t i = 0; i < x.size(); ++i) x[i] = u16(0x3c00 + i * 40503 % 0x400 + (i % 3 ? 0x8000 : 0));
    const auto rows = [&](u16* data) { return TensorView(data, DType::bf16, {tokens, hidden}); };
    const RmsNormArgs args{.out = rows(many.data()), .x = rows(x.data()), .weight = TensorView(weight.data(), DType::bf16, {hidden})};
    EXPECT_EQ(make_plan(find_op("norm.rms_norm"), bind(find_op("norm.rms_norm"), &args, {}), one).launches[0].config.grid[0],
              tokens < 160 ? 4u : unsigned(ceil_div<i64>(tokens, 4)));
    rms_norm(args, {.device = device.get()});
    rms_norm({.out = rows(alone.data()), .x = args.x, .weight = args.weight});
    EXPECT_EQ(many, alone) << tokens;
    EXPECT_EQ(std::count(many.begin(), many.end(), u16(0xffff)), 0) << tokens;
  }
}
/// The squares are summed in f32. A row just below the limit is right, one above it is zeros; its neighbour does not see it.
TEST(norm_range, a_row_whose_squares_overflow_f32_gives_zeros) {
  std::vector<float> x(16, 0.f), weight(8, 1.f), out(16, NAN), residual(16, 0.f);
  const auto view = [](std::vector<float>& v, std::initializer_list<i64> shape) { return TensorView(v.data(), DType::f32, shape); };
  x[2] = 1.8e19f, x[8 + 3] = 1.9e19f;
  RunOptions options;
  options.device = &device_from_name("emu");
  const auto expect = [&] {
    EXPECT_NEAR(out[2], std::sqrt(8.0), 1e-5);
    for (size_t h = 8; h < 16; ++h) EXPECT_EQ(out[h], 0.f) << h;
  };
  rms_norm({.out = view(out, {2, 8}), .x = view(x, {2, 8}), .weight = view(weight, {8})}, options);
  expect();
  std::fill(out.begin(), out.end(), NAN);
  fused_add_rms_norm(
      {.out = view(out, {2, 8}), .scales = {}, .residual = view(residual, {2, 8}), .x = view(x, {2, 8}), .weight = view(weight, {8})},
      options);
  expect();
  EXPECT_EQ(residual[8 + 3], 1.9e19f);
}

TEST_F(norm_rms_norm, does_nothing_for_no_rows) {
  RmsNormArgs a = good();
  a.x = a.out = TensorView(nullptr, DType::f32, {0, 8});
  EXPECT_NO_THROW(rms_norm(a));
}

/// Bit for bit: x is f32, so an f32 output is what was quantised. Rows of a warp, of a block, unaligned and too long to be held.
TEST(norm_fused_add_rms_norm, quantises_its_unrounded_result) {
  for (const i64 hidden : {300, 2048, 2049, 9001}) {
    const i64 rows = 3, groups = ceil_div<i64>(hidden, 128);
    std::vector<float> x(size_t(rows * hidden)), first(x.size()), second, weight(static_cast<size_t>(hidden)), y(x.size()),
        scales(size_t(4 * groups), -1.0f);
    for (size_t i = 0; i < x.size(); ++i) x[i] = float(int(i * 37 % 101) - 50) / 16, first[i] = float(int(i * 53 % 89) - 44) / 8;
    for (i64 h = 0; h < hidden; ++h) weight[size_t(h)] = h / 128 == 1 ? 0.0f : float(h % 7 + 1);  // a group of zeros
    second = first;
    std::vector<u8> q(x.size(), 0xFF);
    const auto rows_of = [&](void* data, DType dtype) { return TensorView(data, dtype, {rows, hidden}); };
    FusedAddRmsNormArgs a{.out = rows_of(y.data(), DType::f32),
                          .residual = rows_of(first.data(), DType::f32),
                          .x = rows_of(x.data(), DType::f32),
                          .weight = TensorView(weight.data(), DType::f32, {hidden})};
    fused_add_rms_norm(a);
    a.out = rows_of(q.data(), DType::e4m3), a.residual = rows_of(second.data(), DType::f32);
    a.scales = TensorView(scales.data(), DType::f32, {rows, groups});
    a.scales.strides[0] = 1, a.scales.strides[1] = 4;
    fused_add_rms_norm(a);
    EXPECT_EQ(first, second) << "residual";
    for (i64 t = 0; t < rows; ++t)
      for (i64 h = 0; h < hidden; ++h) {
        const float* row = &y[size_t(t * hidden)];
        float amax = 1e-4f;
        for (i64 j = h / 128 * 128; j < std::min<i64>(h / 128 * 128 + 128, hidden); ++j) amax = std::max(amax, std::fabs(row[j]));
        const float scale = amax / 448.0f;
        ASSERT_EQ(scales[size_t(h / 128 * 4 + t)], scale) << hidden << ": " << t << " " << h;
        u8 expected = 0;
        store_value(&expected, DType::e4m3, row[h] * (1.0f / scale));
        ASSERT_EQ(q[size_t(t * hidden + h)], expected) << hidden << ": " << t << " " << h;
      }
    for (i64 g = 0; g < groups; ++g) EXPECT_EQ(scales[size_t(g * 4 + 3)], -1) << "padding";
    a.scales = {};
    EXPECT_EQ(error_of([&] { fused_add_rms_norm(a); }),
              Pair(ErrorKind::value, "norm.fused_add_rms_norm: `scales` is absent, expected a tensor: `out` is e4m3"));
  }
}

/// FP8 results of rows of 5120, of which a multiprocessor has two blocks of 320 threads, are slower by blocks of four rows.
TEST(norm_fused_add_rms_norm, plans_long_lists_of_rows) {
  const auto blocks = [](i64 hidden) {
    void* fake = reinterpret_cast<void*>(4096);
    const i64 tokens = 1 << 20, far = i64(1) << 40;
    const auto rows = [&](int i, DType dtype) { return TensorView(static_cast<char*>(fake) + i * far, dtype, {tokens, hidden}); };
    FusedAddRmsNormArgs a{.out = rows(0, DType::e4m3),
                          .residual = rows(1, DType::bf16),
                          .x = rows(2, DType::bf16),
                          .weight = TensorView(static_cast<char*>(fake) + 3 * far, DType::bf16, {hidden})};
    a.scales = TensorView(static_cast<char*>(fake) + 4 * far, DType::f32, {tokens, ceil_div<i64>(hidden, 128)});
    const Op& op = find_op("norm.fused_add_rms_norm");
    return i64(make_plan(op, bind(op, &a, {}), device_info_of(Arch::parse("sm_90a"))).launches[0].config.grid[0]);
  };
  EXPECT_EQ(blocks(7168), (1 << 20) / 4);
  EXPECT_EQ(blocks(5120), 264);
}

TEST(norm_fused_add_rms_norm, rejects_a_residual_of_another_shape) {
  std::vector<float> memory(64);
  const auto t = [&](std::initializer_list<i64> shape) { return TensorView(memory.data(), DType::f32, shape); };
  const FusedAddRmsNormArgs a{.out = t({2, 8}), .residual = t({3, 8}), .x = t({2, 8}), .weight = t({8})};
  EXPECT_EQ(error_of([&] { fused_add_rms_norm(a); }),
            Pair(ErrorKind::value,
                 "norm.fused_add_rms_norm: `residual` has shape [3, 8], expected tokens=2 at dim 0 (tokens was set by `x` [2, 8])"));
}

}  // namespace
}  // namespace quern::norm
