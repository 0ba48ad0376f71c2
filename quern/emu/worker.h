// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <csetjmp>
#include <deque>
#include <memory>
#include <vector>

#include "quern/emu/arena.h"
#include "quern/emu/block.h"
#include "quern/emu/launch.h"
#include "quern/emu/switch.h"

namespace quern::emu {

class Bounds;
class Shadow;

/// One OS thread's share of a launch: its resident blocks and the order in which their threads run. A fiber never moves
/// to another worker.
class Worker {
 public:
  Worker();
  ~Worker();

  /// Runs clusters of the launch until none is left or the launch has stopped.
  void run(Launch& launch);

  // For the functions of the runtime table, which run on a fiber's stack.
  /// The calling CUDA thread.
  static Fiber& me() { return *static_cast<Fiber*>(current()->fiber); }
  /// Leaves the calling thread until someone wakes it. Inline: every lane of every collective comes through here.
  void wait(Fiber& me, WaitReason reason, u32 id, u64 detail) {
    me.reason = reason;
    me.wait_id = id;
    me.wait_detail = detail;
    Warp& warp = *me.warp;
    if (!stay_in_warp_ || !warp.ready) return wait_for_other_warps(me);
    Fiber* next = &warp.fibers[__builtin_ctz(warp.ready)];
    warp.ready &= warp.ready - 1;
    ++switches_;
    running_ = next;
    store_origin(jump(next->context, &me.context));
  }
  /// Leaves a thread that polls memory until everything else has run.
  void poll(Fiber& me, const void* address);
  /// Leaves a thread that could go on.
  void let_others_run(Fiber& me);
  void wake(Warp& warp, u32 lanes);
  void wake(Fiber& fiber) { wake(*fiber.warp, 1u << fiber.lane); }
  /// Ends the launch. Does not return when called on a fiber.
  [[noreturn]] void fatal(ReportKind kind, const Fiber& at, std::string text, u64 address = 0);
  void report(ReportKind kind, const Fiber& at, std::string text, u64 address = 0);
  /// Ends the launch after what was reported.
  [[noreturn]] void abandon();

  /// Ends the calling thread.
  void finish(Fiber& me);

  /// A random number of this worker's seed.
  u64 random();
  const EmulatedOptions& options() const { return launch_->request.options; }
  Launch& launch() { return *launch_; }
  Arena& arena() { return arena_; }
  Shadow* shadow() { return shadow_; }
  Bounds* bounds() { return bounds_.get(); }
  /// A thread reads or writes memory by the instruction `what`: checked mode and asan judge it.
  void access(Fiber& fiber, const void* address, u64 bytes, bool write, const char* what);
  /// A thread has copies that may complete at any time (random policy).
  void copies_pending(Fiber& fiber) { copying_.push_back(&fiber); }
  /// A thread's copies shall arrive; the policy says when.
  void announce(const CopyArrival& arrival);
  /// A copy of the copy engine begins; the policy says when it goes on.
  void issue(std::shared_ptr<Bulk> bulk);
  const std::vector<std::shared_ptr<Bulk>>& bulks() const { return bulks_; }
  /// Something happened that a polling thread of this worker could see.
  void progressed() { ++progress_; }
  /// A warpgroup has wgmma that may be carried out at any time (random policy).
  void products_pending(Block& block, Warpgroup& group) { multiplying_.push_back({&block, &group}); }
  /// Memory for one product.
  struct Scratch {
    alignas(64) u8 of_meaning[kWgmmaScratchBytes];
    u8 a[64][kWgmmaRowBytes], b[256][kWgmmaRowBytes];
  };
  /// The meaning of a wgmma runs, not the kernel. It is not instrumented, but compilers make calls of memcpy of its loops.
  bool meaning_runs = false;
  Scratch& scratch() {
    if (!scratch_) scratch_ = std::make_unique<Scratch>();
    return *scratch_;
  }

