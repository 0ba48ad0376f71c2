// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// ldmatrix, stmatrix and mma.sync of a warp, with the fragment layouts of the PTX ISA (9.7.14.5: Matrix Fragments).
#pragma once
#include "quern/kit/emu/memory.cuh"
#include "quern/kit/emu/number.cuh"

namespace quern::emu {

struct LdmatrixPayload {
  const u8* row;  ///< 16 bytes: the row that this lane addresses, or null where the variant does not use the lane
  u32* out;
};

/// Lane 8 * m + r addresses row r of matrix m. Plain: lane t gets elements 2 * (t % 4), +1 of row t / 4. Transposed: of
/// column t / 4, rows 2 * (t % 4), +1.
template <int matrices, bool transposed>
QN_UNWATCHED static void mean_ldmatrix(void** payloads, u32) {
  const Runtime& runtime = *current()->runtime;
  for (u32 lane = 0; lane < 8 * matrices; ++lane)
    runtime.access(lane, static_cast<LdmatrixPayload*>(payloads[lane])->row, 16, false, "ldmatrix");
  for (u32 lane = 0; lane < 32; ++lane)
    runtime.access(lane, static_cast<LdmatrixPayload*>(payloads[lane])->out, 4 * matrices, true, "ldmatrix");
  for (u32 matrix = 0; matrix < matrices; ++matrix) {
    u16 element[8][8];
    for (u32 row = 0; row < 8; ++row) __builtin_memcpy(element[row], static_cast<LdmatrixPayload*>(payloads[8 * matrix + row])->row, 16);
    for (u32 lane = 0; lane < 32; ++lane) {
      const u32 major = lane / 4, minor = 2 * (lane % 4);
      const u32 low = transposed ? element[minor][major] : element[major][minor];
      const u32 high = transposed ? element[minor + 1][major] : element[major][minor + 1];
      static_cast<LdmatrixPayload*>(payloads[lane])->out[matrix] = low | high << 16;
    }
  }
}
template <int matrices, bool transposed>
QN_DEVICE void ldmatrix(u32* out, u32 address, Collective kind, u32 line) {
  const ThreadContext& me = *current();
  LdmatrixPayload payload{nullptr, out};
  if (me.lane < 8 * matrices) payload.row = shared_pointer(address, 16, "ldmatrix");
  me.runtime->collective(kFullMask, kind, &payload, mean_ldmatrix<matrices, transposed>, line);
}

struct StmatrixPayload {
  u8* row;  ///< where the row that this lane addresses goes, or null where the variant does not use the lane
  const u32* in;
};

/// The way back of ldmatrix.
template <int matrices, bool transposed>
QN_UNWATCHED static void mean_stmatrix(void** payloads, u32) {
  const Runtime& runtime = *current()->runtime;
  for (u32 lane = 0; lane < 8 * matrices; ++lane)
    runtime.access(lane, static_cast<StmatrixPayload*>(payloads[lane])->row, 16, true, "stmatrix");
  for (u32 lane = 0; lane < 32; ++lane)
    runtime.access(lane, static_cast<StmatrixPayload*>(payloads[lane])->in, 4 * matrices, false, "stmatrix");
  for (u32 matrix = 0; matrix < matrices; ++matrix) {
    u16 element[8][8];
    for (u32 lane = 0; lane < 32; ++lane) {
      const u32 major = lane / 4, minor = 2 * (lane % 4), pair = static_cast<StmatrixPayload*>(payloads[lane])->in[matrix];
      (transposed ? element[minor][major] : element[major][minor]) = u16(pair);
      (transposed ? element[minor + 1][major] : element[major][minor + 1]) = u16(pair >> 16);
    }
    for (u32 row = 0; row < 8; ++row) __builtin_memcpy(static_cast<StmatrixPayload*>(payloads[8 * matrix + row])->row, element[row], 16);
  }
}
template <int matrices, bool transposed>
QN_DEVICE void stmatrix(u32 address, const u32* in, Collective kind, u32 line) {
  const ThreadContext& me = *current();
  StmatrixPayload payload{nullptr, in};
  if (me.lane < 8 * matrices) payload.row = shared_pointer(address, 16, "stmatrix");
  me.runtime->collective(kFullMask, kind, &payload, mean_stmatrix<matrices, transposed>, line);
}

struct MmaPayload {
  f32* d;
  const u32* a;
  const u32* b;
};
/// Words of the operands in the order of the product: rows of A, rows of pairs of B, rows of D.
template <int k>
struct MmaOperands {
  Words8 a[16];     ///< word j of row i: columns 2 j, 2 j + 1 (k / 2 words)
  Words8 b[k / 2];  ///< word c of row pair j: rows 2 j, 2 j + 1 of column c
  Row8 d[16];
};
/// Register i of A holds row lane / 4 (+ 8 for odd i), columns 2 * (lane % 4), +1 (+ 8 for i >= 2); register i of B
/// rows 2 * (lane % 4), +1 (+ 8 i) of column lane / 4; registers 2 i, 2 i + 1 of D like register i of A.
template <int k>
inline __attribute__((always_inline)) void gather_operands(void** payloads, MmaOperands<k>& to) {
  for (u32 lane = 0; lane < 32; ++lane) {
    const MmaPayload& mine = *static_cast<MmaPayload*>(payloads[lane]);
    const u32 group = lane / 4, pair = lane % 4;
    for (u32 i = 0; i < k / 8; ++i) {
      reinterpret_cast<u32*>(&to.a[group])[pair + 4 * i] = mine.a[2 * i];
      reinterpret_cast<u32*>(&to.a[group + 8])[pair + 4 * i] = mine.a[2 * i + 1];
      reinterpret_cast<u32*>(&to.b[pair + 4 * i])[group] = mine.b[i];
    }
    __builtin_memcpy(reinterpret_cast<f32*>(&to.d[group]) + 2 * pair, mine.d, 8);
    __builtin_memcpy(reinterpret_cast<f32*>(&to.d[group + 8]) + 2 * pair, mine.d + 2, 8);
  }
}
/// D[16][8] += A[16][k] * B[k][8].
template <int k, bool is_bf16>
QN_UNWATCHED static void mean_mma(void** payloads, u32) {
  MmaOperands<k> operands;
  gather_operands<k>(payloads, operands);
  number_mma<k, is_bf16>(operands.a, operands.b, operands.d);
  for (u32 lane = 0; lane < 32; ++lane) {
    f32* out = static_cast<MmaPayload*>(payloads[lane])->d;
    __builtin_memcpy(out, reinterpret_cast<f32*>(&operands.d[lane / 4]) + 2 * (lane % 4), 8);
    __builtin_memcpy(out + 2, reinterpret_cast<f32*>(&operands.d[lane / 4 + 8]) + 2 * (lane % 4), 8);
  }
}
template <int k, bool is_bf16>
QN_DEVICE void mma(f32* d, const u32* a, const u32* b, Collective kind, u32 line) {
  MmaPayload payload{d, a, b};
  current()->runtime->collective(kFullMask, kind, &payload, mean_mma<k, is_bf16>, line);
}

}  // namespace quern::emu

