// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// cache[dst_pages[i]] = cache[src_pages[i]], for k and v
// A block takes a chunk of the accesses of one page, then the next chunk a grid further: each_chunk. Accesses are walked in the order in
// which they lie in memory.
#pragma once
#include "quern/bricks/index.cuh"
#include "quern/bricks/rows/chunks.cuh"
#include "quern/ops/kv_cache/copy_pages/spec.h"

namespace quern::kv_cache {

/// Byte of an access within a page.
QN_DEVICE i64 byte_of(const CopyPagesCache& cache, const CopyPagesParams& p, u32 access, int bytes) {
  const u32 row = quotient(access, p.row_accesses), outer = quotient(row, p.inner);
  return outer * cache.outer_stride + (row - outer * p.inner.value) * cache.inner_stride + i64(access - row * p.row_accesses.value) * bytes;
}

template <CopyPagesConfig C> struct CopiedAccess {
  Packed<u8, C.bytes> k, v;
};

template <CopyPagesConfig C> QN_DEVICE void copy_pages_chunk(const CopyPagesParams& p) {
  const auto is_copied = [&](i64 src, i64 dst) { return src >= 0 && src < p.pages && dst >= 0 && dst < p.pages; };
  const auto address = [&](const CopyPagesCache& cache, i64 page, i64 access) {
    return reinterpret_cast<u8*>(cache.data + page * cache.page_stride + byte_of(cache, p, u32(access), C.bytes));
  };
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  rows::each_chunk<CopiedAccess<C>, C.chunks, C.threads>(
      p.copies, p.page_accesses,
      [&](i64 copy, i64 access, CopiedAccess<C>& held) {
        const i64 src = load_index<C.index_dtype>(p.src_pages, copy), dst = load_index<C.index_dtype>(p.dst_pages, copy);
        if (!is_copied(src, dst)) return;
        held.k = load_packed<u8, C.bytes>(address(p.k, src, access));
        if constexpr (C.both != 0) held.v = load_packed<u8, C.bytes>(address(p.v, src, access));
      },
      [&](i64 copy, i64 access, const CopiedAccess<C>& held) {
        const i64 src = load_index<C.index_dtype>(p.src_pages, copy), dst = load_index<C.index_dtype>(p.dst_pages, copy);
        if (!is_copied(src, dst)) return;
        store_packed<u8, C.bytes>(address(p.k, dst, access), held.k);
        if constexpr (C.both != 0) store_packed<u8, C.bytes>(address(p.v, dst, access), held.v);
      });
}

}  // namespace quern::kv_cache
