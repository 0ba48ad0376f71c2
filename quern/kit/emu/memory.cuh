// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Loads and stores with their cache policies. On the CPU a policy has no meaning; alignment is checked as on a GPU, and
// checked builds see the accesses through the compiler's instrumentation.
#pragma once
#include "quern/kit/emu/number.cuh"

namespace quern::emu {

template <class T>
QN_DEVICE void require_aligned(const void* address) {
  static_assert(sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);
  if (__builtin_expect((reinterpret_cast<u64>(address) & (sizeof(T) - 1)) != 0, 0)) current()->runtime->misaligned(address, sizeof(T));
}
/// One access of sizeof(T) bytes whatever T's own alignment: kernels view buffers as several types.
template <class T>
struct __attribute__((packed, may_alias)) AnyAlias {
  T value;
};
template <class T>
QN_DEVICE T load(const void* address) {
  require_aligned<T>(address);
  return static_cast<const AnyAlias<T>*>(address)->value;
}
template <class T>
QN_DEVICE T load_read_only(const void* address) {
#if defined(QN_EMU_CHECKED)
  current()->runtime->read_only(address, sizeof(T));
#endif
  return load<T>(address);
}
template <class T>
QN_DEVICE void store(void* address, T value) {
  require_aligned<T>(address);
  static_cast<AnyAlias<T>*>(address)->value = value;
}

}  // namespace quern::emu

namespace quern::ptx {

/// Global memory, T of 1, 2, 4, 8 or 16 bytes, aligned to its size.
template <class T>
QN_DEVICE T ld_global(const void* address) {
  return emu::load<T>(address);
}
/// Through the read-only path: the kernel must not write the memory.
template <class T>
QN_DEVICE T ld_global_nc(const void* address) {
  return emu::load_read_only<T>(address);
}
/// Read-only and read once: not kept in L1.
template <class T>
QN_DEVICE T ld_global_nc_no_allocate(const void* address) {
  return emu::load_read_only<T>(address);
}
template <class T>
QN_DEVICE void st_global(void* address, T value) {
  emu::store<T>(address, value);
}
/// Written once and not read again soon.
template <class T>
QN_DEVICE void st_global_streaming(void* address, T value) {
  emu::store<T>(address, value);
}
/// Shared memory by generic pointer, T of 1, 2, 4, 8 or 16 bytes.
template <class T>
QN_DEVICE T ld_shared(const void* address) {
  return emu::load<T>(address);
}
template <class T>
QN_DEVICE void st_shared(void* address, T value) {
  emu::store<T>(address, value);
}

QN_DEVICE void prefetch_l2(const void*) {}

/// Address in the shared window, as instructions take it: offset in bits 0-23, rank of the block in its cluster above.
QN_DEVICE u32 smem_address(const void* pointer) {
  const emu::ThreadContext& me = *emu::current();
  return u32(static_cast<const u8*>(pointer) - me.smem) | me.rank << 24;
}

}  // namespace quern::ptx

namespace quern::emu {

/// Pointer behind a shared-window address, after a check that [address, address + bytes) is shared memory.
QN_DEVICE u8* shared_pointer(u32 address, u32 bytes, const char* what) {
  const ThreadContext& me = *current();
  const u32 offset = address & 0xffffff, rank = address >> 24;
  if (__builtin_expect(rank >= me.cluster_blocks || offset + bytes > me.smem_bytes || offset % bytes != 0, 0))
    me.runtime->bad_shared_address(address, bytes, what);
  return me.cluster_smem + rank * kSmemStride + offset;
}

}  // namespace quern::emu
