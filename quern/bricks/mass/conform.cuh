// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// For tests: weights, powers and wide integers of many inputs.
#pragma once
#include "quern/bricks/mass/mass.cuh"
#include "quern/kit/conform/params.h"

namespace quern::conform {

/// in: bits of a logit and of a temperature; out: mantissa and exponent.
QN_DEVICE void logit_weights(const Params& p) {
  const u32* in = static_cast<const u32*>(p.in);
  u32* out = static_cast<u32*>(p.out);
  for (i32 i = i32(blockIdx.x * blockDim.x + threadIdx.x); i < p.n; i += i32(gridDim.x * blockDim.x)) {
    const Weight w = weight_of_logit(ptx::f32_of_bits(in[2 * i]), logit_scale(ptx::f32_of_bits(in[2 * i + 1])));
    out[2 * i] = w.mantissa, out[2 * i + 1] = u32(w.exponent);
  }
}

/// in: bits of fractions; out: those of 2^f.
QN_DEVICE void powers(const Params& p) {
  const u32* in = static_cast<const u32*>(p.in);
  u32* out = static_cast<u32*>(p.out);
  for (i32 i = i32(blockIdx.x * blockDim.x + threadIdx.x); i < p.n; i += i32(gridDim.x * blockDim.x))
    out[i] = ptx::bits_of(exp2_of_fraction(ptx::f32_of_bits(in[i])));
}

/// in: a of 128 bits, b of 64, and a shift; out: a + b, a - b, a * b, floor(a * b / 2^64), a << shift, floor and ceil of a / 2^shift.
QN_DEVICE void wide(const Params& p) {
  const u64* in = static_cast<const u64*>(p.in);
  U128* out = static_cast<U128*>(p.out);
  for (i32 i = i32(blockIdx.x * blockDim.x + threadIdx.x); i < p.n; i += i32(gridDim.x * blockDim.x)) {
    const U128 a{in[4 * i], in[4 * i + 1]};
    const u64 b = in[4 * i + 2];
    const int by = int(in[4 * i + 3]);
    const U128 results[] = {a + U128{b, 0},      a - U128{b, 0},       product(a, b),          scaled_by_bits(b, a),
                            shifted_left(a, by), shifted_right(a, by), shifted_right_up(a, by)};
    for (int j = 0; j < 7; ++j) out[7 * i + j] = results[j];
  }
}

}  // namespace quern::conform
