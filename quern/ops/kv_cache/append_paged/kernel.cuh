// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// cache[page(b, p / page_size), p % page_size] = row of token (b, p), for k and v
// A block takes a token at a time; its threads walk over the accesses of the token's heads, k and v side by side.
#pragma once
#include "quern/kit/kit.cuh"
#include "quern/ops/kv_cache/append_paged/spec.h"

namespace quern::kv_cache {

/// The page of a token's position, or -1 when the table has none.
template <AppendPagedConfig C> QN_DEVICE i64 page_of(const AppendPagedParams& p, i32 request, i32 slot) {
  i64 page;
  if constexpr (C.csr != 0) {
    const i64 at = i64(ptx::ld_global<i32>(p.page_indptr + request)) + slot;
    if (at < 0 || at >= p.max_pages || at >= ptx::ld_global<i32>(p.page_indptr + request + 1)) return -1;
    page = ptx::ld_global<i32>(p.page_table + at);
  } else {
    if (slot >= p.max_pages) return -1;
    page = ptx::ld_global<i32>(p.page_table + request * p.page_table_stride + slot);
  }
  return page >= 0 && page < p.pages ? page : -1;
}

/// Copies access `at` of a token's row of k or v: from its load to its store.
template <AppendPagedConfig C> struct RowAccess {
  using Raw = typename RawBytes<C.access_bytes>::type;
  Raw k, v;
};

template <AppendPagedConfig C>
QN_DEVICE RowAccess<C> load_access(const AppendPagedParams& p, i64 token, int at) {
  using Raw = typename RawBytes<C.access_bytes>::type;
  const i64 head = at / p.head_accesses;
  const i64 byte = (at - head * p.head_accesses) * C.access_bytes;
  return {ptx::ld_global<Raw>(p.k + token * p.k_token_stride + head * p.k_head_stride + byte),
          ptx::ld_global<Raw>(p.v + token * p.v_token_stride + head * p.v_head_stride + byte)};
}

template <AppendPagedConfig C>
QN_DEVICE void store_access(const AppendPagedParams& p, i64 page, i64 offset, int at, const RowAccess<C>& row) {
  using Raw = typename RawBytes<C.access_bytes>::type;
  const i64 head = at / p.head_accesses;
  const i64 byte = (at - head * p.head_accesses) * C.access_bytes;
  ptx::st_global<Raw>(p.k_cache + page * p.k_page_stride + offset * p.k_slot_stride + head * p.k_cache_head_stride + byte, row.k);
  ptx::st_global<Raw>(p.v_cache + page * p.v_page_stride + offset * p.v_slot_stride + head * p.v_cache_head_stride + byte, row.v);
}

template <AppendPagedConfig C> QN_DEVICE void append_paged_token(const AppendPagedParams& p) {
  const int work = p.heads_kv * p.head_accesses;
  ptx::grid_launch_dependents();
  // Indices may be what a kernel before writes, so before the wait they are only fetched into the L2
  if (threadIdx.x == 0 && i64(blockIdx.x) < p.tokens) {
    ptx::prefetch_l2(p.batch_indices + blockIdx.x);
    ptx::prefetch_l2(p.positions + blockIdx.x);
  }
  ptx::grid_dependency_wait();
  for (i64 token = blockIdx.x; token < p.tokens; token += gridDim.x) {
    // The rows are asked for before the place is known: one memory latency instead of three in a row
    RowAccess<C> first;
    if (int(threadIdx.x) < work) first = load_access<C>(p, token, threadIdx.x);
    const i32 request = ptx::ld_global<i32>(p.batch_indices + token);
    const i32 position = ptx::ld_global<i32>(p.positions + token);
    if (request < 0 || request >= p.batch || position < 0) continue;
    const i32 slot = position / p.page_size;
    const i64 page = page_of<C>(p, request, slot);
    if (page < 0) continue;
    const i64 offset = position - i64(slot) * p.page_size;
    if (int(threadIdx.x) < work) store_access<C>(p, page, offset, threadIdx.x, first);
    for (int at = threadIdx.x + C.threads; at < work; at += C.threads)
      store_access<C>(p, page, offset, at, load_access<C>(p, token, at));
  }
}

}  // namespace quern::kv_cache
