// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[i, g] = x[i, g], from rows to columns
// A thread has 8 columns of one row, which are one sector of row-major x; a warp's lanes are at consecutive rows, so that each of
// its stores is 128 bytes of a column of MN-major out.
#pragma once
#include "quern/kit/kit.cuh"
#include "quern/ops/quant/transform_scales/spec.h"

namespace quern::quant {

template <TransformScalesConfig C> QN_DEVICE void transform_scales_rows(const TransformScalesParams& p) {
  constexpr int kAccesses = kTransformColumns / C.vector;
  const i64 across = ceil_div<i64>(p.groups, kTransformColumns), down = blockIdx.x / across;
  const i64 row = down * C.threads + threadIdx.x, first = (blockIdx.x - down * across) * kTransformColumns;
  const f32* x = static_cast<const f32*>(p.x) + row * p.x_strides[0] + first * p.x_strides[1];
  f32* out = static_cast<f32*>(p.out) + row * p.out_strides[0] + first * p.out_strides[1];
  const int columns = row < p.m ? int(min_of<i64>(kTransformColumns, p.groups - first)) : 0;
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  f32 v[kAccesses][C.vector];
  QN_UNROLL
  for (int a = 0; a < kAccesses; ++a)
    if (a * C.vector < columns) load_f32<f32, C.vector>(x + a * C.vector * p.x_strides[1], v[a]);
  QN_UNROLL
  for (int i = 0; i < kTransformColumns; ++i)
    if (i < columns) out[i * p.out_strides[1]] = v[i / C.vector][i % C.vector];
}

}  // namespace quern::quant
