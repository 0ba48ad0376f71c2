// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// From DType, a value of Config, to the type that is stored, and conversions to and from f32.
#pragma once
#include "quern/kit/world.cuh"

namespace quern {

template <DType D> struct StoredType;
template <> struct StoredType<DType::f32> {
  using type = f32;
};
template <> struct StoredType<DType::f16> {
  using type = f16;
};
template <> struct StoredType<DType::bf16> {
  using type = bf16;
};
template <> struct StoredType<DType::e4m3> {
  using type = e4m3;
};
template <> struct StoredType<DType::e5m2> {
  using type = e5m2;
};
template <> struct StoredType<DType::i8> {
  using type = s8;
};
template <> struct StoredType<DType::i32> {
  using type = i32;
};
template <> struct StoredType<DType::i64> {
  using type = i64;
};
/// The type of one stored element.
template <DType D> using dtype_t = typename StoredType<D>::type;

QN_DEVICE f32 to_f32(f32 x) { return x; }
QN_DEVICE f32 to_f32(bf16 x) { return ptx::to_f32(x); }
QN_DEVICE f32 to_f32(f16 x) { return ptx::to_f32(x); }
QN_DEVICE f32 to_f32(e4m3 x) { return ptx::to_f32(x); }
QN_DEVICE f32 to_f32(e5m2 x) { return ptx::to_f32(x); }
QN_DEVICE f32 to_f32(e8m0 x) { return ptx::to_f32(x); }

QN_DEVICE void round_f32(f32 x, f32& to) { to = x; }
QN_DEVICE void round_f32(f32 x, bf16& to) { to = ptx::to_bf16(x); }
QN_DEVICE void round_f32(f32 x, f16& to) { to = ptx::to_f16(x); }
QN_DEVICE void round_f32(f32 x, e4m3& to) { to = ptx::to_e4m3(x); }
QN_DEVICE void round_f32(f32 x, e5m2& to) { to = ptx::to_e5m2(x); }
QN_DEVICE void round_f32(f32 x, s8& to) { to = ptx::to_s8(x); }
QN_DEVICE void round_f32(f32 x, e8m0& to) { to = ptx::to_e8m0(x); }
/// Rounds to nearest even; fp8 and s8 saturate. To e8m0: of a power of two.
template <class T> QN_DEVICE T from_f32(f32 x) {
  T rounded;
  round_f32(x, rounded);
  return rounded;
}

}  // namespace quern
