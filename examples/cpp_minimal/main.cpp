// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// RMSNorm of three rows. The tensors lie in host memory, so the emulated device runs the kernel; with device pointers and
// a DeviceId{DeviceType::cuda, 0} behind each shape the same call runs on the GPU.
#include <cstdio>
#include <vector>

#include "quern/ops/norm/rms_norm.h"

int main() {
  constexpr long long tokens = 3, hidden = 8;
  std::vector<float> x(tokens * hidden), weight(hidden, 0.5f), out(tokens * hidden);
  for (size_t i = 0; i < x.size(); ++i) x[i] = float(i % 5) - 2;

  using quern::DType;
  try {
    quern::norm::rms_norm({.out = {out.data(), DType::f32, {tokens, hidden}},
                           .x = {x.data(), DType::f32, {tokens, hidden}},
                           .weight = {weight.data(), DType::f32, {hidden}},
                           .eps = 1e-5f});
    std::printf("out[0] =");
    for (int h = 0; h < hidden; ++h) std::printf(" %.4f", out[size_t(h)]);
    std::printf("\n");

    // A wrong shape is an error with both values, before anything is launched.
    quern::norm::rms_norm({.out = {out.data(), DType::f32, {tokens, hidden}},
                           .x = {x.data(), DType::f32, {tokens, hidden}},
                           .weight = {weight.data(), DType::f32, {hidden - 1}}});
  } catch (const quern::Error& e) {
    std::printf("%s error: %s\n", quern::name(e.kind()), e.what());
    return e.kind() == quern::ErrorKind::value ? 0 : 1;
  }
  return 1;
}
