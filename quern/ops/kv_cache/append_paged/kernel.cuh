// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// cache[page, offset] = row of a token, for k and v; its place is told by a page table or by a slot
// A block takes a token at a time; its threads walk over the accesses of the token's heads, k and v side by side.
#pragma once
#include "quern/bricks/paged/place.cuh"
#include "quern/kit/kit.cuh"
#include "quern/ops/kv_cache/append_paged/spec.h"

namespace quern::kv_cache {

template <DType kDType> struct RowElement {
  using type = dtype_t<kDType>;
};
template <> struct RowElement<DType::u8> {
  using type = u8;
};

/// Access `at` of a token's rows of k and v: from its load to its store.
template <AppendPagedConfig C> struct RowAccess {
  Packed<typename RowElement<C.dtype>::type, C.vector> k, v;
};

template <AppendPagedConfig C>
QN_DEVICE RowAccess<C> load_access(const AppendPagedParams& p, i64 token, int at) {
  using T = typename RowElement<C.dtype>::type;
  const i64 head = at / p.head_accesses;
  const i64 byte = (at - head * p.head_accesses) * C.vector * i64(sizeof(T));
  return {load_packed<T, C.vector>(reinterpret_cast<const T*>(p.k + token * p.k_token_stride + head * p.k_head_stride + byte)),
          load_packed<T, C.vector>(reinterpret_cast<const T*>(p.v + token * p.v_token_stride + head * p.v_head_stride + byte))};
}

/// Stores an access as the cache has it: the same bytes, or x / scale in FP8.
template <AppendPagedConfig C>
QN_DEVICE void store_converted(char* to, const Packed<typename RowElement<C.dtype>::type, C.vector>& row, const float* scale) {
  using Stored = typename RowElement<C.cache_dtype>::type;
  if constexpr (C.dtype == C.cache_dtype) {
    store_packed<Stored, C.vector>(reinterpret_cast<Stored*>(to), row);
  } else {
    f32 x[C.vector];
    unpack(row, x);
    if (scale != nullptr) {
      const f32 by = ptx::ld_global<f32>(scale);
      QN_UNROLL
      for (int i = 0; i < C.vector; ++i) x[i] = ptx::div(x[i], by);
    }
    store_f32<Stored, C.vector>(reinterpret_cast<Stored*>(to), x);
  }
}

template <AppendPagedConfig C>
QN_DEVICE void store_access(const AppendPagedParams& p, const paged::Place& to, int at, const RowAccess<C>& row) {
  const i64 head = at / p.head_accesses;
  const i64 byte = (at - head * p.head_accesses) * C.vector * i64(sizeof(typename RowElement<C.cache_dtype>::type));
  store_converted<C>(p.k_cache + to.page * p.k_page_stride + to.offset * p.k_slot_stride + head * p.k_cache_head_stride + byte, row.k,
                     p.k_scale ? p.k_scale + head * p.k_scale_stride : nullptr);
  store_converted<C>(p.v_cache + to.page * p.v_page_stride + to.offset * p.v_slot_stride + head * p.v_cache_head_stride + byte, row.v,
                     p.v_scale ? p.v_scale + head * p.v_scale_stride : nullptr);
}

template <AppendPagedConfig C> QN_DEVICE void append_paged_token(const AppendPagedParams& p) {
  using Index = typename Integer<C.index_dtype>::type;
  const int work = p.heads_kv * p.head_accesses;
  ptx::grid_launch_dependents();
  // Indices may be what a kernel before writes, so before the wait they are only fetched into the L2
  if (threadIdx.x == 0 && i64(blockIdx.x) < p.tokens) {
    ptx::prefetch_l2(static_cast<const Index*>(p.place.batch_indices) + blockIdx.x);
    if constexpr (C.places != paged::Places::slot_mapping) ptx::prefetch_l2(static_cast<const Index*>(p.place.positions) + blockIdx.x);
  }
  ptx::grid_dependency_wait();
  for (i64 token = blockIdx.x; token < p.tokens; token += gridDim.x) {
    // The rows are asked for before the place is known: one memory latency instead of three in a row
    RowAccess<C> first;
    if (int(threadIdx.x) < work) first = load_access<C>(p, token, threadIdx.x);
    const paged::Place place = paged::place_of<C.places, C.index_dtype>(p.place, token);
    if (place.page < 0) continue;
    if (int(threadIdx.x) < work) store_access<C>(p, place, threadIdx.x, first);
    for (int at = threadIdx.x + C.threads; at < work; at += C.threads) store_access<C>(p, place, at, load_access<C>(p, token, at));
  }
}

}  // namespace quern::kv_cache
