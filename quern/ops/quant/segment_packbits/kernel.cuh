// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out_indptr[s + 1] = out_indptr[s] + ceil((indptr[s + 1] - indptr[s]) / 8); out[out_indptr[s] + i / 8] has x[indptr[s] + i] != 0 as its
// bit 7 - i % 8 (big) or i % 8 (little) segment_offsets: one block sums the segments' bytes, a piece of `threads` segments at a time.
// segment_packbits_chunk: a thread makes a byte of out, and finds its segment by bisection in out_indptr; each_chunk deals bytes to
// threads.
#pragma once
#include "quern/bricks/index.cuh"
#include "quern/bricks/rows/chunks.cuh"
#include "quern/ops/quant/bits/bits.cuh"
#include "quern/ops/quant/segment_packbits/spec.h"

namespace quern::quant {

/// indptr[s], cut to the elements that there are.
template <DType kIndptr> QN_DEVICE i64 element_bound(const SegmentPackbitsParams& p, i64 segment) {
  return max_of<i64>(0, min_of<i64>(p.bits, load_index<kIndptr>(p.indptr, segment * p.indptr_stride)));
}

template <SegmentOffsetsConfig C> QN_DEVICE void segment_offsets(const SegmentPackbitsParams& p) {
  QN_SMEM(smem);
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  if (threadIdx.x == 0) store_index<C.indptr_dtype>(p.out_indptr, 0, 0);
  i64 before = 0;
  QN_NO_UNROLL
  for (i64 first = 0; first < p.segments; first += C.threads) {
    const i64 segment = first + threadIdx.x;
    u32 bytes = 0, total = 0;
    if (segment < p.segments)
      bytes =
          u32(ceil_div<i64>(max_of<i64>(0, element_bound<C.indptr_dtype>(p, segment + 1) - element_bound<C.indptr_dtype>(p, segment)), 8));
    const u32 here = block_prefix_sum<C.threads>(bytes, reinterpret_cast<u32*>(smem), total);
    if (segment < p.segments) store_index<C.indptr_dtype>(p.out_indptr, segment + 1, before + here);
    before += total;
  }
}

/// The segment that has the byte; as many as there are: none.
template <SegmentPackbitsConfig C> QN_DEVICE i64 segment_of(const SegmentPackbitsParams& p, i64 byte) {
  i64 low = 0, high = p.segments;  // all before low end at or before the byte, none from high on
  QN_NO_UNROLL
  while (low < high) {
    const i64 middle = (low + high) / 2;
    if (load_index<C.indptr_dtype>(p.out_indptr, middle + 1) <= byte) low = middle + 1;
    else high = middle;
  }
  return low;
}

template <SegmentPackbitsConfig C> QN_DEVICE void segment_packbits_chunk(const SegmentPackbitsParams& p) {
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  rows::each_chunk<u32x2, C.chunks, C.threads>(
      1, p.bytes,
      [&](i64, i64 byte, u32x2& elements) {
        elements = {0, 0};
        const i64 segment = segment_of<C>(p, byte);
        if (segment == p.segments) return;
        const i64 begin = element_bound<C.indptr_dtype>(p, segment) + 8 * (byte - load_index<C.indptr_dtype>(p.out_indptr, segment));
        elements = load_elements(static_cast<const u8*>(p.x) + begin, element_bound<C.indptr_dtype>(p, segment + 1) - begin);
      },
      [&](i64, i64 byte, const u32x2& elements) { ptx::st_global<u8>(static_cast<u8*>(p.out) + byte, packed_byte<C.order>(elements)); });
}

}  // namespace quern::quant
