// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// to[i] = from[i], or from[i] read and thrown away: the rates of memory that benchmarks are measured against.
// A block takes chunks of threads * accesses vectors of 16 bytes, a grid apart.
#pragma once
#include "quern/bench/stream_spec.h"
#include "quern/kit/kit.cuh"

namespace quern::bench {

/// Vectors of one chunk, all loads in flight together; those past the end are zero.
template <StreamConfig C>
QN_DEVICE void load_chunk(const StreamParams& p, i64 first, bool whole, u32x4 (&held)[C.accesses]) {
  const u32x4* from = static_cast<const u32x4*>(p.from) + first;
  QN_UNROLL
  for (int a = 0; a < C.accesses; ++a) {
    held[a] = u32x4{0, 0, 0, 0};
    if (whole || first + i64(a) * C.threads < p.vectors) held[a] = ptx::ld_global<u32x4>(from + a * C.threads);
  }
}

template <StreamConfig C>
QN_DEVICE void stream_copy(const StreamParams& p) {
  constexpr i64 kChunk = i64(C.threads) * C.accesses;
  for (i64 chunk = blockIdx.x; chunk * kChunk < p.vectors; chunk += gridDim.x) {
    const i64 first = chunk * kChunk + threadIdx.x;
    const bool whole = (chunk + 1) * kChunk <= p.vectors;
    u32x4 held[C.accesses];
    load_chunk<C>(p, first, whole, held);
    u32x4* to = static_cast<u32x4*>(p.to) + first;
    QN_UNROLL
    for (int a = 0; a < C.accesses; ++a)
      if (whole || first + i64(a) * C.threads < p.vectors) ptx::st_global<u32x4>(to + a * C.threads, held[a]);
  }
}

template <StreamConfig C>
QN_DEVICE void stream_read(const StreamParams& p) {
  constexpr i64 kChunk = i64(C.threads) * C.accesses;
  u32 sum = 0;
  for (i64 chunk = blockIdx.x; chunk * kChunk < p.vectors; chunk += gridDim.x) {
    u32x4 held[C.accesses];
    load_chunk<C>(p, chunk * kChunk + threadIdx.x, (chunk + 1) * kChunk <= p.vectors, held);
    QN_UNROLL
    for (int a = 0; a < C.accesses; ++a) sum = sum + (held[a].x ^ held[a].y ^ held[a].z ^ held[a].w);
  }
  // One sum in 2^32 is written, so the loads cannot be left out and no line becomes dirty to speak of
  if (sum == 0x9E3779B9u) ptx::st_global<u32>(p.to, sum);
}

/// The same under a name of its own: a profile tells it from what is timed.
template <StreamConfig C>
QN_DEVICE void flush_l2(const StreamParams& p) {
  stream_read<C>(p);
}

}  // namespace quern::bench
