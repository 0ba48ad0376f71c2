// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/activation.cuh"
#include "quern/kit/conform/params.h"
#include "quern/kit/kit.cuh"
#include "quern/kit/tanh.cuh"

namespace quern::conform {

/// in: f32 [n]; out [n, 4]: as it is, relu, gelu, silu
QN_DEVICE void activations_all(const Params& p) {
  for (int i = int(threadIdx.x); i < p.n; i += int(blockDim.x)) {
    const f32 x = static_cast<const f32*>(p.in)[i];
    f32* out = static_cast<f32*>(p.out) + 4 * i;
    out[0] = activated<Activation::none>(x);
    out[1] = activated<Activation::relu>(x);
    out[2] = activated<Activation::gelu>(x);
    out[3] = activated<Activation::silu>(x);
  }
}

/// in: f32 [n]; out [n]
QN_DEVICE void tanh_all(const Params& p) {
  for (int i = int(threadIdx.x); i < p.n; i += int(blockDim.x))
    static_cast<f32*>(p.out)[i] = accurate_tanh(static_cast<const f32*>(p.in)[i]);
}

}  // namespace quern::conform
