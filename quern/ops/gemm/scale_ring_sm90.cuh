// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Scales of the stages to come, in a ring in shared memory that the threads which use them fill by cp.async of 4 bytes, whatever their
// strides. Loads into registers would have to come back before the next stage, or hold registers for each stage that they are ahead. A
// warpgroup has one: with a ring for each warp 112 blocks whose 8 warps each ask for the same lines of the L2 took 80 ns more a stage.
#pragma once
#include "quern/kit/kit.cuh"
#include "quern/ops/gemm/scale_source.cuh"
#include "quern/ops/gemm/scaled_sm90_spec.h"

namespace quern::gemm {

/// `count` scales of a stage, `depth` stages (a power of two), of which `at_once` are read together, by a warpgroup.
template <int count, int depth, int at_once>
struct ScaleRing {
  static_assert(depth >= 2 * at_once);
  static constexpr int kLoads = (count + kWarpgroupSize - 1) / kWarpgroupSize, kBytes = 4 * count * depth, kAtOnce = at_once;
  u8* memory;
  int barrier;  // named
  int fetched, steps;
  ScaleSource next[kLoads];  // of scales thread, thread + threads ..
};

/// Copies of one stage more begin, if there is one.
template <int count, int depth, int at_once>
QN_DEVICE void fetch_scales(ScaleRing<count, depth, at_once>& ring) {
  if (ring.fetched < ring.steps) {
    const u32 to = ptx::smem_address(ring.memory) + 4 * (u32(ring.fetched) % depth * count + threadIdx.x % kWarpgroupSize);
    QN_UNROLL
    for (int i = 0; i < ring.kLoads; ++i) {
      if (ring.next[i].first == nullptr) continue;
      ptx::cp_async<4>(to + u32(4 * kWarpgroupSize * i), ring.next[i].first);
      ring.next[i].first += ring.next[i].stride;
    }
  }
  ptx::cp_async_commit();  // also an empty group, so that their count is that of stages
  ++ring.fetched;
}

template <int count, int depth, int at_once>
QN_DEVICE void sync_scales(const ScaleRing<count, depth, at_once>& ring) {
  ptx::bar_sync(ring.barrier, kWarpgroupSize);
}

/// By all threads of the ring; a barrier lies behind the last use of its memory. source(i) is the ScaleSource of scale i; copies of the first stages begin.
template <int count, int depth, int at_once, class Source>
QN_DEVICE void open_scales(ScaleRing<count, depth, at_once>& ring, u8* memory, int steps, const Source& source, int barrier) {
  ring.memory = memory, ring.barrier = barrier, ring.fetched = 0, ring.steps = steps;
  QN_UNROLL
  for (int i = 0; i < ring.kLoads; ++i) {
    const int index = int(threadIdx.x % kWarpgroupSize) + kWarpgroupSize * i;
    ring.next[i] = index < count ? source(index) : ScaleSource{nullptr, 0};
  }
  QN_UNROLL
  for (int i = 0; i < depth - at_once; ++i) fetch_scales(ring);
}

/// In the place of a ring where stages have no scales of their own.
template <int at_once>
struct NoScales {
  static constexpr int kAtOnce = at_once;
};
template <int at_once>
QN_DEVICE void wait_scales(const NoScales<at_once>&) {}
template <int at_once>
QN_DEVICE void fetch_scales(NoScales<at_once>&) {}
struct Unscaled {};

/// The scales of the next at_once stages, or fewer, are there for all threads. Those of the stages before have been read by all: as many
/// fetch_scales() may follow as stages are read now.
template <int count, int depth, int at_once>
QN_DEVICE void wait_scales(const ScaleRing<count, depth, at_once>& ring) {
  ptx::cp_async_wait<depth - 2 * at_once>();
  sync_scales(ring);
}

/// Scale `index` of stage `step`; as a T of two, that and the next one, at an even index of an even count.
template <class T = f32, int count, int depth, int at_once>
QN_DEVICE T scale_of_stage(const ScaleRing<count, depth, at_once>& ring, int step, int index) {
  return ptx::ld_shared<T>(ring.memory + 4 * (u32(step) % depth * count + u32(index)));
}

}  // namespace quern::gemm
