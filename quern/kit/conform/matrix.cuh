// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// One warp. ldmatrix: in is the 16-bit content of four 8x8 matrices. mma: the fragments come from plain row-major
// matrices by the index formulas of the kernel, so that the layout is what is tested.
#pragma once
#include "quern/kit/conform/params.h"
#include "quern/kit/world.cuh"

namespace quern::conform {

/// out: x1, x2, x4, then the same transposed: 14 registers per lane [14, 32]
QN_DEVICE void ldmatrix_all(const Params& p) {
  QN_SMEM(smem);
  const u32 lane = ptx::lane_id();
  ptx::st_shared(smem + 16 * lane, ptx::ld_global<u32x4>(static_cast<const u32x4*>(p.in) + lane));
  ptx::sync_block();
  const u32 row = ptx::smem_address(smem) + 16 * lane;
  u32 a[1], b[2], c[4], d[1], e[2], f[4];
  ptx::ldmatrix_x1(a, row);
  ptx::ldmatrix_x2(b, row);
  ptx::ldmatrix_x4(c, row);
  ptx::ldmatrix_x1_trans(d, row);
  ptx::ldmatrix_x2_trans(e, row);
  ptx::ldmatrix_x4_trans(f, row);
  u32* out = static_cast<u32*>(p.out) + lane;
  const u32 all[14] = {a[0], b[0], b[1], c[0], c[1], c[2], c[3], d[0], e[0], e[1], f[0], f[1], f[2], f[3]};
  for (int k = 0; k < 14; ++k) out[32 * k] = all[k];
}

/// in: A [16, k] then B [k, 8], 16-bit row-major, then C [16, 8] f32; out: C + A B [16, 8]
template <int k, bool is_bf16>
QN_DEVICE void mma(const Params& p) {
  const u16* a = static_cast<const u16*>(p.in);
  const u16* b = a + 16 * k;
  const f32* c = reinterpret_cast<const f32*>(b + 8 * k);
  f32* out = static_cast<f32*>(p.out);
  const u32 group = ptx::lane_id() / 4, pair = 2 * (ptx::lane_id() % 4);
  u32 ra[k / 4], rb[k / 8];
  f32 d[4];
  for (u32 i = 0; i < k / 4; ++i) {
    const u32 row = group + (i % 2) * 8, column = pair + i / 2 * 8;
    ra[i] = u32(a[row * k + column]) | u32(a[row * k + column + 1]) << 16;
  }
  for (u32 i = 0; i < k / 8; ++i) {
    const u32 row = pair + i * 8;
    rb[i] = u32(b[row * 8 + group]) | u32(b[(row + 1) * 8 + group]) << 16;
  }
  for (u32 i = 0; i < 4; ++i) d[i] = c[(group + i / 2 * 8) * 8 + pair + i % 2];
  if constexpr (k == 16 && is_bf16) ptx::mma_m16n8k16_bf16(d, ra, rb);
  else if constexpr (k == 16) ptx::mma_m16n8k16_f16(d, ra, rb);
  else if constexpr (is_bf16) ptx::mma_m16n8k8_bf16(d, ra, rb);
  else ptx::mma_m16n8k8_f16(d, ra, rb);
  for (u32 i = 0; i < 4; ++i) out[(group + i / 2 * 8) * 8 + pair + i % 2] = d[i];
}

}  // namespace quern::conform
