// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[i, j] = e2m1(x[i, j]) * scales[i, j / group] * global_scale
// A thread has up to 16 columns of one group in an access: each_chunk.
#pragma once
#include "quern/bricks/rows/chunks.cuh"
#include "quern/ops/quant/dequantise_fp4/spec.h"

namespace quern::quant {

/// What an access keeps until it is stored: bytes of x, and their scale.
template <DequantiseFp4Config C> struct Fp4Access {
  Packed<e4m3, C.chunks.vector> x;
  f32 scale;
};

/// The value of the low four bits: those of its exponent and fraction in their places in an f32, whose bias is 126 more.
QN_DEVICE f32 value_of_e2m1(u32 bits) { return ptx::f32_of_bits((bits & 8) << 28 | (bits & 7) << 22) * 0x1p126f; }

/// Byte `at` of an access.
template <int kVector> QN_DEVICE u32 byte_of(Packed<e4m3, kVector> x, int at) {
  if constexpr (kVector >= 4) return word(x.raw, at / 4) >> 8 * (at % 4);
  else return u32(x.raw) >> 8 * at;
}

template <DequantiseFp4Config C> QN_DEVICE void dequantise_fp4_chunk(const DequantiseFp4Params& p) {
  using Out = dtype_t<C.out_dtype>;
  constexpr int kVector = C.chunks.vector;
  static_assert(C.group / 2 % kVector == 0 && 2 * kVector % C.store == 0);
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  f32 global = 1.f;
  if constexpr (C.has_global != 0) global = ptx::ld_global<f32>(p.global_scale);
  rows::each_chunk<Fp4Access<C>, C.chunks, C.threads>(
      p.m, p.pairs,
      [&](i64 row, i64 column, Fp4Access<C>& held) {
        held.x = load_packed<e4m3, kVector>(static_cast<const e4m3*>(p.x) + row * p.x_stride + column);
        const u8 scale = ptx::ld_global<u8>(static_cast<const u8*>(p.scales) + row * p.scale_strides[0] +
                                            i64(u64(column) / (C.group / 2)) * p.scale_strides[1]);
        if constexpr (C.e8m0 != 0) held.scale = to_f32(e8m0{scale});
        else held.scale = to_f32(e4m3{scale});
      },
      [&](i64 row, i64 column, const Fp4Access<C>& held) {
        Out* out = static_cast<Out*>(p.out) + row * p.out_stride + 2 * column;
        QN_UNROLL
        for (int first = 0; first < 2 * kVector; first += C.store) {
          f32 v[C.store];
          QN_UNROLL
          for (int j = 0; j < C.store; ++j) {
            v[j] = value_of_e2m1(byte_of(held.x, (first + j) / 2) >> 4 * ((first + j) % 2)) * held.scale;
            if constexpr (C.has_global != 0) v[j] = v[j] * global;
          }
          store_f32<Out, C.store>(out + first, v);
        }
      });
}

}  // namespace quern::quant
