// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// N consecutive elements of a row, moved by one access of at most 16 bytes, and their values in f32.
#pragma once
#include "quern/kit/dtype.cuh"

namespace quern {

template <int kBytes> struct RawBytes;
template <> struct RawBytes<1> {
  using type = u8;
};
template <> struct RawBytes<2> {
  using type = u16;
};
template <> struct RawBytes<4> {
  using type = u32;
};
template <> struct RawBytes<8> {
  using type = u32x2;
};
template <> struct RawBytes<16> {
  using type = u32x4;
};

/// N elements of T as they lie in memory, in registers of 32 bits.
template <class T, int N> struct Packed {
  static constexpr int kBytes = N * int(sizeof(T));
  static_assert(kBytes <= 16, "one access moves at most 16 bytes");
  using Raw = typename RawBytes<kBytes>::type;
  Raw raw;
};

/// How a load treats the caches. streamed: read once, do not displace what is reused.
enum class Cache { normal, read_only, streamed };

template <class T, int N, Cache kCache = Cache::normal> QN_DEVICE Packed<T, N> load_packed(const T* from) {
  using Raw = typename Packed<T, N>::Raw;
  if constexpr (kCache == Cache::normal) return {ptx::ld_global<Raw>(from)};
  else if constexpr (kCache == Cache::read_only) return {ptx::ld_global_nc<Raw>(from)};
  else return {ptx::ld_global_nc_no_allocate<Raw>(from)};
}
template <class T, int N> QN_DEVICE void store_packed(T* to, const Packed<T, N>& v) {
  ptx::st_global<typename Packed<T, N>::Raw>(to, v.raw);
}

/// 32-bit word i of a packed vector of at least 4 bytes.
QN_DEVICE u32& word(u32& raw, int) { return raw; }
QN_DEVICE u32& word(u32x2& raw, int i) { return i == 0 ? raw.x : raw.y; }
QN_DEVICE u32& word(u32x4& raw, int i) { return i == 0 ? raw.x : i == 1 ? raw.y : i == 2 ? raw.z : raw.w; }

QN_DEVICE void unpack_word(u32 w, f32 (&out)[2], bf16) { ptx::unpack_bf16(w, out[0], out[1]); }
QN_DEVICE void unpack_word(u32 w, f32 (&out)[2], f16) { ptx::unpack_f16(w, out[0], out[1]); }
QN_DEVICE u32 pack_word(f32 low, f32 high, bf16) { return ptx::pack_bf16(low, high); }
QN_DEVICE u32 pack_word(f32 low, f32 high, f16) { return ptx::pack_f16(low, high); }
QN_DEVICE u32 pack_word(f32 low, f32 high, e4m3) { return ptx::pack_e4m3(low, high); }
QN_DEVICE u32 pack_word(f32 low, f32 high, e5m2) { return ptx::pack_e5m2(low, high); }
QN_DEVICE u32 pack_word(f32 low, f32 high, s8) { return u32(ptx::to_s8(low).bits) | u32(ptx::to_s8(high).bits) << 8; }

/// Values of a packed vector.
template <class T, int N> QN_DEVICE void unpack(Packed<T, N> v, f32 (&out)[N]) {
  if constexpr (sizeof(T) == 4) {
    QN_UNROLL
    for (int i = 0; i < N; ++i) out[i] = ptx::f32_of_bits(word(v.raw, i));
  } else if constexpr (sizeof(T) == 2 && N >= 2) {
    QN_UNROLL
    for (int i = 0; i < N / 2; ++i) {
      f32 pair[2];
      unpack_word(word(v.raw, i), pair, T{});
      out[2 * i] = pair[0], out[2 * i + 1] = pair[1];
    }
  } else if constexpr (sizeof(T) == 1 && N >= 4) {
    QN_UNROLL
    for (int i = 0; i < N; ++i) out[i] = to_f32(T{u8(word(v.raw, i / 4) >> (8 * (i % 4)))});
  } else {
    QN_UNROLL
    for (int i = 0; i < N; ++i) {
      T element;
      if constexpr (sizeof(T) == 1) element.bits = u8(u32(v.raw) >> (8 * i));
      else element.bits = u16(u32(v.raw) >> (16 * i));
      out[i] = to_f32(element);
    }
  }
}

/// Rounds values into a packed vector.
template <class T, int N> QN_DEVICE Packed<T, N> pack(const f32 (&in)[N]) {
  Packed<T, N> v;
  if constexpr (sizeof(T) == 4) {
    QN_UNROLL
    for (int i = 0; i < N; ++i) word(v.raw, i) = ptx::bits_of(in[i]);
  } else if constexpr (sizeof(T) == 2 && N >= 2) {
    QN_UNROLL
    for (int i = 0; i < N / 2; ++i) word(v.raw, i) = pack_word(in[2 * i], in[2 * i + 1], T{});
  } else if constexpr (sizeof(T) == 1 && N >= 4) {
    QN_UNROLL
    for (int i = 0; i < N / 4; ++i)
      word(v.raw, i) = pack_word(in[4 * i], in[4 * i + 1], T{}) | pack_word(in[4 * i + 2], in[4 * i + 3], T{}) << 16;
  } else {
    u32 w = 0;
    QN_UNROLL
    for (int i = 0; i < N; ++i) w |= u32(from_f32<T>(in[i]).bits) << (8 * int(sizeof(T)) * i);
    v.raw = typename Packed<T, N>::Raw(w);
  }
  return v;
}

template <class T, int N, Cache kCache = Cache::normal> QN_DEVICE void load_f32(const T* from, f32 (&out)[N]) {
  unpack<T, N>(load_packed<T, N, kCache>(from), out);
}
template <class T, int N> QN_DEVICE void store_f32(T* to, const f32 (&in)[N]) { store_packed<T, N>(to, pack<T, N>(in)); }

}  // namespace quern
