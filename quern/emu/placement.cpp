// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// How a cluster becomes resident: stacks, contexts, shared memory.
#include <cstring>

#include "quern/emu/shadow.h"
#include "quern/emu/switch.h"
#include "quern/emu/worker.h"

namespace quern::emu {

using boost::context::detail::make_fcontext;

/// Defined with the scheduler; every fiber starts there.
void fiber_start(transfer_t from);

/// Index of a block from its cluster's number and its rank in it; both count along x first, then along y.
static Index3 block_index(const LaunchRequest& r, u64 cluster, u32 rank) {
  const u32 along_x = r.grid.x / r.cluster.x, along_y = r.grid.y / r.cluster.y;
  return {u32(cluster % along_x) * r.cluster.x + rank % r.cluster.x,
          u32(cluster / along_x % along_y) * r.cluster.y + rank / r.cluster.x % r.cluster.y,
          u32(cluster / along_x / along_y) * r.cluster.z + rank / r.cluster.x / r.cluster.y};
}

bool Worker::start_cluster() {
  const LaunchRequest& request = launch_->request;
  const u32 blocks = request.cluster.blocks();
  const u64 stacks_per_cluster = u64(round_up<u32>(request.threads, 32)) * blocks;
  u32 slot;
  if (!free_slots_.empty()) {
    slot = free_slots_.back();
  } else {
    slot = u32(live_.size());
    if ((slot + 1) * stacks_per_cluster > arena_.stack_count()) return false;
    if ((slot + 1) * blocks > arena_.smem_count()) return false;
  }
  const i64 number = launch_->take_cluster();
  if (number < 0) return false;
  if (!free_slots_.empty()) free_slots_.pop_back();

  // The same seed gives a block the same choices, whichever worker runs it.
  rng_ = (request.options.seed * 0x9e3779b97f4a7c15u ^ u64(number + 1) * 0xbf58476d1ce4e5b9u) | 1;
  if (clusters_.size() <= slot) clusters_.resize(slot + 1);
  if (!clusters_[slot]) clusters_[slot] = std::make_unique<Cluster>();
  Cluster& cluster = *clusters_[slot];
  cluster.slot = slot;
  cluster.blocks.resize(blocks);
  cluster.live_blocks = blocks;
  cluster.arrived = cluster.phase = 0;
  cluster.waiting.clear();
  cluster.gathered = cluster.published = {};
  used_stacks_ = max_of(used_stacks_, (slot + 1) * stacks_per_cluster);
  launch_->resident += blocks;
  live_.push_back(&cluster);
  for (u32 rank = 0; rank < blocks; ++rank) place(cluster.blocks[rank], cluster, rank, block_index(request, u64(number), rank));
  return true;
}

void Worker::place(Block& block, Cluster& cluster, u32 rank, const Index3& index) {
  const LaunchRequest& request = launch_->request;
  const u32 warps = ceil_div<u32>(request.threads, 32);
  block.cluster = &cluster;
  block.rank = rank;
  block.index = index;
  block.linear = (u64(index.z) * request.grid.y + index.y) * request.grid.x + index.x;
  block.live = request.threads;
  // Shared memory ends where access ends, so that running over its end faults.
  const u32 smem_room = round_up<u32>(request.smem, 1024);
  block.smem = arena_.smem_end(u64(cluster.slot) * request.cluster.blocks() + rank) - smem_room;
  std::memset(block.smem, 0xff, smem_room);
  for (Barrier& barrier : block.barriers) {
    barrier.arrived = barrier.expected = barrier.vote = 0;
    barrier.waiting.clear();
    barrier.published = {};
    barrier.has_published = false;
  }
  block.mbarriers.clear();
  block.mbarriers_made = 0;
  block.fibers.resize(warps * 32);
  block.warps.resize(warps);
  block.warpgroups.clear();
  block.warpgroups.resize(ceil_div<u32>(warps, 4));
  block.free_registers = 0;
  if (shadow_) shadow_->block_started(block);

  ThreadContext common{};
  common.runtime = &kRuntime;
  common.smem = block.smem;
  common.cluster_smem = block.smem - rank * kSmemStride;
  common.block = block.index;
  common.block_size = {request.threads, 1, 1};
  common.grid_size = request.grid;
  common.rank = rank;
  common.cluster_blocks = request.cluster.blocks();
  common.smem_bytes = request.smem;
  common.error_seed = u32(request.options.seed * 0x9e3779b97f4a7c15u >> 32);
  const u64 first_stack = (u64(cluster.slot) * request.cluster.blocks() + rank) * warps * 32;
  for (u32 w = 0; w < warps; ++w) {
    Warp& warp = block.warps[w];
    warp.fibers = &block.fibers[w * 32];
    warp.alive = request.threads - w * 32 >= 32 ? kFullWarp : (1u << (request.threads - w * 32)) - 1;
    warp.lanes = warp.alive;
    warp.ready = 0;
    warp.queued = false;
    warp.barrier_lanes = warp.parked = 0;
    for (Rendezvous& meeting : warp.meetings) meeting.arrived = 0;
    warp.registers = request.registers;
    warp.register_changes.clear();
    warp.aligned.clear();
    warp.first_aligned = 0;
    for (u32 lane = 0; lane < 32; ++lane)
      if (warp.alive >> lane & 1) place_fiber(block, w * 32 + lane, first_stack + w * 32 + lane, common);
    wake(warp, warp.alive);
  }
}

void Worker::place_fiber(Block& block, u32 index, u64 slot, const ThreadContext& common) {
  Fiber& fiber = block.fibers[index];
  fiber.stack = arena_.stack(slot);
  if (options().asan) arena_.clear_shadow(slot);
  const u64 context_at = context_address(reinterpret_cast<u64>(fiber.stack));
  fiber.thread = reinterpret_cast<ThreadContext*>(context_at);
  *fiber.thread = common;
  fiber.thread->fiber = &fiber;
  fiber.thread->thread = {index, 0, 0};
  fiber.thread->lane = index % 32;
  fiber.thread->warp = index / 32;
  fiber.warp = &block.warps[index / 32];
  fiber.block = &block;
  fiber.worker = this;
  fiber.pc = nullptr;
  fiber.index = index;
  fiber.lane = index % 32;
  fiber.done = false;
  fiber.reason = WaitReason::none;
  fiber.wait_detail = 0;
  for (Fiber::Seen& seen : fiber.seen) seen = {};
  fiber.next_seen = 0;
  fiber.copies.clear();
  fiber.first_copy = 0;
  fiber.copy_groups.clear();
  fiber.stores.clear();
  fiber.store_groups = fiber.stores_read = fiber.read_agent = fiber.write_agent = 0;
  fiber.at_cluster_barrier = fiber.dependency_waited = false;
  fiber.wgmma = {};
  fiber.register_changes = fiber.denials = fiber.repeats = 0;
  fiber.aligned_steps = 0;
  for (const void*& address : fiber.repeated) address = nullptr;
  fiber.last_access = nullptr;
  fiber.denied_at = 0;
  void* top = reinterpret_cast<void*>(context_at & ~u64(63));
  fiber.context = make_fcontext(top, size_t(static_cast<u8*>(top) - fiber.stack), fiber_start);
}

}  // namespace quern::emu
