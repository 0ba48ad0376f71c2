// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Scales of the stages to come, in a ring in shared memory that the threads which use them fill by cp.async of 4 bytes, whatever their
// strides. Loads into registers would have to come back before the next stage, or hold registers for each stage that they are ahead. A warp has
// a ring of its own where its scales are its own; a warpgroup has one where its warps share them: 112 blocks whose 8 warps each ask for the
// same line of the L2 at once wait 300 ns for it.
#pragma once
#include "quern/kit/kit.cuh"
#include "quern/ops/gemm/scale_source.cuh"
#include "quern/ops/gemm/scaled_sm90_spec.h"

namespace quern::gemm {

/// `count` scales of a stage, `depth` stages (a power of two), of which `at_once` are read together, by `threads`: a warp or a warpgroup.
template <int count, int depth, int at_once, int threads>
struct ScaleRing {
  static_assert(depth >= 2 * at_once && (threads == 32 || threads == kWarpgroupSize));
  static constexpr int kLoads = (count + threads - 1) / threads, kBytes = 4 * count * depth;
  u8* memory;
  int barrier;  // named, of a warpgroup
  int fetched, steps;
  ScaleSource next[kLoads];  // of scales thread, thread + threads ..
};

/// Copies of one stage more begin, if there is one.
template <int count, int depth, int at_once, int threads>
QN_DEVICE void fetch_scales(ScaleRing<count, depth, at_once, threads>& ring) {
  if (ring.fetched < ring.steps) {
    const u32 to = ptx::smem_address(ring.memory) + 4 * (u32(ring.fetched) % depth * count + threadIdx.x % threads);
    QN_UNROLL
    for (int i = 0; i < ring.kLoads; ++i) {
      if (ring.next[i].first == nullptr) continue;
      ptx::cp_async<4>(to + u32(4 * threads * i), ring.next[i].first);
      ring.next[i].first += ring.next[i].stride;
    }
  }
  ptx::cp_async_commit();  // also an empty group, so that their count is that of stages
  ++ring.fetched;
}

template <int count, int depth, int at_once, int threads>
QN_DEVICE void sync_scales(const ScaleRing<count, depth, at_once, threads>& ring) {
  if constexpr (threads == 32) ptx::sync_warp();
  else ptx::bar_sync(ring.barrier, threads);
}

/// By all threads of the ring; its memory may be that of the last one. source(i) is the ScaleSource of scale i; copies of the first stages begin.
template <int count, int depth, int at_once, int threads, class Source>
QN_DEVICE void open_scales(ScaleRing<count, depth, at_once, threads>& ring, u8* memory, int steps, const Source& source, int barrier = 0) {
  ring.memory = memory, ring.barrier = barrier, ring.fetched = 0, ring.steps = steps;
  sync_scales(ring);  // the last ring has been read
  QN_UNROLL
  for (int i = 0; i < ring.kLoads; ++i) {
    const int index = int(threadIdx.x % threads) + threads * i;
    ring.next[i] = index < count ? source(index) : ScaleSource{nullptr, 0};
  }
  QN_UNROLL
  for (int i = 0; i < depth - at_once; ++i) fetch_scales(ring);
}

/// The scales of the next at_once stages, or fewer, are there for all threads. Those of the stages before have been read by all: as many
/// fetch_scales() may follow as stages are read now.
template <int count, int depth, int at_once, int threads>
QN_DEVICE void wait_scales(const ScaleRing<count, depth, at_once, threads>& ring) {
  ptx::cp_async_wait<depth - 2 * at_once>();
  sync_scales(ring);
}

/// Scale `index` of stage `step`; as a T of two, that and the next one, at an even index of an even count.
template <class T = f32, int count, int depth, int at_once, int threads>
QN_DEVICE T scale_of_stage(const ScaleRing<count, depth, at_once, threads>& ring, int step, int index) {
  return ptx::ld_shared<T>(ring.memory + 4 * (u32(step) % depth * count + u32(index)));
}

}  // namespace quern::gemm
