// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Barriers of a block: number 0 is sync_block, all 16 may be used by name with a thread count.
#include "quern/emu/shadow.h"
#include "quern/emu/table.h"
#include "quern/emu/worker.h"

namespace quern::emu {

static void release_parked(Worker& worker, Warp& warp) {
  warp.barrier_lanes = 0;
  worker.wake(warp, warp.parked);
  warp.parked = 0;
}

/// The device's barrier instruction is executed by whole warps: lanes of one warp that stand at two of them have
/// diverged.
static void check_warp_converged(Worker& worker, Fiber& me, u32 id, u32 line) {
  Warp& warp = *me.warp;
  if (warp.barrier_lanes == 0) {
    warp.barrier_id = id;
    warp.barrier_line = line;
  } else if (warp.barrier_id != id || warp.barrier_line != line) {
    worker.fatal(ReportKind::barrier, me,
                 text_of("barrier %u (line %u) while lanes %08x of the warp stand at barrier %u (line %u)", id, line, warp.barrier_lanes,
                         warp.barrier_id, warp.barrier_line));
  }
  warp.barrier_lanes |= 1u << me.lane;
  if (warp.barrier_lanes == warp.alive) release_parked(worker, warp);
}

static void open(Worker& worker, Barrier& barrier, const Fiber* last) {
  if (worker.shadow()) worker.shadow()->barrier_opens(barrier);
  for (Fiber* fiber : barrier.waiting) {
    fiber->vote_result = barrier.vote;
    if (fiber != last) worker.wake(*fiber);
  }
  barrier.arrived = barrier.vote = 0;
  barrier.waiting.clear();
}

u32 run_barrier(u32 id, u32 threads, bool arrive_only, u32 vote, u32 line) {
  Fiber& me = Worker::me();
  me.pc = __builtin_return_address(0);
  Worker& worker = *me.worker;
  Block& block = *me.block;
  if (id >= 16 || threads % 32 != 0 || threads > block.fibers.size())
    worker.fatal(ReportKind::barrier, me,
                 text_of("barrier %u of %u threads: 16 barriers, a multiple of 32 threads of the block", id, threads));
  check_warp_converged(worker, me, id, line);
  Barrier& barrier = block.barriers[id];
  if (barrier.arrived == 0) barrier.expected = threads;
  if (barrier.expected != threads)
    worker.fatal(ReportKind::barrier, me,
                 text_of("barrier %u of %u threads, but others arrived at it for %u (0: all)", id, threads, barrier.expected));
  ++barrier.arrived;
  barrier.vote |= vote;
  me.wait_line = line;
  if (arrive_only) {
    if (worker.shadow()) worker.shadow()->arrive(me, barrier);
  } else {
    barrier.waiting.push_back(&me);
  }
  if (barrier.arrived == (threads ? threads : block.live)) {
    open(worker, barrier, &me);
  } else if (!arrive_only) {
    worker.wait(me, WaitReason::barrier, id, barrier.expected);
    return me.vote_result;
  }
  if (arrive_only && me.warp->barrier_lanes) {
    me.warp->parked |= 1u << me.lane;
    worker.wait(me, WaitReason::barrier, id, barrier.expected);
  }
  return me.vote_result;
}

void leave_barriers(Fiber& me) {
  Warp& warp = *me.warp;
  if (warp.barrier_lanes && warp.barrier_lanes == warp.alive) release_parked(*me.worker, warp);
  for (Barrier& barrier : me.block->barriers)
    if (barrier.arrived && barrier.expected == 0 && barrier.arrived == me.block->live) open(*me.worker, barrier, nullptr);
}

}  // namespace quern::emu
