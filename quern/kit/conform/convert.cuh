// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Each thread converts elements in steps of the grid.
#pragma once
#include "quern/kit/conform/params.h"
#include "quern/kit/world.cuh"

namespace quern::conform {

/// in: f32 patterns [n]; out: {bf16, f16, e4m3, e5m2} patterns as u32 [n, 4]
QN_DEVICE void narrow(const Params& p) {
  for (int i = int(blockIdx.x * blockDim.x + threadIdx.x); i < p.n; i += int(gridDim.x * blockDim.x)) {
    const f32 x = ptx::ld_global<f32>(static_cast<const u32*>(p.in) + i);
    const u32x4 out{ptx::to_bf16(x).bits, ptx::to_f16(x).bits, ptx::to_e4m3(x).bits, ptx::to_e5m2(x).bits};
    ptx::st_global(static_cast<u32x4*>(p.out) + i, out);
  }
}

/// in: f32 patterns [2 n]; out: packed {bf16x2, f16x2, e4m3x2, e5m2x2} of neighbours as u32 [n, 4]
QN_DEVICE void narrow_pairs(const Params& p) {
  for (int i = int(blockIdx.x * blockDim.x + threadIdx.x); i < p.n; i += int(gridDim.x * blockDim.x)) {
    const u32x2 pair = ptx::ld_global<u32x2>(static_cast<const u32x2*>(p.in) + i);
    const f32 low = ptx::f32_of_bits(pair.x), high = ptx::f32_of_bits(pair.y);
    const u32x4 out{ptx::pack_bf16(low, high), ptx::pack_f16(low, high), ptx::pack_e4m3(low, high), ptx::pack_e5m2(low, high)};
    ptx::st_global(static_cast<u32x4*>(p.out) + i, out);
  }
}

/// out: f32 patterns of the i-th {bf16, f16, e4m3, e5m2} [n, 4]
QN_DEVICE void widen_all(const Params& p) {
  for (int i = int(blockIdx.x * blockDim.x + threadIdx.x); i < p.n; i += int(gridDim.x * blockDim.x)) {
    const u32x4 out{ptx::bits_of(ptx::to_f32(bf16{u16(i)})), ptx::bits_of(ptx::to_f32(f16{u16(i)})), ptx::bits_of(ptx::to_f32(e4m3{u8(i)})),
                    ptx::bits_of(ptx::to_f32(e5m2{u8(i)}))};
    ptx::st_global(static_cast<u32x4*>(p.out) + i, out);
  }
}

/// out: unpacked pairs (i, 65535 - i) of bf16, f16; (i, i >> 8) of e4m3, e5m2: 8 f32 patterns each
QN_DEVICE void widen_pairs(const Params& p) {
  for (int i = int(blockIdx.x * blockDim.x + threadIdx.x); i < p.n; i += int(gridDim.x * blockDim.x)) {
    f32 v[8];
    const u32 pair = u32(i) | u32(65535 - i) << 16;
    ptx::unpack_bf16(pair, v[0], v[1]);
    ptx::unpack_f16(pair, v[2], v[3]);
    ptx::unpack_e4m3(u16(i), v[4], v[5]);
    ptx::unpack_e5m2(u16(i), v[6], v[7]);
    for (int j = 0; j < 8; ++j) static_cast<u32*>(p.out)[8 * i + j] = ptx::bits_of(v[j]);
  }
}

/// out: f16 pairs of the bytes of i as {e4m3x2, e5m2x2} [n, 2]
QN_DEVICE void f16_of_bytes(const Params& p) {
  for (int i = int(blockIdx.x * blockDim.x + threadIdx.x); i < p.n; i += int(gridDim.x * blockDim.x))
    ptx::st_global(static_cast<u32x2*>(p.out) + i, u32x2{ptx::f16x2_of_e4m3x2(u16(i)), ptx::f16x2_of_e5m2x2(u16(i))});
}

/// in: f32 patterns [n]; out: {s8, e8m0 of the power of two above |x|, the f32 pattern of e8m0 byte i, 0} as u32 [n, 4]
QN_DEVICE void narrow_to_s8_and_e8m0(const Params& p) {
  for (int i = int(blockIdx.x * blockDim.x + threadIdx.x); i < p.n; i += int(gridDim.x * blockDim.x)) {
    const f32 x = ptx::ld_global<f32>(static_cast<const u32*>(p.in) + i);
    const u32x4 out{ptx::to_s8(x).bits, ptx::to_e8m0(ptx::power_of_two_above(ptx::fabs(x))).bits, ptx::bits_of(ptx::to_f32(e8m0{u8(i)})),
                    0};
    ptx::st_global(static_cast<u32x4*>(p.out) + i, out);
  }
}

}  // namespace quern::conform
