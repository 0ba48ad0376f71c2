// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Host tensors, so the emulated device runs the kernels; with device pointers and DeviceId{DeviceType::cuda, 0} behind each
// shape the same calls run on the GPU.
#include <cmath>
#include <cstdio>
#include <vector>

#include "mine/scale_rows.h"
#include "quern/jit/freeze.h"
#include "quern/ops/norm/rms_norm.h"

using quern::DType;

int main() {
  const quern::i64 tokens = 2, hidden = 8;
  std::vector<float> x(tokens * hidden), weight(hidden, 1.0f), normed(x.size()), out(x.size()), factor = {2.0f, -1.0f};
  for (size_t i = 0; i < x.size(); ++i) x[i] = float(i % 3) + 1;
  try {
    quern::norm::rms_norm({.out = {normed.data(), DType::f32, {tokens, hidden}},
                           .x = {x.data(), DType::f32, {tokens, hidden}},
                           .weight = {weight.data(), DType::f32, {hidden}},
                           .eps = 0});
    const quern::mine::ScaleRowsArgs scale = {.out = {out.data(), DType::f32, {tokens, hidden}},
                                              .x = {normed.data(), DType::f32, {tokens, hidden}},
                                              .factor = {factor.data(), DType::f32, {tokens}}};
    quern::mine::scale_rows(scale);
    // A server does this behind its warm-up: a call that would compile is an error from here on.
    quern::jit::freeze();
    quern::mine::scale_rows(scale);
  } catch (const quern::Error& e) {
    std::fprintf(stderr, "%s error: %s\n", quern::name(e.kind()), e.what());
    return 1;
  }
  // A normed row's mean square is 1, a scaled one's its factor squared.
  for (size_t t = 0; t < size_t(tokens); ++t) {
    double square = 0;
    for (size_t h = 0; h < size_t(hidden); ++h) square += double(out[t * hidden + h]) * out[t * hidden + h] / double(hidden);
    std::printf("row %zu: mean square %.6f\n", t, square);
    if (std::fabs(square - factor[t] * factor[t]) > 1e-5) return 1;
  }
  return 0;
}