  // For the signal handler.
  Fiber* running() { return running_; }
  sigjmp_buf fault_return;
  void* fault_address = nullptr;
  int fault_signal = 0;

 private:
  void wait_for_other_warps(Fiber& me);
  Fiber* pick();
  Fiber* pick_lane(Warp& warp);
  void switch_from(Fiber& me, Fiber* next);
  void enter(Fiber& fiber);
  void schedule();
  bool start_cluster();
  void place(Block& block, Cluster& cluster, u32 rank, const Index3& index);
  void place_fiber(Block& block, u32 index, u64 slot, const ThreadContext& common);
  void retire();
  bool revive_pollers();
  bool others_progress();
  void report_stuck(ReportKind kind);
  void report_fault();
  void complete_random_copy();
  /// Lets a bulk copy go on or a thread's copies arrive; false when there is none.
  bool advance_async();
  void take_arrival(size_t index);
  void complete_random_product();

  Launch* launch_ = nullptr;
  Shadow* shadow_ = nullptr;
  std::unique_ptr<Bounds> bounds_;
  std::unique_ptr<Shadow> shadow_storage_;
  Arena arena_;
  std::vector<std::unique_ptr<Cluster>> clusters_;  ///< by slot; storage is kept over launches
  std::vector<u32> free_slots_;
  std::vector<Cluster*> live_;
  std::deque<Warp*> queue_;  ///< warps with lanes that may run
  Warp* hot_ = nullptr;      ///< the warp that runs; not in the queue
  std::vector<Fiber*> pollers_;
  std::vector<Fiber*> copying_;
  std::vector<std::shared_ptr<Bulk>> bulks_;  ///< not complete, oldest first
  std::deque<CopyArrival> arrivals_;          ///< that have not happened, oldest first
  bool polled_since_advance_ = true;
  struct Multiplying {
    Block* block;
    Warpgroup* group;
  };
  std::vector<Multiplying> multiplying_;
  std::unique_ptr<Scratch> scratch_;
  Fiber* running_ = nullptr;
  void* main_context_ = nullptr;
  u64 rng_ = 1;
  u64 progress_ = 0, seen_progress_ = 0, seen_launch_progress_ = 0;
  u32 idle_rounds_ = 0;
  bool stay_in_warp_ = true;  ///< after a lane, another one of its warp goes on
  u64 switches_ = 0;
  bool finished_blocks_ = false;
  u64 used_stacks_ = 0;
};

/// Borrows one of the process's workers: their reservations are kept for the next launch.
class WorkerLease {
 public:
  WorkerLease();
  ~WorkerLease();
  Worker* operator->() { return worker_.get(); }

 private:
  std::unique_ptr<Worker> worker_;
};

/// Carries out one copy of the thread.
void complete_copy(Fiber& fiber, AsyncCopy& copy);
/// The thread's copies before number `until` are complete and known to be so.
void complete_copies(Fiber& fiber, u32 until);
/// The copies come and arrive.
void complete_arrival(Worker& worker, const CopyArrival& arrival);
/// Carries out the oldest wgmma that is not done; all threads have issued it.
void complete_product(Worker& worker, Block& block, Warpgroup& group);
/// A thread exits: what it has not waited for is a fault.
void leave_wgmma(Fiber& me);
/// The block's last thread exits: whether the warps of each warpgroup changed their registers alike.
void check_register_changes(Fiber& me);
/// Where and why a thread waits, for deadlock reports.
std::string wait_text(const Fiber& fiber);
/// A thread has exited: barriers and collectives may now be complete without it.
void leave_barriers(Fiber& me);
/// A thread does what the language leaves undefined; returns where it may go on.
void run_undefined(Undefined what, const void* data, u64 a, u64 b, void* pc);
void leave_warp(Fiber& me);
/// Checked mode: the thread executes an instruction that the lanes of a warp execute together, in one place of the source. `what` is the
/// same pointer for the same instruction.
void execute_aligned(Fiber& me, const char* what, u32 line);

extern const Runtime kRuntime;

}  // namespace quern::emu
