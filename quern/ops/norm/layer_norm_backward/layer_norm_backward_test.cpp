// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What cases cannot express of layer_norm_backward and of the backward ops of the fused norms.
#include "quern/ops/norm/layer_norm_backward.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "quern/op/schema.h"
#include "quern/ops/norm/fused_add_layer_norm_backward.h"
#include "quern/ops/norm/fused_add_rms_norm_backward.h"

namespace quern::norm {
namespace {

template <class F> std::string error_of(F f) {
  try {
    f();
  } catch (const Error& e) { return name(e.kind()) + std::string(": ") + e.what(); }
  return "no error";
}
std::vector<float> some(i64 n, int seed) {
  std::vector<float> v(static_cast<size_t>(n));
  for (i64 i = 0; i < n; ++i) v[size_t(i)] = float((i * 37 + seed * 11) % 101 - 50) / 16;
  return v;
}
TensorView view(std::vector<float>& v, std::initializer_list<i64> shape) { return TensorView(v.data(), DType::f32, shape); }

TEST(norm_layer_norm_backward, says_what_does_not_fit) {
  std::vector<float> m(64), w(8), b(8);
  LayerNormBackwardArgs a{.dx = view(m, {2, 8}),
                          .dw = TensorView(w.data(), DType::bf16, {8}),
                          .dbias = view(b, {8}),
                          .dy = TensorView(m.data() + 16, DType::bf16, {2, 8}),
                          .x = TensorView(m.data() + 32, DType::bf16, {2, 8}),
                          .weight = TensorView(m.data() + 48, DType::bf16, {8})};
  a.dx.dtype = DType::bf16;
  const auto said = [&] { return error_of([&] { layer_norm_backward(a); }); };
  EXPECT_EQ(said(), "value: norm.layer_norm_backward: `dbias` is f32, expected the dtype of dw");
  a.dbias = {}, a.eps = NAN;
  EXPECT_EQ(said(), "value: norm.layer_norm_backward: `eps` is nan, expected a number from 0 to 1e30");
  a.eps = 0, a.x.shape[1] = 7;
  EXPECT_EQ(said(), "value: norm.layer_norm_backward: `x` has shape [2, 7], expected hidden=8 at dim 1 (hidden was set by `dy` [2, 8])");
}

TEST(norm_layer_norm_backward, of_no_tokens_is_sums_of_zero) {
  std::vector<float> dw(8, 7.f), dbias(8, 7.f), none(1);
  LayerNormBackwardArgs a{
      .dx = view(none, {0, 8}), .dw = view(dw, {8}), .dbias = view(dbias, {8}), .dy = view(none, {0, 8}), .x = view(none, {0, 8})};
  layer_norm_backward(a);
  EXPECT_EQ(dw, std::vector<float>(8, 0.f));
  EXPECT_EQ(dbias, std::vector<float>(8, 0.f));
  dbias.assign(8, 7.f), a.dw = {};
  layer_norm_backward(a);
  EXPECT_EQ(dbias, std::vector<float>(8, 0.f));
}

/// A row of one value has n = 0, and only the gradients' own mean is taken off.
TEST(norm_layer_norm_backward, of_a_row_of_one_value) {
  std::vector<float> x(6, 3.f), dy = {1, 2, 3, 4, 5, 9}, dx(6, NAN), dw(6, NAN), dbias(6, NAN);
  layer_norm_backward(
      {.dx = view(dx, {1, 6}), .dw = view(dw, {6}), .dbias = view(dbias, {6}), .dy = view(dy, {1, 6}), .x = view(x, {1, 6}), .eps = 0.25f});
  for (size_t h = 0; h < 6; ++h) EXPECT_FLOAT_EQ(dx[h], 2 * (dy[h] - 4)) << h;
  EXPECT_EQ(dw, std::vector<float>(6, 0.f));
  EXPECT_EQ(dbias, dy);
}

/// A NaN or infinity makes its row NaN, and its columns' sums; other rows do not see it.
TEST(norm_layer_norm_backward, keeps_nan_within_its_row) {
  for (const float bad : {NAN, INFINITY}) {
    std::vector<float> x = some(3 * 65, 1), dy = some(3 * 65, 2), dx(x.size()), dw(65), dbias(65), clean(x.size());
    const LayerNormBackwardArgs a{
        .dx = view(dx, {3, 65}), .dw = view(dw, {65}), .dbias = view(dbias, {65}), .dy = view(dy, {3, 65}), .x = view(x, {3, 65})};
    layer_norm_backward(a);
    clean = dx, x[65 + 7] = bad;
    layer_norm_backward(a);
    for (size_t i = 0; i < x.size(); ++i) {
      if (i / 65 == 1) EXPECT_TRUE(std::isnan(dx[i])) << i;
      else EXPECT_EQ(dx[i], clean[i]) << i;
    }
    for (const float v : dw) EXPECT_TRUE(std::isnan(v));
    for (const float v : dbias) EXPECT_FALSE(std::isnan(v));
  }
}

/// dy of a sum over rows is one row in memory, with stride 0: the same bits as of its copies.
TEST(norm_layer_norm_backward, takes_rows_that_are_one) {
  constexpr i64 kTokens = 5, kHidden = 160;
  std::vector<float> x = some(kTokens * kHidden, 1), row = some(kHidden, 2), dy, weight = some(kHidden, 3);
  for (i64 t = 0; t < kTokens; ++t) dy.insert(dy.end(), row.begin(), row.end());
  std::vector<float> dx(x.size()), dw(kHidden), dbias(kHidden), dx_one(x.size()), dw_one(kHidden), dbias_one(kHidden);
  layer_norm_backward({.dx = view(dx, {kTokens, kHidden}),
                       .dw = view(dw, {kHidden}),
                       .dbias = view(dbias, {kHidden}),
                       .dy = view(dy, {kTokens, kHidden}),
                       .x = view(x, {kTokens, kHidden}),
                       .weight = view(weight, {kHidden})});
  TensorView one = view(row, {kTokens, kHidden});
  one.strides[0] = 0;
  layer_norm_backward({.dx = view(dx_one, {kTokens, kHidden}),
                       .dw = view(dw_one, {kHidden}),
                       .dbias = view(dbias_one, {kHidden}),
                       .dy = one,
                       .x = view(x, {kTokens, kHidden}),
                       .weight = view(weight, {kHidden})});
  EXPECT_EQ(dx, dx_one);
  EXPECT_EQ(dw, dw_one);
  EXPECT_EQ(dbias, dbias_one);
}

/// Of rows of a warp, of a block, and of those that are read for each pass: unaligned ones are read element by element in the same order.
TEST(norm_layer_norm_backward, has_the_same_bits_at_any_alignment) {
  for (const i64 hidden : {96, 1000, 4096}) {
    constexpr i64 kTokens = 290;
    const size_t size = size_t(kTokens * hidden) + 8;
    std::vector<u16> values(size), moved(size), dx(size), moved_dx(size);
    std::vector<float> dw(size_t(hidden), -1.f), moved_dw = dw, dbias = dw, moved_dbias = dw;
    for (i64 i = 0; i + 8 < i64(size); ++i) values[size_t(i)] = moved[size_t(i) + 1] = u16(0x3f00 + (i * 37) % 256 + (i % 3 ? 0x8000 : 0));
    const auto call = [&](u16* from, u16* to, std::vector<float>& sum, std::vector<float>& bias) {
      const auto rows = [&](u16* data) { return TensorView(data, DType::bf16, {kTokens, hidden}); };
      fused_add_layer_norm_backward({.dx = rows(to),
                                     .dw = view(sum, {hidden}),
                                     .dbias = view(bias, {hidden}),
                                     .dy = rows(from),
                                     .residual = rows(from),
                                     .weight = TensorView(from, DType::bf16, {hidden}),
                                     .dresidual = rows(from)});
    };
    call(values.data(), dx.data(), dw, dbias);
    call(moved.data() + 1, moved_dx.data() + 1, moved_dw, moved_dbias);
    EXPECT_TRUE(std::equal(dx.begin(), dx.begin() + kTokens * hidden, moved_dx.begin() + 1)) << "hidden " << hidden;
    EXPECT_EQ(dw, moved_dw) << "hidden " << hidden;
    EXPECT_EQ(dbias, moved_dbias) << "hidden " << hidden;
    EXPECT_NE(dbias[0], 0);
  }
}

TEST(norm_fused_add_rms_norm_backward, may_update_the_gradient_of_the_residual_and_no_other) {
  std::vector<float> s = some(16, 1), dy = some(16, 2), weight = some(8, 3), dresidual = some(16, 4), dx(16, NAN);
  FusedAddRmsNormBackwardArgs a{.dx = view(dx, {2, 8}),
                                .dy = view(dy, {2, 8}),
                                .residual = view(s, {2, 8}),
                                .weight = view(weight, {8}),
                                .dresidual = view(dresidual, {2, 8})};
  fused_add_rms_norm_backward(a);
  a.dx = a.dresidual;
  fused_add_rms_norm_backward(a);
  EXPECT_EQ(dx, dresidual);
  a.dx = a.residual;
  EXPECT_NE(error_of([&] { fused_add_rms_norm_backward(a); }), "no error");
}

}  // namespace
}  // namespace quern::norm
