// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// scale = max(max |x|, amax_floor) / largest, or the one given; q = x * (1 / scale)
// per_tensor_amax: each block writes the largest |x| of what it reads. A maximum has no order, so bits are the same on every run.
// per_tensor_quantise: every block reduces these partial maxima, a few KB in the L2, then walks over x from the end, where the
// first launch ended and left x in the L2. A block takes a chunk of threads * accesses * vector columns of one row.
#pragma once
#include "quern/ops/quant/access/access.cuh"
#include "quern/ops/quant/per_tensor/spec.h"

namespace quern::quant {

/// A thread's part of a chunk of either kernel.
template <DType kDType, int kVector, int kAccesses, int kThreads> struct ChunkPart {
  static constexpr i64 kColumns = i64(kThreads) * kAccesses * kVector;  ///< of a chunk
  static constexpr int kStep = kThreads * kVector;                      ///< columns from one access to the next
  Packed<dtype_t<kDType>, kVector> access[kAccesses];
  i64 row, column;
};

/// Loads chunk `at`, of which a row has `chunks`; all accesses are in flight together.
template <DType kDType, int kVector, int kAccesses, int kThreads>
QN_DEVICE void load_chunk(ChunkPart<kDType, kVector, kAccesses, kThreads>& part, const PerTensorParams& p, i64 at, i64 chunks) {
  using T = dtype_t<kDType>;
  part.row = at / chunks;
  part.column = (at - part.row * chunks) * part.kColumns + i64(threadIdx.x) * kVector;
  const T* from = static_cast<const T*>(p.x) + part.row * p.x_stride + part.column;
  QN_UNROLL
  for (int a = 0; a < kAccesses; ++a)
    if (part.column + a * part.kStep < p.k) part.access[a] = load_packed<T, kVector>(from + a * part.kStep);
}

template <PerTensorAmaxConfig C> QN_DEVICE void per_tensor_amax(const PerTensorParams& p) {
  using Part = ChunkPart<C.x_dtype, C.vector, C.accesses, C.threads>;
  QN_SMEM(smem);
  const i64 chunks = ceil_div(p.k, Part::kColumns);
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  f32 amax = 0.f;
  for (i64 at = blockIdx.x; at < p.m * chunks; at += gridDim.x) {
    Part part;
    load_chunk(part, p, at, chunks);
    QN_UNROLL
    for (int a = 0; a < C.accesses; ++a) {
      if (part.column + a * Part::kStep >= p.k) continue;
      amax = amax_with(amax, part.access[a]);
    }
  }
  amax = block_max_nan<C.threads>(amax, reinterpret_cast<f32*>(smem));
  if (threadIdx.x == 0) static_cast<f32*>(p.partials)[blockIdx.x] = amax;
}

/// The scale of the tensor, in every thread.
template <PerTensorConfig C> QN_DEVICE f32 tensor_scale(const PerTensorParams& p, f32* scratch) {
  if constexpr (C.dynamic == 0) {
    return static_cast<const f32*>(p.static_scale)[0];
  } else {
    f32 amax = 0.f;
    for (i64 i = threadIdx.x; i < p.partial_count; i += C.threads) amax = ptx::fmax_nan(amax, static_cast<const f32*>(p.partials)[i]);
    return fp8_scale<C.q_dtype>(block_max_nan<C.threads>(amax, scratch), false, f32(p.amax_floor));
  }
}

template <PerTensorConfig C> QN_DEVICE void per_tensor_quantise(const PerTensorParams& p) {
  using Q = dtype_t<C.q_dtype>;
  using Part = ChunkPart<C.x_dtype, C.vector, C.accesses, C.threads>;
  QN_SMEM(smem);
  const i64 chunks = ceil_div(p.k, Part::kColumns), count = p.m * chunks;
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  const f32 scale = tensor_scale<C>(p, reinterpret_cast<f32*>(smem)), inverse = fp8_inverse(scale);
  if (blockIdx.x == 0 && threadIdx.x == 0) static_cast<f32*>(p.scale)[0] = scale;
  for (i64 at = blockIdx.x; at < count; at += gridDim.x) {
    Part part;
    load_chunk(part, p, C.dynamic != 0 ? count - 1 - at : at, chunks);
    Q* to = static_cast<Q*>(p.q) + part.row * p.q_stride + part.column;
    QN_UNROLL
    for (int a = 0; a < C.accesses; ++a) {
      if (part.column + a * Part::kStep >= p.k) continue;
      store_quantised(to + a * Part::kStep, part.access[a], inverse);
    }
  }
}

}  // namespace quern::quant
