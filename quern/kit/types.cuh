// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Number types and small vectors of kernels, equal in both worlds. Storage only: arithmetic happens in f32.
#pragma once
#include "quern/kit/abi.h"

namespace quern {

struct bf16 {
  u16 bits;
};
struct f16 {
  u16 bits;
};
struct e4m3 {
  u8 bits;
};
struct e5m2 {
  u8 bits;
};
/// An integer from -127 to 127, in two's complement.
struct s8 {
  u8 bits;
};
/// 2^(bits - 127), the scales of OCP's MX formats; 255 is NaN.
struct e8m0 {
  u8 bits;
};

struct alignas(8) u32x2 {
  u32 x, y;
};
struct alignas(16) u32x4 {
  u32 x, y, z, w;
};

/// What the L2 keeps when it runs full: the policies that createpolicy would encode.
enum class CachePolicy : u64 {
  evict_normal = 0x1000000000000000ull,
  evict_first = 0x12f0000000000000ull,
  evict_last = 0x14f0000000000000ull,
};

constexpr int kWarpSize = 32;
constexpr u32 kFullMask = 0xffffffffu;

}  // namespace quern
