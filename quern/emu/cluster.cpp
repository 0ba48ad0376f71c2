// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Clusters: the barrier of all their threads, and accesses to each other's shared memory.
#include "quern/emu/bulk.h"
#include "quern/emu/shadow.h"
#include "quern/emu/table.h"

namespace quern::emu {
namespace {

u32 live_threads(const Cluster& cluster) {
  u32 live = 0;
  for (const Block& block : cluster.blocks) live += block.live;
  return live;
}

void open_if_complete(Worker& worker, Cluster& cluster) {
  if (cluster.arrived == 0 || cluster.arrived < live_threads(cluster)) return;
  cluster.arrived = 0;
  ++cluster.phase;
  if (worker.shadow()) {
    cluster.published = std::move(cluster.gathered);
    cluster.gathered = {};
  }
  for (Fiber* fiber : cluster.waiting) worker.wake(*fiber);
  cluster.waiting.clear();
}

}  // namespace

void run_cluster_arrive(bool release, u32 line) {
  Fiber& me = Worker::me();
  me.pc = __builtin_return_address(0);
  Worker& worker = *me.worker;
  Cluster& cluster = *me.block->cluster;
  execute_aligned(me, "cluster_arrive", line);
  if (me.at_cluster_barrier) worker.fatal(ReportKind::barrier, me, "barrier.cluster.arrive twice without a barrier.cluster.wait between");
  me.at_cluster_barrier = true;
  me.cluster_phase = cluster.phase;
  ++cluster.arrived;
  worker.progressed();
  if (worker.shadow()) worker.shadow()->arrive(me, cluster, release);
  open_if_complete(worker, cluster);
}

void run_cluster_wait(u32 line) {
  Fiber& me = Worker::me();
  me.pc = __builtin_return_address(0);
  Worker& worker = *me.worker;
  Cluster& cluster = *me.block->cluster;
  execute_aligned(me, "cluster_wait", line);
  if (!me.at_cluster_barrier) worker.fatal(ReportKind::barrier, me, "barrier.cluster.wait without a barrier.cluster.arrive before");
  if (cluster.phase == me.cluster_phase) {
    cluster.waiting.push_back(&me);
    worker.wait(me, WaitReason::cluster, 0, 0);
  }
  me.at_cluster_barrier = false;
  if (worker.shadow()) me.clock.known.join(cluster.published);
}

void leave_cluster(Fiber& me) {
  Cluster& cluster = *me.block->cluster;
  if (me.at_cluster_barrier && me.cluster_phase == cluster.phase) --cluster.arrived;
  open_if_complete(*me.worker, cluster);
}

void run_cluster_access(u32 rank, const char* what) {
  Fiber& me = Worker::me();
  Worker& worker = *me.worker;
  Block& target = me.block->cluster->blocks[rank];
  if (&target == me.block) return;
  if (target.live == 0)
    worker.fatal(ReportKind::cluster, me, text_of("%s to the shared memory of block rank %u, which has exited", what, rank));
  if (worker.shadow()) worker.shadow()->visit(target, me.clock.epoch());
}

}  // namespace quern::emu
