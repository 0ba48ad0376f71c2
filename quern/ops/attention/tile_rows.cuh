// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Rows of 16-bit elements in shared memory, as the family's kernels keep q, K and V.
//
// Shared memory holds rows of head_dim elements without padding. The 16-byte chunk c of row r lies at c ^ x(r): ldmatrix
// reads one chunk of 8 rows, and they hit 8 different banks of 16 bytes. With n = head_dim / 8 chunks a row and g the largest
// power of two <= 8 that divides n, row r starts at bank n * r mod 8, which takes 8 / g values; x(r) = (r / (8 / g)) % g
// supplies the other g. Bits below g are exchanged only, so that a row stays in place for every n.
#pragma once
#include "quern/kit/kit.cuh"

namespace quern::attention {

constexpr float kLog2E = 1.44269504088896341f;

/// Byte offset of a 16-byte chunk in a tile.
template <int kHeadDim> QN_DEVICE u32 chunk_offset(u32 row, u32 chunk) {
  constexpr u32 kChunks = kHeadDim / 8;
  constexpr u32 kGroup = kChunks % 8 == 0 ? 8 : kChunks % 4 == 0 ? 4 : kChunks % 2 == 0 ? 2 : 1;
  return row * (kHeadDim * 2) + ((chunk ^ ((row / (8 / kGroup)) & (kGroup - 1))) * 16);
}

/// One copy of kBytes, zeros where the token is not read.
template <int kBytes> QN_DEVICE void copy_bytes(u8* to, const u8* from, bool read) {
  if constexpr (kBytes == 16) {
    ptx::cp_async_cg(ptx::smem_address(to), from, read ? 16 : 0);
  } else if constexpr (kBytes >= 4) {
    ptx::cp_async<kBytes>(ptx::smem_address(to), from, read ? kBytes : 0);
  } else {  // cp.async moves at least 4 bytes
    ptx::st_shared<u16>(to, read ? ptx::ld_global_nc<u16>(from) : u16(0));
  }
}

/// Two FP8 numbers as f16.
QN_DEVICE u32 f16_pair_of(u16 pair, e4m3) { return ptx::f16x2_of_e4m3x2(pair); }
QN_DEVICE u32 f16_pair_of(u16 pair, e5m2) { return ptx::f16x2_of_e5m2x2(pair); }
/// Two FP8 numbers of T as f16 or bf16, exactly: both have every value of e4m3 and e5m2.
template <class T> QN_DEVICE u32 widen_pair(u32 pair, f16) { return f16_pair_of(u16(pair), T{}); }
template <class T> QN_DEVICE u32 widen_pair(u32 pair, bf16) {
  f32 low, high;
  ptx::unpack_f16(f16_pair_of(u16(pair), T{}), low, high);
  return ptx::pack_bf16(low, high);
}
/// Eight FP8 numbers become a 16-byte chunk.
template <class T, class To> QN_DEVICE u32x4 widen_eight(const u32x2& x) {
  return {widen_pair<T>(x.x, To{}), widen_pair<T>(x.x >> 16, To{}), widen_pair<T>(x.y, To{}), widen_pair<T>(x.y >> 16, To{})};
}

/// kBytes of a row of T, from byte `byte` on, into row `row` of a tile of kWidth 16-bit elements; zeros where `read` is false.
/// FP8 becomes `To`.
template <class T, class To, int kBytes, int kWidth> QN_DEVICE void copy_unit(u8* tile, u32 row, u32 byte, const u8* from, bool read) {
  if constexpr (sizeof(T) == 2) {
    copy_bytes<kBytes>(tile + chunk_offset<kWidth>(row, byte / 16) + byte % 16, from + byte, read);
  } else {
    u8* to = tile + chunk_offset<kWidth>(row, byte / 8) + byte % 8 * 2;
    f32 x[kBytes];
    QN_UNROLL
    for (int i = 0; i < kBytes; ++i) x[i] = 0.f;
    if (read) load_f32<T, kBytes>(reinterpret_cast<const T*>(from + byte), x);
    ptx::st_shared<typename Packed<To, kBytes>::Raw>(to, pack<To, kBytes>(x).raw);
  }
}

/// Bytes of one unit: FP8 becomes twice as wide.
QN_HOST_DEVICE constexpr i32 unit_bytes(DType dtype, i32 access) { return size_of(dtype) == 1 ? min_of(access, 8) : access; }

/// A row of a tile by 8 lanes.
template <class T, class To, int kBytes, int kWidth> QN_DEVICE void copy_row(u8* tile, u32 row, const u8* from, bool read) {
  constexpr u32 kUnits = kWidth * u32(sizeof(T)) / kBytes;
  const u32 lane = ptx::lane_id() % 8;
  if constexpr (kBytes >= 8) {
    QN_UNROLL
    for (u32 pass = 0; pass < ceil_div(kUnits, 8u); ++pass)
      if (kUnits % 8 == 0 || lane + 8 * pass < kUnits) copy_unit<T, To, kBytes, kWidth>(tile, row, (lane + 8 * pass) * kBytes, from, read);
  } else {  // unrolled, these would be hundreds of copies in a row
    for (u32 unit = lane; unit < kUnits; unit += 8) copy_unit<T, To, kBytes, kWidth>(tile, row, unit * kBytes, from, read);
  }
}

/// A row of FP8 numbers on its way to a tile, by 8 lanes: read first, stored later. So all reads of a tile are in flight together, and
/// while others are multiplied: read and stored one by one, each of them would wait for memory.
template <int kWidth> struct RowOnItsWay {
  u32x2 units[ceil_div(kWidth / 8, 8)];
};
/// Whether rows come so: FP8 whose rows begin at multiples of 8 bytes.
QN_HOST_DEVICE constexpr bool comes_by_registers(DType dtype, i32 access) { return size_of(dtype) == 1 && access >= 8; }
template <int kWidth> QN_DEVICE void read_row(RowOnItsWay<kWidth>& row, const u8* from, bool read) {
  const u32 lane = ptx::lane_id() % 8;
  QN_UNROLL
  for (u32 pass = 0; pass < ceil_div(u32(kWidth / 8), 8u); ++pass) {
    row.units[pass] = {0, 0};
    if (read && (kWidth % 64 == 0 || lane + 8 * pass < u32(kWidth / 8)))
      row.units[pass] = ptx::ld_global_nc<u32x2>(from + 8 * (lane + 8 * pass));
  }
}
template <class T, class To, int kWidth> QN_DEVICE void store_row(u8* tile, u32 row, const RowOnItsWay<kWidth>& from) {
  const u32 lane = ptx::lane_id() % 8;
  QN_UNROLL
  for (u32 pass = 0; pass < ceil_div(u32(kWidth / 8), 8u); ++pass)
    if (kWidth % 64 == 0 || lane + 8 * pass < u32(kWidth / 8))
      ptx::st_shared(tile + chunk_offset<kWidth>(row, lane + 8 * pass), widen_eight<T, To>(from.units[pass]));
}

/// The power of two that brings a row of bf16 into f16's range, its largest element to less than 2^16: f16 has every element of that row
/// but those below 2^-29 of the largest, which it rounds to multiples of 2^-39 of it. A row of zeros or with an infinity stays as it is.
QN_DEVICE f32 f16_range_of(f32 most) {
  const bool usual = most != f32(0.f) && most < f32(3.4e38f);
  // Its inverse is finite, and so is the power of two above the largest bf16
  return ptx::fmin(ptx::fmax(usual ? ptx::power_of_two_above(most) : f32(32768.f), f32(0x1p-100f)), f32(0x1p127f)) * f32(0x1p-15f);
}

/// f16 cannot hold probabilities below 2^-24: sums are kept times 2^shift. bf16 has the exponents of f32.
template <DType kDType> QN_DEVICE f32 sum_shift_of() { return kDType == DType::f16 ? 12.f : 0.f; }
/// exp2(logit - max + shift) of a row's maximum, or of 0 where it has seen nothing. See shifted_weight.
template <DType kDType> QN_DEVICE f32 probability_of(f32 logit, f32 max) {
  if constexpr (kDType == DType::f16) return ptx::exp2_approx(logit - max + sum_shift_of<kDType>());
  else return ptx::exp2_approx(logit - max);
}

/// What turns a sum of weighted rows into an output: the factor and the row's lse, in units of log2.
struct Finish {
  f32 factor;
  f32 lse;
  bool seen;  // false: the row saw no key, and its result is 0 whatever was summed: 0 times a NaN of v that other rows see is NaN
};
/// `state`: maximum and sum of exp2(logit - max + shift).
QN_DEVICE Finish finish_state(const SoftmaxState& state, f32 factor, f32 shift) {
  const bool some = state.sum != f32(0.f);  // NaN is something
  return {some ? factor * ptx::rcp_approx(state.sum) : f32(0.f), softmax_lse(state) - shift, some};
}
/// An element of a result.
QN_DEVICE f32 finished(const Finish& finish, f32 sum, f32 factor) { return finish.seen ? sum * factor : f32(0.f); }
/// The sink, a logit in natural units, joins the sum. Returns the factor for what was accumulated under the old maximum.
QN_DEVICE f32 add_sink(SoftmaxState& state, f32 sink, f32 shift) {
  const f32 logit = sink * f32(kLog2E), factor = raise_max(state, logit);
  state.sum = state.sum + shifted_weight(logit, state.max, shift);
  return factor;
}

/// Two neighbours of an output row.
template <class T> QN_DEVICE void store_word(T* to, u32 pair, bool aligned) {
  if (aligned) {
    ptx::st_global<u32>(to, pair);
  } else {
    ptx::st_global<u16>(to, u16(pair));
    ptx::st_global<u16>(to + 1, u16(pair >> 16));
  }
}
template <class T> QN_DEVICE void store_pair(T* to, f32 low, f32 high, bool aligned) { store_word(to, pack_word(low, high, T{}), aligned); }

}  // namespace quern::attention
