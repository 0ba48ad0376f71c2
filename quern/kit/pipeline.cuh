// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// A ring of stages in shared memory that producers fill by bulk or tensor copies and consumers read. Each stage has two
// mbarriers: `full` completes when the bytes that were announced have come, `empty` when every consumer has released
// the stage. The roles below count stages and parities.
//
//   pipeline_init<4>(barriers, consumer_warps);      one thread; then a barrier of the block, or of the cluster
//   Producer<4> fill{barriers};                      one thread
//   for each tile:  ptx::tma_load(stage_memory(fill.stage), &map, begin_fill(fill, bytes), ...);  end_fill(fill);
//   Consumer<4> read{barriers};                      every thread of the consumer warps
//   for each tile:  begin_read(read);  ... stage_memory(read.stage) ...;  end_read(read);
//
// `barriers` is an address of the shared window, a multiple of 8, with pipeline_bytes(stages) behind it.
#pragma once
#include "quern/kit/world.cuh"

namespace quern {

template <int stages>
struct Producer {
  u32 barriers;
  u32 stage = 0;
  u32 parity = 1;  ///< of the wait for a free stage: on a fresh mbarrier the phase of parity 1 counts as complete
};
/// `blocks`: of a cluster, which fill each other's stages and wait for the consumers of all of them.
template <int stages, int blocks = 1>
struct Consumer {
  u32 barriers;
  u32 stage = 0;
  u32 parity = 0;
};

template <int stages>
QN_DEVICE u32 full_barrier(u32 barriers, u32 stage) {
  return barriers + 8 * stage;
}
template <int stages>
QN_DEVICE u32 empty_barrier(u32 barriers, u32 stage) {
  return barriers + 8 * (stages + stage);
}

/// By one thread. `fills` arrivals announce a stage (one for each producer), `releases` free it (one for each consumer
/// warp, in a cluster that shares its copies of every block).
template <int stages>
QN_DEVICE void pipeline_init(u32 barriers, u32 releases, u32 fills = 1) {
  for (u32 stage = 0; stage < u32(stages); ++stage) {
    ptx::mbarrier_init(full_barrier<stages>(barriers, stage), fills);
    ptx::mbarrier_init(empty_barrier<stages>(barriers, stage), releases);
  }
  ptx::fence_mbarrier_init();
}
/// By one thread, when nobody uses the pipeline any more: the memory is free for other use.
template <int stages>
QN_DEVICE void pipeline_inval(u32 barriers) {
  for (u32 stage = 0; stage < u32(stages); ++stage) {
    ptx::mbarrier_inval(full_barrier<stages>(barriers, stage));
    ptx::mbarrier_inval(empty_barrier<stages>(barriers, stage));
  }
}

template <class Role, int stages>
QN_DEVICE void to_next_stage(Role& role) {
  if (++role.stage == u32(stages)) {
    role.stage = 0;
    role.parity ^= 1;
  }
}

/// Waits until the stage is free and announces the bytes of its copies; returns the mbarrier at which these count.
template <int stages>
QN_DEVICE u32 begin_fill(const Producer<stages>& producer, u32 bytes) {
  const u32 full = full_barrier<stages>(producer.barriers, producer.stage);
  ptx::mbarrier_wait(empty_barrier<stages>(producer.barriers, producer.stage), producer.parity);
  ptx::mbarrier_arrive_expect_tx(full, bytes);
  return full;
}
template <int stages>
QN_DEVICE void end_fill(Producer<stages>& producer) {
  to_next_stage<Producer<stages>, stages>(producer);
}
/// Waits until the consumers have released all that was filled. Where other blocks release the stages, a block must not
/// exit before.
template <int stages>
QN_DEVICE void drain(Producer<stages>& producer) {
  for (u32 i = 0; i < u32(stages); ++i) {
    ptx::mbarrier_wait(empty_barrier<stages>(producer.barriers, producer.stage), producer.parity);
    end_fill(producer);
  }
}

/// Waits until the stage is full.
template <int stages, int blocks>
QN_DEVICE void begin_read(const Consumer<stages, blocks>& consumer) {
  ptx::mbarrier_wait(full_barrier<stages>(consumer.barriers, consumer.stage), consumer.parity);
}
/// The warp has read a stage, not necessarily the current one. By all lanes.
template <int stages, int blocks>
QN_DEVICE void release(const Consumer<stages, blocks>& consumer, u32 stage) {
  const u32 empty = empty_barrier<stages>(consumer.barriers, stage);
  ptx::sync_warp();
  if constexpr (blocks == 1) {
    if (ptx::lane_id() == 0) ptx::mbarrier_arrive(empty);
  } else {
    if (ptx::lane_id() < u32(blocks)) ptx::mbarrier_arrive_remote(ptx::cluster_address(empty, ptx::lane_id()));
  }
}
/// Whether the stage behind the current one is full, after a short sleep if it is not.
template <int stages, int blocks>
QN_DEVICE bool next_is_full(const Consumer<stages, blocks>& consumer) {
  const bool first = consumer.stage + 1 == u32(stages);
  return ptx::mbarrier_try_wait(full_barrier<stages>(consumer.barriers, first ? 0 : consumer.stage + 1), consumer.parity ^ u32(first));
}
/// Goes on to the next stage; the current one is released later.
template <int stages, int blocks>
QN_DEVICE void skip_read(Consumer<stages, blocks>& consumer) {
  to_next_stage<Consumer<stages, blocks>, stages>(consumer);
}
/// Goes on behind `count` stages that others read and release.
template <int stages, int blocks>
QN_DEVICE void skip_reads(Consumer<stages, blocks>& consumer, u32 count) {
  const u32 to = consumer.stage + count;
  consumer.parity ^= to / u32(stages) & 1;
  consumer.stage = to % u32(stages);
}
/// Releases the current stage and goes on to the next.
template <int stages, int blocks>
QN_DEVICE void end_read(Consumer<stages, blocks>& consumer) {
  release(consumer, consumer.stage);
  skip_read(consumer);
}

}  // namespace quern
