// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What host and device agree on: integer names, DType, constexpr arithmetic. Plain C++20 that g++, clang++, nvcc and
// NVRTC read alike; it includes nothing. The only header of kit that host code may include.
#pragma once

#if defined(__CUDACC__)
#define QN_HOST_DEVICE __host__ __device__
#else
#define QN_HOST_DEVICE
#endif

namespace quern {

using i8 = signed char;
using u8 = unsigned char;
using i16 = short;
using u16 = unsigned short;
using i32 = int;
using u32 = unsigned int;
using i64 = long long;
using u64 = unsigned long long;

/// Element type of a tensor. The values enter compile keys and recorded traces: append, never renumber.
enum class DType : i32 { f32, f16, bf16, e4m3, e5m2, i32, i64, u8, f64, i8 };
constexpr int kDTypeCount = 10;

/// Bytes of one element.
QN_HOST_DEVICE constexpr int size_of(DType t) {
  switch (t) {
    case DType::f64:
    case DType::i64: return 8;
    case DType::f32:
    case DType::i32: return 4;
    case DType::f16:
    case DType::bf16: return 2;
    default: return 1;
  }
}

/// Neighbours in a row that share a scale where numbers are stored in FP8, as FP8 products read them; a block of a weight has as many rows.
constexpr int kFp8Group = 128;
/// Lanes that hold such a group in registers.
constexpr int kFp8GroupLanes = 8;

/// What a kernel makes of a sum before it stores it. The values enter compile keys: append, never renumber.
enum class Activation : i32 { none, relu, gelu, silu };
/// Coefficient of y^power, 0 <= power < kGeluTerms, in log2 of the normal distribution's tail, P(X > y). A minimax fit of
/// log2(erfc(y / sqrt 2) / 2) on [0, 6]: the tail's error is at most 4 * 2^-24, and 3.2e-4 of the tail itself. Beyond it falls
/// monotonously to 2^-113 at y = 14, the last that it is for: at 14.07 it would rise.
constexpr int kGeluTerms = 7;
constexpr float kGeluLast = 14.f;
QN_HOST_DEVICE constexpr float gelu_tail(int power) {
  constexpr float of[kGeluTerms] = {-0x1.fffff6p-1f, -0x1.26b07cp+0f,  -0x1.d60164p-2f, -0x1.b356d8p-5f,
                                    0x1.03f64ep-7f,  -0x1.819336p-11f, 0x1.010cc4p-15f};
  return of[power];
}

/// Along which dimension of a matrix operand neighbours in memory lie: K, or the other one, M or N. The values enter compile keys.
enum class Major : i32 { k, mn };

/// Width in bytes within which a tensor map permutes 16-byte chunks of shared memory.
enum class Swizzle : i32 { none, b32, b64, b128 };
/// Where the byte at a linear shared-memory address lies: bits 4.. (1, 2 or 3 of them) are xored with bits 7.. Both bytes
/// are of the shared window, not of the tile, so a tile that begins at a multiple of 1024 has the same pattern everywhere.
QN_HOST_DEVICE constexpr u32 swizzled(Swizzle mode, u32 address) { return address ^ ((address >> 7 & ((1u << int(mode)) - 1)) << 4); }

/// CUDA's tiled tensor map (128 bytes, 64-byte aligned), opaque. A kernel has it in its Params, by value.
struct alignas(64) TensorMap {
  u64 opaque[16];
};

template <class T> QN_HOST_DEVICE constexpr T min_of(T a, T b) { return b < a ? b : a; }
template <class T> QN_HOST_DEVICE constexpr T max_of(T a, T b) { return a < b ? b : a; }
/// Smallest integer >= a / b, for a >= 0, b > 0.
template <class T> QN_HOST_DEVICE constexpr T ceil_div(T a, T b) { return (a + b - 1) / b; }
/// Smallest multiple of b that is >= a, for a >= 0, b > 0.
template <class T> QN_HOST_DEVICE constexpr T round_up(T a, T b) { return ceil_div(a, b) * b; }

/// Shared memory of a pipeline's mbarriers (kit/pipeline.cuh).
QN_HOST_DEVICE constexpr u32 pipeline_bytes(int stages) { return 16 * u32(stages); }

/// Exact division of a u32 below 2^31 by a fixed divisor in [1, 2^31), without a division: a multiplication by
/// ceil(2^(31 + shift) / divisor) whose error stays below 2^shift (Granlund and Montgomery, PLDI 1994).
struct Divisor {
  u32 value;
  u32 multiplier;
  u32 shift;
};
QN_HOST_DEVICE constexpr Divisor divisor(u32 value) {
  u32 shift = 0;
  while ((u64(1) << shift) < value) ++shift;
  return {value, u32(((u64(1) << (31 + shift)) + value - 1) / value), shift};
}
QN_HOST_DEVICE constexpr u32 quotient(u32 a, const Divisor& d) { return u32((u64(a) * d.multiplier) >> (31 + d.shift)); }

}  // namespace quern
