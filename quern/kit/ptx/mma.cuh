// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// 9.7.14.5 warp-level matrix instructions: ldmatrix, stmatrix, mma.sync.
#pragma once
#include "quern/kit/ptx/memory.cuh"

namespace quern::ptx {

/// 8x8 matrices of 16-bit elements from shared memory; lane 8 m + r gives the address of row r of matrix m.
QN_DEVICE void ldmatrix_x1(u32 (&out)[1], u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(out[0]) : "r"(address) : "memory");
}
QN_DEVICE void ldmatrix_x2(u32 (&out)[2], u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(out[0]), "=r"(out[1]) : "r"(address) : "memory");
}
QN_DEVICE void ldmatrix_x4(u32 (&out)[4], u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(address)
               : "memory");
}
QN_DEVICE void ldmatrix_x1_trans(u32 (&out)[1], u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(out[0]) : "r"(address) : "memory");
}
QN_DEVICE void ldmatrix_x2_trans(u32 (&out)[2], u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(out[0]), "=r"(out[1]) : "r"(address) : "memory");
}
QN_DEVICE void ldmatrix_x4_trans(u32 (&out)[4], u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(address)
               : "memory");
}

/// 9.7.14.5.16 stmatrix: 8x8 matrices of 16-bit elements into shared memory; lane 8 m + r gives the address of row r of
/// matrix m, in[m] is what ldmatrix would read. sm_90 and above.
QN_DEVICE void stmatrix_x1(u32 address, const u32 (&in)[1]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" ::"r"(address), "r"(in[0]) : "memory");
}
QN_DEVICE void stmatrix_x2(u32 address, const u32 (&in)[2]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(address), "r"(in[0]), "r"(in[1]) : "memory");
}
QN_DEVICE void stmatrix_x4(u32 address, const u32 (&in)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(in[0]), "r"(in[1]), "r"(in[2]),
               "r"(in[3])
               : "memory");
}
QN_DEVICE void stmatrix_x1_trans(u32 address, const u32 (&in)[1]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" ::"r"(address), "r"(in[0]) : "memory");
}
QN_DEVICE void stmatrix_x2_trans(u32 address, const u32 (&in)[2]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(address), "r"(in[0]), "r"(in[1]) : "memory");
}
QN_DEVICE void stmatrix_x4_trans(u32 address, const u32 (&in)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(in[0]), "r"(in[1]), "r"(in[2]),
               "r"(in[3])
               : "memory");
}

/// D += A * B with f32 accumulators, A row-major, B column-major.
QN_DEVICE void mma_m16n8k16_bf16(f32 (&d)[4], const u32 (&a)[4], const u32 (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
QN_DEVICE void mma_m16n8k16_f16(f32 (&d)[4], const u32 (&a)[4], const u32 (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
QN_DEVICE void mma_m16n8k8_bf16(f32 (&d)[4], const u32 (&a)[2], const u32 (&b)[1]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}
QN_DEVICE void mma_m16n8k8_f16(f32 (&d)[4], const u32 (&a)[2], const u32 (&b)[1]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}

}  // namespace quern::ptx
