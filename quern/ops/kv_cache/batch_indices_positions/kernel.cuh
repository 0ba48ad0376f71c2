// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// batch_indices[t] = b, positions[t] = seq_lens[b] - (indptr[b + 1] - t), for the tokens t from indptr[b] to indptr[b + 1]
// A thread takes a token at a time, and finds its request by bisection.
#pragma once
#include "quern/bricks/index.cuh"
#include "quern/kit/kit.cuh"
#include "quern/ops/kv_cache/batch_indices_positions/spec.h"

namespace quern::kv_cache {

template <BatchIndicesPositionsConfig C> QN_DEVICE i64 begin_of(const BatchIndicesPositionsParams& p, i64 request) {
  return load_index<C.indptr_dtype>(p.indptr, request * p.indptr_stride);
}

/// The last request that begins at or before the token; -1: none.
template <BatchIndicesPositionsConfig C> QN_DEVICE i64 request_of(const BatchIndicesPositionsParams& p, i64 token) {
  i64 low = 0, high = p.batch;  // all before low begin at or before the token, none from high on
  QN_NO_UNROLL
  while (low < high) {
    const i64 middle = (low + high) / 2;
    if (begin_of<C>(p, middle) <= token) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

template <BatchIndicesPositionsConfig C> QN_DEVICE void batch_indices_positions_token(const BatchIndicesPositionsParams& p) {
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  QN_NO_UNROLL
  for (i64 token = i64(blockIdx.x) * C.threads + threadIdx.x; token < p.tokens; token += i64(gridDim.x) * C.threads) {
    i64 request = request_of<C>(p, token), position = 0;
    const i64 end = request < 0 ? token : begin_of<C>(p, request + 1);
    if (token < end) position = load_index<C.seq_lens_dtype>(p.seq_lens, request * p.seq_stride) - (end - token);
    else request = -1;
    store_index<C.out_dtype>(p.batch_indices, token * p.batch_stride, request);
    store_index<C.out_dtype>(p.positions, token * p.position_stride, position);
  }
}

}  // namespace quern::kv_cache
