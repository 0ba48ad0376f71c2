// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Loads and stores with their cache policies: 9.7.9.8 ld, 9.7.9.9 ld.global.nc, 9.7.9.12 st, 9.7.9.16 prefetch.
// Ordinary ones are dereferences, which the compiler may reorder and merge; it finds the state space itself.
#pragma once
#include "quern/kit/ptx/number.cuh"

namespace quern::ptx {

/// One access moves as many bytes as one of these.
template <int bytes>
struct RawOf;
template <>
struct RawOf<1> {
  using type = u8;
};
template <>
struct RawOf<2> {
  using type = u16;
};
template <>
struct RawOf<4> {
  using type = u32;
};
template <>
struct RawOf<8> {
  using type = u32x2;
};
template <>
struct RawOf<16> {
  using type = u32x4;
};

// Read-only path: the memory must not change while the kernel runs, so neither volatile nor a memory clobber.
QN_DEVICE void load_read_only(u8& v, const void* from) {
  u16 wide;
  asm("ld.global.nc.u8 %0, [%1];" : "=h"(wide) : "l"(from));
  v = u8(wide);
}
QN_DEVICE void load_read_only(u16& v, const void* from) { asm("ld.global.nc.u16 %0, [%1];" : "=h"(v) : "l"(from)); }
QN_DEVICE void load_read_only(u32& v, const void* from) { asm("ld.global.nc.b32 %0, [%1];" : "=r"(v) : "l"(from)); }
QN_DEVICE void load_read_only(u32x2& v, const void* from) { asm("ld.global.nc.v2.b32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(from)); }
QN_DEVICE void load_read_only(u32x4& v, const void* from) {
  asm("ld.global.nc.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(from));
}

// The same without a place in L1.
QN_DEVICE void load_read_once(u8& v, const void* from) {
  u16 wide;
  asm("ld.global.nc.L1::no_allocate.u8 %0, [%1];" : "=h"(wide) : "l"(from));
  v = u8(wide);
}
QN_DEVICE void load_read_once(u16& v, const void* from) { asm("ld.global.nc.L1::no_allocate.u16 %0, [%1];" : "=h"(v) : "l"(from)); }
QN_DEVICE void load_read_once(u32& v, const void* from) { asm("ld.global.nc.L1::no_allocate.b32 %0, [%1];" : "=r"(v) : "l"(from)); }
QN_DEVICE void load_read_once(u32x2& v, const void* from) {
  asm("ld.global.nc.L1::no_allocate.v2.b32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(from));
}
QN_DEVICE void load_read_once(u32x4& v, const void* from) {
  asm("ld.global.nc.L1::no_allocate.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(from));
}

// Likely written once and not read soon.
QN_DEVICE void store_streaming(void* to, u8 v) { asm volatile("st.global.cs.u8 [%0], %1;" ::"l"(to), "h"(u16(v)) : "memory"); }
QN_DEVICE void store_streaming(void* to, u16 v) { asm volatile("st.global.cs.u16 [%0], %1;" ::"l"(to), "h"(v) : "memory"); }
QN_DEVICE void store_streaming(void* to, u32 v) { asm volatile("st.global.cs.b32 [%0], %1;" ::"l"(to), "r"(v) : "memory"); }
QN_DEVICE void store_streaming(void* to, u32x2 v) {
  asm volatile("st.global.cs.v2.b32 [%0], {%1, %2};" ::"l"(to), "r"(v.x), "r"(v.y) : "memory");
}
QN_DEVICE void store_streaming(void* to, u32x4 v) {
  asm volatile("st.global.cs.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}

// Wide stores. A dereference may come out as several narrow stores: nvcc 13.0 split 16 bytes whose words came from
// mma.sync.
QN_DEVICE void store_wide(void* to, u32x2 v) { asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(to), "r"(v.x), "r"(v.y) : "memory"); }
QN_DEVICE void store_wide(void* to, u32x4 v) {
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}

/// Global memory, T of 1, 2, 4, 8 or 16 bytes, aligned to its size.
template <class T>
QN_DEVICE T ld_global(const void* address) {
  return *static_cast<const T*>(address);
}
/// Through the read-only path: the kernel must not write the memory.
template <class T>
QN_DEVICE T ld_global_nc(const void* address) {
  typename RawOf<sizeof(T)>::type raw;
  load_read_only(raw, address);
  return __builtin_bit_cast(T, raw);
}
/// Read-only and read once: not kept in L1.
template <class T>
QN_DEVICE T ld_global_nc_no_allocate(const void* address) {
  typename RawOf<sizeof(T)>::type raw;
  load_read_once(raw, address);
  return __builtin_bit_cast(T, raw);
}
template <class T>
QN_DEVICE void st_global(void* address, T value) {
  if constexpr (sizeof(T) >= 8) store_wide(address, __builtin_bit_cast(typename RawOf<sizeof(T)>::type, value));
  else *static_cast<T*>(address) = value;
}
/// Written once and not read again soon.
template <class T>
QN_DEVICE void st_global_streaming(void* address, T value) {
  store_streaming(address, __builtin_bit_cast(typename RawOf<sizeof(T)>::type, value));
}
/// Shared memory by generic pointer, T of 1, 2, 4, 8 or 16 bytes.
template <class T>
QN_DEVICE T ld_shared(const void* address) {
  return *static_cast<const T*>(address);
}
template <class T>
QN_DEVICE void st_shared(void* address, T value) {
  *static_cast<T*>(address) = value;
}

QN_DEVICE void prefetch_l2(const void* address) { asm volatile("prefetch.global.L2 [%0];" ::"l"(address)); }

/// Address in the shared window, as instructions take it (9.7.9.20 cvta).
QN_DEVICE u32 smem_address(const void* pointer) { return u32(__cvta_generic_to_shared(pointer)); }

}  // namespace quern::ptx
