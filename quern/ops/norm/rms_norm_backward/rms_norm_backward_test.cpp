// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/norm/rms_norm_backward.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "quern/op/schema.h"
#include "quern/ops/norm/rms_norm.h"

namespace quern::norm {
namespace {

class norm_rms_norm_backward : public testing::Test {
 protected:
  std::vector<float> memory = std::vector<float>(256);
  TensorView tensor(std::initializer_list<i64> shape) { return TensorView(memory.data(), DType::f32, shape); }
  RmsNormBackwardArgs good() {
    return {.dx = tensor({2, 8}),
            .dw = tensor({8}),
            .dy = tensor({2, 8}),
            .x = TensorView(memory.data() + 64, DType::f32, {2, 8}),
            .weight = tensor({8})};
  }
  std::string error(const RmsNormBackwardArgs& args) {
    try {
      rms_norm_backward(args);
    } catch (const Error& e) { return name(e.kind()) + std::string(": ") + e.what(); }
    return "no error";
  }
};

TEST_F(norm_rms_norm_backward, rejects_wrong_shapes_and_dtypes) {
  RmsNormBackwardArgs a = good();
  a.dw = tensor({9});
  EXPECT_EQ(error(a), "value: norm.rms_norm_backward: `dw` has shape [9], expected hidden=8 at dim 0 (hidden was set by `dy` [2, 8])");
  a = good();
  a.dw.dtype = DType::bf16;
  EXPECT_EQ(error(a), "type: norm.rms_norm_backward: `dw` is bf16, expected f32 like `weight` or f32");
  a = good();
  a.x.dtype = DType::bf16;
  EXPECT_EQ(error(a), "type: norm.rms_norm_backward: `x` is bf16, expected f32 like `dy`");
  a = good();
  a.eps = -1;
  EXPECT_EQ(error(a), "value: norm.rms_norm_backward: `eps` is -1, expected a number from 0 to 1e30");
}

/// Kernels of both launches and the workspace, on an H200.
std::string planned(i64 tokens, i64 hidden, DType dtype, bool with_dw) {
  const auto fake = [](i64 which) { return reinterpret_cast<void*>(which << 44); };
  RmsNormBackwardArgs a;
  a.dx = a.dy = TensorView(fake(1), dtype, {tokens, hidden});
  a.x = TensorView(fake(2), dtype, {tokens, hidden});
  a.weight = TensorView(fake(3), dtype, {hidden});
  if (with_dw) a.dw = TensorView(fake(4), dtype, {hidden});
  const Op& op = find_op("norm.rms_norm_backward");
  const Plan plan = make_plan(op, bind(op, &a, {}), device_info_of(Arch::parse("sm_90a")));
  std::string text;
  for (i32 i = 0; i < plan.count; ++i)
    text += jit::print(plan.launches[i].spec) + " x" + std::to_string(plan.launches[i].config.grid[0]) + "\n";
  return text + std::to_string(plan.workspace) + " B";
}

TEST_F(norm_rms_norm_backward, plans_by_the_row_and_one_part_of_dw_a_block) {
  EXPECT_EQ(
      planned(1 << 20, 128, DType::bf16, true),
      "norm_row_backward<dtype=bf16, weight_dtype=bf16, centred=0, with_weight=1, add_gradient=0, with_dw=1, with_dbias=0, vector=8, held=1, row_threads=32, threads=256, min_blocks=2> x264\n"
      "sum_parts<dtype=bf16, vector=4, lanes=32, threads=256> x4\n135168 B");
  EXPECT_EQ(
      planned(1 << 20, 4096, DType::bf16, true),
      "norm_row_backward<dtype=bf16, weight_dtype=bf16, centred=0, with_weight=1, add_gradient=0, with_dw=1, with_dbias=0, vector=8, held=2, row_threads=256, threads=256, min_blocks=2> x264\n"
      "sum_parts<dtype=bf16, vector=4, lanes=32, threads=256> x128\n4325376 B");
  EXPECT_EQ(
      planned(1 << 20, 4096, DType::bf16, false),
      "norm_row_backward<dtype=bf16, weight_dtype=bf16, centred=0, with_weight=1, add_gradient=0, with_dw=0, with_dbias=0, vector=8, held=2, row_threads=256, threads=256, min_blocks=2> x264\n0 B");
  EXPECT_EQ(
      planned(3, 8192, DType::bf16, false),
      "norm_row_backward<dtype=bf16, weight_dtype=bf16, centred=0, with_weight=1, add_gradient=0, with_dw=0, with_dbias=0, vector=8, held=2, row_threads=512, threads=512, min_blocks=1> x3\n0 B");
  EXPECT_EQ(
      planned(3, 8200, DType::bf16, false),
      "norm_row_backward<dtype=bf16, weight_dtype=bf16, centred=0, with_weight=1, add_gradient=0, with_dw=0, with_dbias=0, vector=8, held=0, row_threads=1024, threads=1024, min_blocks=1> x3\n0 B");
  EXPECT_EQ(planned(0, 1023, DType::f32, true), "sum_parts<dtype=f32, vector=1, lanes=32, threads=256> x128\n0 B");
}

TEST_F(norm_rms_norm_backward, of_no_tokens_is_a_dw_of_zeros) {
  std::fill(memory.begin(), memory.end(), 7.f);
  RmsNormBackwardArgs a = good();
  a.dx = a.dy = a.x = TensorView(nullptr, DType::f32, {0, 8});
  a.dw = TensorView(memory.data() + 128, DType::f32, {8});
  EXPECT_NO_THROW(rms_norm_backward(a));
  for (int h = 0; h < 8; ++h) EXPECT_EQ(memory[size_t(128 + h)], 0.f);
  EXPECT_EQ(memory[127], 7.f);
  EXPECT_EQ(memory[136], 7.f);
}

/// The trees of all sums depend on dtype, tokens and hidden: rows at odd addresses, which are read element by element, have the bits
/// of aligned ones.
TEST_F(norm_rms_norm_backward, of_a_row_whose_squares_overflow_f32_are_zeros) {
  std::vector<float> x(8, 1.f), dy(8, 1.f), weight(8, 1.f), dx(8, NAN), dw(8, NAN);
  x[3] = 1.9e19f;
  const auto view = [](std::vector<float>& v, std::initializer_list<i64> shape) { return TensorView(v.data(), DType::f32, shape); };
  RunOptions options;
  options.device = &device_from_name("emu");
  rms_norm_backward(
      {.dx = view(dx, {1, 8}), .dw = view(dw, {8}), .dy = view(dy, {1, 8}), .x = view(x, {1, 8}), .weight = view(weight, {8})}, options);
  for (size_t h = 0; h < 8; ++h) EXPECT_TRUE(dx[h] == 0 && dw[h] == 0) << h << ": " << dx[h] << ", " << dw[h];
}

TEST_F(norm_rms_norm_backward, has_the_same_bits_at_any_alignment) {
  for (const i64 hidden : {96, 1000, 4096}) {
    constexpr i64 kTokens = 290;
    const size_t size = size_t(kTokens * hidden) + 8;
    std::vector<u16> values(size), moved(size), dx(size), moved_dx(size);
    std::vector<float> dw(size_t(hidden), -1.f), moved_dw(size_t(hidden), -2.f);
    for (i64 i = 0; i + 8 < i64(size); ++i) values[size_t(i)] = moved[size_t(i) + 1] = u16(0x3f00 + (i * 37) % 256 + (i % 3 ? 0x8000 : 0));
    const auto rows = [&](u16* data) { return TensorView(data, DType::bf16, {kTokens, hidden}); };
    const auto call = [&](u16* from, u16* to, float* sum) {
      rms_norm_backward({.dx = rows(to),
                         .dw = {sum, DType::f32, {hidden}},
                         .dy = rows(from),
                         .x = rows(from),
                         .weight = TensorView(from, DType::bf16, {hidden})});
    };
    call(values.data(), dx.data(), dw.data());
    call(moved.data() + 1, moved_dx.data() + 1, moved_dw.data());
    EXPECT_TRUE(std::equal(dx.begin(), dx.begin() + kTokens * hidden, moved_dx.begin() + 1)) << "hidden " << hidden;
    EXPECT_EQ(dw, moved_dw) << "hidden " << hidden;
    EXPECT_GT(dw[0], 0);
  }
}

TEST(op_backward, of_every_op_can_be_called_with_what_the_op_has) {
  int named = 0;
  for (const auto& [id, op] : registry()) {
    EXPECT_EQ(backward_fault(*op), "") << id;
    named += !op->backward.empty();
  }
  EXPECT_GE(named, 1);
}

TEST(op_backward, that_cannot_be_called_is_told) {
  const auto fault = [](const char* backward, std::map<std::string, std::string> gradients) {
    Op op = find_op("norm.rms_norm");
    op.backward = {{backward, std::move(gradients)}};
    return backward_fault(op);
  };
  const std::string id = "norm.rms_norm_backward";
  EXPECT_EQ(fault("norm.nothing", {}), "norm.nothing is not there");
  EXPECT_EQ(fault(id.c_str(), {{"dx", "x"}, {"dw", "weight"}}), id + ": `dy` is neither a tensor of this op nor a gradient");
  EXPECT_EQ(fault(id.c_str(), {{"dy", "out"}, {"dx", "x"}, {"dw", "weigth"}}),
            id + ": `dw` is the gradient of `weigth`, which is no tensor of this op");
  EXPECT_EQ(fault(id.c_str(), {{"dy", "out"}, {"dx", "x"}, {"dw", "weight"}, {"dz", "x"}}), id + ": `dz` is no tensor of it");
  EXPECT_EQ(fault(id.c_str(), {{"dy", "x"}, {"dx", "x"}, {"dw", "weight"}}),
            id + ": `dy` is the gradient of `x`: inputs are gradients of outputs, outputs of inputs");
  EXPECT_EQ(fault(id.c_str(), {{"dy", "out"}, {"dx", "weight"}, {"dw", "weight"}}), id + ": `dx` is [tokens hidden] beside [hidden]");
  Op twice = find_op("norm.rms_norm");
  twice.backward.push_back(twice.backward[0]);
  EXPECT_EQ(backward_fault(twice), id + ": `dw` is the gradient of `weight`, which " + id + " computes too");
  EXPECT_EQ(fault("norm.fused_add_rms_norm", {{"out", "x"}}),
            "norm.fused_add_rms_norm: `residual` is neither a tensor of this op nor a gradient");
}

}  // namespace
}  // namespace quern::norm