namespace quern::ptx {

/// 8x8 matrices of 16-bit elements from shared memory; lane 8 m + r gives the address of row r of matrix m.
QN_DEVICE void ldmatrix_x1(u32 (&out)[1], u32 address, u32 line = __builtin_LINE()) {
  emu::ldmatrix<1, false>(out, address, emu::Collective::ldmatrix_x1, line);
}
QN_DEVICE void ldmatrix_x2(u32 (&out)[2], u32 address, u32 line = __builtin_LINE()) {
  emu::ldmatrix<2, false>(out, address, emu::Collective::ldmatrix_x2, line);
}
QN_DEVICE void ldmatrix_x4(u32 (&out)[4], u32 address, u32 line = __builtin_LINE()) {
  emu::ldmatrix<4, false>(out, address, emu::Collective::ldmatrix_x4, line);
}
QN_DEVICE void ldmatrix_x1_trans(u32 (&out)[1], u32 address, u32 line = __builtin_LINE()) {
  emu::ldmatrix<1, true>(out, address, emu::Collective::ldmatrix_x1_trans, line);
}
QN_DEVICE void ldmatrix_x2_trans(u32 (&out)[2], u32 address, u32 line = __builtin_LINE()) {
  emu::ldmatrix<2, true>(out, address, emu::Collective::ldmatrix_x2_trans, line);
}
QN_DEVICE void ldmatrix_x4_trans(u32 (&out)[4], u32 address, u32 line = __builtin_LINE()) {
  emu::ldmatrix<4, true>(out, address, emu::Collective::ldmatrix_x4_trans, line);
}

/// 8x8 matrices of 16-bit elements into shared memory; lane 8 m + r gives the address of row r of matrix m, in[m] is what
/// ldmatrix would read.
QN_DEVICE void stmatrix_x1(u32 address, const u32 (&in)[1], u32 line = __builtin_LINE()) {
  emu::stmatrix<1, false>(address, in, emu::Collective::stmatrix_x1, line);
}
QN_DEVICE void stmatrix_x2(u32 address, const u32 (&in)[2], u32 line = __builtin_LINE()) {
  emu::stmatrix<2, false>(address, in, emu::Collective::stmatrix_x2, line);
}
QN_DEVICE void stmatrix_x4(u32 address, const u32 (&in)[4], u32 line = __builtin_LINE()) {
  emu::stmatrix<4, false>(address, in, emu::Collective::stmatrix_x4, line);
}
QN_DEVICE void stmatrix_x1_trans(u32 address, const u32 (&in)[1], u32 line = __builtin_LINE()) {
  emu::stmatrix<1, true>(address, in, emu::Collective::stmatrix_x1_trans, line);
}
QN_DEVICE void stmatrix_x2_trans(u32 address, const u32 (&in)[2], u32 line = __builtin_LINE()) {
  emu::stmatrix<2, true>(address, in, emu::Collective::stmatrix_x2_trans, line);
}
QN_DEVICE void stmatrix_x4_trans(u32 address, const u32 (&in)[4], u32 line = __builtin_LINE()) {
  emu::stmatrix<4, true>(address, in, emu::Collective::stmatrix_x4_trans, line);
}

/// D += A * B with f32 accumulators, A row-major, B column-major.
QN_DEVICE void mma_m16n8k16_bf16(f32 (&d)[4], const u32 (&a)[4], const u32 (&b)[2], u32 line = __builtin_LINE()) {
  emu::mma<16, true>(d, a, b, emu::Collective::mma_m16n8k16_bf16, line);
}
QN_DEVICE void mma_m16n8k16_f16(f32 (&d)[4], const u32 (&a)[4], const u32 (&b)[2], u32 line = __builtin_LINE()) {
  emu::mma<16, false>(d, a, b, emu::Collective::mma_m16n8k16_f16, line);
}
QN_DEVICE void mma_m16n8k8_bf16(f32 (&d)[4], const u32 (&a)[2], const u32 (&b)[1], u32 line = __builtin_LINE()) {
  emu::mma<8, true>(d, a, b, emu::Collective::mma_m16n8k8_bf16, line);
}
QN_DEVICE void mma_m16n8k8_f16(f32 (&d)[4], const u32 (&a)[2], const u32 (&b)[1], u32 line = __builtin_LINE()) {
  emu::mma<8, false>(d, a, b, emu::Collective::mma_m16n8k8_f16, line);
}

}  // namespace quern::ptx
