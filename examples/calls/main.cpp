// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out = a b^T + bias with a and b in FP8, one scale for 1x128 of a and one for 128x128 of b.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "quern/base/host_dtype.h"
#include "quern/ops/gemm/scaled.h"

using quern::DType, quern::i64;

/// A matrix of FP8 with its scales: an element is q * scale.
struct Fp8Matrix {
  std::vector<std::uint8_t> q;  // [rows, k] e4m3
  std::vector<float> scales;    // [ceil(rows / scale_rows), k / 128]
};

/// Quantises x [rows, k]: the largest magnitude of each block of scale_rows x 128 becomes 448, e4m3's largest value.
Fp8Matrix quantise(const std::vector<double>& x, i64 rows, i64 k, i64 scale_rows) {
  Fp8Matrix result{std::vector<std::uint8_t>(x.size()), {}};
  for (i64 r = 0; r < rows; r += scale_rows)
    for (i64 c = 0; c < k; c += 128) {
      const i64 end = std::min(rows, r + scale_rows);
      double largest = 1e-4;  // of a block of zeros
      for (i64 i = r; i < end; ++i)
        for (i64 j = c; j < c + 128; ++j) largest = std::max(largest, std::fabs(x[size_t(i * k + j)]));
      const float scale = float(largest / quern::largest_finite(DType::e4m3));
      result.scales.push_back(scale);
      for (i64 i = r; i < end; ++i)
        for (i64 j = c; j < c + 128; ++j) quern::store_value(&result.q[size_t(i * k + j)], DType::e4m3, x[size_t(i * k + j)] / scale);
    }
  return result;
}

int main() {
  constexpr i64 m = 4, n = 256, k = 512, groups = k / 128;
  std::vector<double> x(m * k), weight(n * k), bias(n);
  for (i64 i = 0; i < m * k; ++i) x[size_t(i)] = 1 + double(i % k) / 128;
  for (i64 i = 0; i < n * k; ++i) weight[size_t(i)] = 0.01 * (1 + double(i / k) / 64);
  for (i64 j = 0; j < n; ++j) bias[size_t(j)] = double(j) / n;
  Fp8Matrix a = quantise(x, m, k, 1), b = quantise(weight, n, k, 128);

  std::vector<std::uint16_t> bias_bf16(n), out(m * n);  // 16 bits that host_dtype.h reads and writes
  quern::write_row(bias_bf16.data(), DType::bf16, n, 1, bias.data());
  try {
    quern::gemm::scaled({.out = {out.data(), DType::bf16, {m, n}},
                         .a = {a.q.data(), DType::e4m3, {m, k}},
                         .scales_a = {a.scales.data(), DType::f32, {m, groups}},
                         .b = {b.q.data(), DType::e4m3, {n, k}},
                         .scales_b = {b.scales.data(), DType::f32, {n / 128, groups}},
                         .bias = {bias_bf16.data(), DType::bf16, {n}}});
  } catch (const quern::Error& e) {
    std::fprintf(stderr, "%s error: %s\n", quern::name(e.kind()), e.what());
    return 1;
  }

  // An e4m3 is off by up to 2^-4 of its value, a product by twice as much; here all are positive, so their sum is too.
  double worst = 0;
  for (i64 i = 0; i < m; ++i)
    for (i64 j = 0; j < n; ++j) {
      double sum = bias[size_t(j)];
      for (i64 c = 0; c < k; ++c) sum += x[size_t(i * k + c)] * weight[size_t(j * k + c)];
      worst = std::max(worst, std::fabs(quern::load_value(&out[size_t(i * n + j)], DType::bf16) / sum - 1));
    }
  std::printf("out[0][0] = %.2f, largest relative error %.4f\n", quern::load_value(out.data(), DType::bf16), worst);
  return worst < 0.125 ? 0 : 1;
}
