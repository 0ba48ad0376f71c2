// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// How wgmma finds an operand in shared memory (PTX ISA 9.7.15.5.1.2, Shared Memory Matrix Layout). Equal in both worlds.
//
// An operand is rows along M or N, and 32 bytes of K for one instruction. In memory it consists of atoms of 8 rows or 8
// values of k, each `w` bytes wide, w = 16, 32, 64, 128 by the swizzle. Two strides lead from atom to atom:
//
//             an atom is                       stride_mn: to the next    stride_k: to the next
//   K-major   8 rows, each w bytes of K        8 rows                    16 bytes of K (only without swizzle)
//   MN-major  8 values of k, each w bytes      w bytes along M or N      8 values of k
//             along M or N
#pragma once
#include "quern/kit/types.cuh"

namespace quern {

/// Bytes of a row of an atom.
QN_HOST_DEVICE constexpr u32 width_of(Swizzle swizzle) { return 16u << int(swizzle); }

/// Bits 0-13 address, 16-29 leading and 32-45 stride byte offset, each in units of 16 bytes; 49-51 base offset; 62-63
/// swizzle: 0 none, 1 128, 2 64, 3 32 bytes.
struct MatrixDescriptor {
  u64 bits;
  /// The same matrix `bytes` further, a multiple of 16 below 2^18: the next 32 bytes of K in an atom, the next tile.
  QN_HOST_DEVICE constexpr MatrixDescriptor advanced(u32 bytes) const {
    // The address may wrap: it must not carry into the next field.
    return {(bits & ~u64(0x3fff)) | ((bits + (bytes >> 4)) & 0x3fff)};
  }
};

QN_HOST_DEVICE constexpr MatrixDescriptor matrix_descriptor(u32 address, Swizzle swizzle, u32 leading, u32 stride, u32 base_offset) {
  const auto encoded = [](u32 bytes) { return u64((bytes & 0x3ffff) >> 4); };
  const u64 mode = swizzle == Swizzle::none ? 0 : 4 - u64(swizzle);
  return {encoded(address) | encoded(leading) << 16 | encoded(stride) << 32 | u64(base_offset & 7) << 49 | mode << 62};
}

/// Of a K-major operand: `address` as ptx::smem_address gives it. base_offset is for atoms whose pattern does not begin at
/// a multiple of 8 w bytes: bits 7-9 of the address where it begins.
QN_HOST_DEVICE constexpr MatrixDescriptor k_major_descriptor(u32 address, Swizzle swizzle, u32 stride_mn, u32 stride_k = 16,
                                                             u32 base_offset = 0) {
  return matrix_descriptor(address, swizzle, stride_k, stride_mn, base_offset);
}
/// The usual tile: rows of w bytes behind each other.
QN_HOST_DEVICE constexpr MatrixDescriptor k_major_descriptor(u32 address, Swizzle swizzle) {
  return k_major_descriptor(address, swizzle, 8 * width_of(swizzle));
}
/// Of an MN-major operand. Without swizzle the two strides change their fields.
QN_HOST_DEVICE constexpr MatrixDescriptor mn_major_descriptor(u32 address, Swizzle swizzle, u32 stride_mn, u32 stride_k,
                                                              u32 base_offset = 0) {
  return swizzle == Swizzle::none ? matrix_descriptor(address, swizzle, stride_k, stride_mn, base_offset)
                                  : matrix_descriptor(address, swizzle, stride_mn, stride_k, base_offset);
}

/// What wgmma does with its operands beside multiplying them. Major::mn is for elements of 16 bits only.
struct WgmmaForm {
  Major a = Major::k, b = Major::k;
  bool negate_a = false, negate_b = false;
};

/// Pairs that wgmma multiplies: equal types of 16 bits, or any of 8.
template <class A, class B> constexpr bool kWgmmaMultiplies = false;
template <> constexpr bool kWgmmaMultiplies<bf16, bf16> = true;
template <> constexpr bool kWgmmaMultiplies<f16, f16> = true;
template <> constexpr bool kWgmmaMultiplies<e4m3, e4m3> = true;
template <> constexpr bool kWgmmaMultiplies<e4m3, e5m2> = true;
template <> constexpr bool kWgmmaMultiplies<e5m2, e4m3> = true;
template <> constexpr bool kWgmmaMultiplies<e5m2, e5m2> = true;

/// Types whose product may be f16.
template <class A> constexpr bool kWgmmaGivesF16 = true;
template <> constexpr bool kWgmmaGivesF16<bf16> = false;

/// What both worlds demand of a wgmma with n columns whose result is f16 (half) or f32.
template <class A, class B, WgmmaForm form, int n, bool half> QN_HOST_DEVICE constexpr bool is_wgmma() {
  static_assert(kWgmmaMultiplies<A, B>, "wgmma multiplies bf16 x bf16, f16 x f16 and pairs of e4m3, e5m2");
  static_assert(n % 8 == 0 && n >= 8 && n <= 256, "wgmma has 8, 16 .. 256 columns: f32 d[n / 2], or u32 d[n / 4] for f16");
  static_assert(sizeof(A) == 2 || (form.a == Major::k && form.b == Major::k), "operands of 8 bits are K-major");
  static_assert(!half || (kWgmmaGivesF16<A> && n % 16 == 0), "f16 results are of f16 and 8 bits, with n a multiple of 16");
  return true;
}

}  // namespace quern
