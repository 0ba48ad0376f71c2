// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/emu/worker.h"

#include <sched.h>

#include <algorithm>
#include <cstring>

#include "quern/emu/bounds.h"
#include "quern/emu/bulk.h"
#include "quern/emu/fault.h"
#include "quern/emu/shadow.h"
#include "quern/emu/switch.h"

namespace quern::emu {

/// First function of every fiber.
void fiber_start(transfer_t from) {
  store_origin(from);
  Fiber& me = Worker::me();
  Worker& worker = *me.worker;
  worker.launch().request.entry(worker.launch().request.params);
  worker.finish(me);
}

Worker::Worker() = default;
Worker::~Worker() = default;

u64 Worker::random() {
  rng_ ^= rng_ << 13;
  rng_ ^= rng_ >> 7;
  rng_ ^= rng_ << 17;
  return rng_;
}

// ---- switching ------------------------------------------------------------------------------------------------------

void Worker::switch_from(Fiber& me, Fiber* next) {
  if (next == &me) return;  // a copy that pick() let go on was what it waits for
  ++switches_;
  running_ = next;
  store_origin(jump(next ? next->context : main_context_, &me.context));
}

void Worker::enter(Fiber& fiber) {
  running_ = &fiber;
  store_origin(jump(fiber.context, &main_context_));
  running_ = nullptr;
}

void Worker::wait_for_other_warps(Fiber& me) { switch_from(me, pick()); }

void Worker::poll(Fiber& me, const void* address) {
  me.reason = WaitReason::poll;
  me.wait_detail = reinterpret_cast<u64>(address);
  pollers_.push_back(&me);
  switch_from(me, pick());
}

void Worker::let_others_run(Fiber& me) {
  me.reason = WaitReason::none;
  wake(me);
  switch_from(me, pick());
}

void Worker::wake(Warp& warp, u32 lanes) {
  warp.ready |= lanes;
  if (!warp.queued && &warp != hot_ && lanes) {
    warp.queued = true;
    queue_.push_back(&warp);
  }
}

Fiber* Worker::pick_lane(Warp& warp) {
  u32 lane = u32(__builtin_ctz(warp.ready));
  if (options().schedule == SchedulePolicy::shuffled) {
    u32 choices = warp.ready;
    for (u64 skip = random() % u64(__builtin_popcount(choices)); skip; --skip) choices &= choices - 1;
    lane = u32(__builtin_ctz(choices));
  }
  warp.ready &= ~(1u << lane);
  return &warp.fibers[lane];
}

Fiber* Worker::pick() {
  if (launch_->stopped()) return nullptr;
  const SchedulePolicy policy = options().schedule;
  if (!copying_.empty() && options().async == AsyncPolicy::random && random() % 4 == 0) complete_random_copy();
  if ((!bulks_.empty() || !arrivals_.empty()) && options().async == AsyncPolicy::random && random() % 4 == 0) advance_async();
  // Starts a few clusters more than have to run, so that late ones find others under way. In checked mode only, where one worker runs all
  // blocks: with several workers, the number of OS threads would decide which blocks share a worker and its random numbers.
  constexpr size_t kMostAtOnce = 4;
  if (shadow_ && launch_->mixes_clusters() && live_.size() < kMostAtOnce && launch_->clusters_left() &&
      launch_->resident < launch_->request.resident_blocks && random() % 16 == 0)
    start_cluster();
  // A meaning may ask who runs it, so not on the main stack.
  if (!multiplying_.empty() && running_ && random() % 4 == 0) complete_random_product();
  if (hot_ && hot_->ready) {
    if (policy == SchedulePolicy::warp_first) return pick_lane(*hot_);
    hot_->queued = true;
    queue_.push_back(hot_);
  }
  hot_ = nullptr;
  while (!queue_.empty()) {
    if (policy == SchedulePolicy::shuffled) std::swap(queue_.front(), queue_[random() % queue_.size()]);
    Warp* warp = queue_.front();
    queue_.pop_front();
    warp->queued = false;
    if (!warp->ready) continue;
    hot_ = warp;
    return pick_lane(*warp);
  }
  return nullptr;
}

void Worker::complete_random_copy() {
  const size_t at = random() % copying_.size();
  Fiber& fiber = *copying_[at];
  std::vector<AsyncCopy*> pending;
  for (AsyncCopy& copy : fiber.copies)
    if (!copy.done) pending.push_back(&copy);
  if (!pending.empty()) complete_copy(fiber, *pending[random() % pending.size()]);
  if (pending.size() <= 1) {
    std::swap(copying_[at], copying_.back());
    copying_.pop_back();
  }
}

void Worker::announce(const CopyArrival& arrival) {
  if (options().async == AsyncPolicy::eager) {
    complete_arrival(*this, arrival);
  } else {
    arrivals_.push_back(arrival);
  }
}

void Worker::take_arrival(size_t index) {
  const CopyArrival arrival = arrivals_[index];
  arrivals_.erase(arrivals_.begin() + std::ptrdiff_t(index));
  complete_arrival(*this, arrival);
}

void Worker::complete_random_product() {
  const size_t at = random() % multiplying_.size();
  Warpgroup& group = *multiplying_[at].group;
  if (group.done < group.arrived) complete_product(*this, *multiplying_[at].block, group);
  if (group.done < group.arrived) return;
  group.pending = false;
  multiplying_[at] = multiplying_.back();
  multiplying_.pop_back();
}

// ---- faults ---------------------------------------------------------------------------------------------------------

void Worker::report(ReportKind kind, const Fiber& at, std::string text, u64 address) {
  launch_->add({kind, at.block->index, i64(at.index), address, std::move(text), at.pc});
}

void Worker::fatal(ReportKind kind, const Fiber& at, std::string text, u64 address) {
  launch_->add({kind, at.block->index, i64(at.index), address, std::move(text), at.pc}, true);
  abandon();
}

void Worker::abandon() {
  launch_->stop();
  void* abandoned;
  jump(main_context_, &abandoned);
  __builtin_unreachable();
}

void Worker::access(Fiber& fiber, const void* address, u64 bytes, bool write, const char* what) {
  if (shadow_) {
    shadow_->access(fiber, address, bytes, write, what);
  } else if (bounds_) {
    bounds_->judge(fiber, address, bytes, write, what);
  }
}

// ---- the end of a thread --------------------------------------------------------------------------------------------

void Worker::finish(Fiber& me) {
  me.pc = nullptr;
  // Its copies are complete at the latest now
  for (size_t i = 0; i < arrivals_.size();) {
    if (arrivals_[i].fiber == &me) take_arrival(i);
    else ++i;
  }
  for (AsyncCopy& copy : me.copies)
    if (!copy.done) complete_copy(me, copy);
  if (shadow_ && !me.copies.empty())
    launch_->add({ReportKind::async, me.block->index, i64(me.index), 0,
                  text_of("exits before it has waited for %zu of its cp.async", me.copies.size()), me.copies.back().pc});
  me.copies.clear();
  me.copy_groups.clear();
  for (const std::shared_ptr<Bulk>& store : me.stores) {
    if (store->group <= me.stores_read) continue;
    launch_->add({ReportKind::async, me.block->index, i64(me.index), 0,
                  "exits before it has waited until the source of this bulk store was read", store->pc});
    break;
  }
  leave_wgmma(me);
  // A stack that was never this deep is zero at its end.
  const u64* end = reinterpret_cast<const u64*>(me.stack);
  if (end[0] | end[1] | end[2] | end[3]) {
    std::memset(me.stack, 0, 32);
    fatal(ReportKind::stack, me, text_of("needs more than its %u KiB of stack", u32(kStackBytes >> 10)));
  }
  me.done = true;
  ++progress_;
  Block& block = *me.block;
  --block.live;
  if (const u64 number = me.aligned_steps - me.warp->first_aligned; number < me.warp->aligned.size())
    launch_->add(
        {ReportKind::divergence, block.index, i64(me.index), 0,
         text_of("exits without the %s that lanes %08x of its warp execute", me.warp->aligned[number].what, me.warp->aligned[number].lanes),
         me.warp->aligned[number].pc});
  me.warp->alive &= ~(1u << me.lane);
  if (me.warp->alive) leave_warp(me);
  leave_cluster(me);
  if (block.live) {
    leave_barriers(me);
  } else {
    finish_bulks(*this, block);
    check_register_changes(me);
    --block.cluster->live_blocks;
    finished_blocks_ = true;
  }
  switch_from(me, pick());
}

void Worker::retire() {
  if (!finished_blocks_) return;
  finished_blocks_ = false;
  std::erase_if(copying_, [](Fiber* fiber) { return fiber->done; });
  std::erase_if(multiplying_, [](const Multiplying& pending) { return pending.block->live == 0; });
  std::erase_if(live_, [&](Cluster* cluster) {
    if (cluster->live_blocks) return false;
    free_slots_.push_back(cluster->slot);
    launch_->resident -= u32(cluster->blocks.size());
    ++launch_->progress;
    return true;
  });
}

// ---- the main context -----------------------------------------------------------------------------------------------

void Worker::run(Launch& launch) {
  launch_ = &launch;
  rng_ = launch.request.options.seed * 0x9e3779b97f4a7c15u | 1;
  progress_ = seen_progress_ = seen_launch_progress_ = 0;
  idle_rounds_ = 0;
  switches_ = 0;
  stay_in_warp_ = options().schedule == SchedulePolicy::warp_first && options().async != AsyncPolicy::random;
  used_stacks_ = 0;
  polled_since_advance_ = true;
  free_slots_.clear();
  if (launch.request.options.asan) arena_.map_shadow();
  if (launch.request.options.checked || launch.request.options.asan) bounds_ = std::make_unique<Bounds>(*this);
  if (launch.request.options.checked) {
    shadow_storage_ = std::make_unique<Shadow>(*this);
    shadow_ = shadow_storage_.get();
  }
  ++launch.active_workers;
  {
    FaultGuard guard(*this);
    // A fault in a kernel comes back here, on the main stack.
    if (sigsetjmp(fault_return, 1) == 0) {
      schedule();
    } else {
      report_fault();
    }
  }
  --launch.active_workers;
  launch.switches += switches_;
  // An abandoned launch leaves fibers behind: forget them.
  queue_.clear();
  pollers_.clear();
  copying_.clear();
  bulks_.clear();
  arrivals_.clear();
  multiplying_.clear();
  meaning_runs = false;
  live_.clear();
  hot_ = nullptr;
  shadow_ = nullptr;
  shadow_storage_.reset();
  bounds_.reset();
  // Many stacks are given back; after a fault all are, because threads left in the middle may have written to their
  // ends and left the marks of their local variables.
  const u64 kept_stacks = launch.stopped() ? 0 : 8192;
  arena_.trim_stacks(kept_stacks, used_stacks_);
}

void Worker::schedule() {
  while (!launch_->stopped()) {
    if (Fiber* fiber = pick()) {
      enter(*fiber);
      retire();
      continue;
    }
    if (launch_->stopped()) return;
    // As late as allowed is when nobody else can go on, pollers included.
    if ((pollers_.empty() || polled_since_advance_) && advance_async()) {
      polled_since_advance_ = false;
      continue;
    }
    if (live_.empty()) {
      if (!start_cluster()) return;
    } else if (!pollers_.empty()) {
      if (!revive_pollers()) return report_stuck(ReportKind::livelock);
    } else {
      return report_stuck(ReportKind::deadlock);
    }
  }
}

bool Worker::revive_pollers() {
  const u64 launch_progress = launch_->progress;
  if (progress_ != seen_progress_ || launch_progress != seen_launch_progress_) idle_rounds_ = 0;
  constexpr u32 kIdleRounds = 3;
  if (++idle_rounds_ > kIdleRounds) {
    // Whom they wait for may not have started: a GPU runs many blocks at once.
    if (launch_->resident < launch_->request.resident_blocks && start_cluster()) {
      idle_rounds_ = 0;
    } else if (!others_progress()) {
      return false;
    }
  }
  seen_progress_ = progress_;
  seen_launch_progress_ = launch_progress;
  polled_since_advance_ = true;
  std::vector<Fiber*> reviving;
  reviving.swap(pollers_);
  for (Fiber* fiber : reviving) wake(*fiber);
  return true;
}

/// Waits for another worker to change memory after this one's last look at it; false when all are stuck.
bool Worker::others_progress() {
  bool counted = false;
  while (!launch_->stopped()) {
    {
      const std::lock_guard lock(launch_->stuck_mutex);
      if (launch_->progress != seen_launch_progress_) return true;
      if (launch_->stuck_at != seen_launch_progress_) launch_->stuck_at = seen_launch_progress_, launch_->stuck_workers = 0;
      if (!counted) ++launch_->stuck_workers, counted = true;
      if (launch_->stuck_workers >= launch_->active_workers) return false;
    }
    sched_yield();
  }
  return true;
}

// ---- workers of the process -----------------------------------------------------------------------------------------

namespace {
struct WorkerPool {
  std::mutex mutex;
  std::vector<std::unique_ptr<Worker>> idle;
};
WorkerPool& worker_pool() {
  static WorkerPool& pool = *new WorkerPool;
  return pool;
}
}  // namespace

WorkerLease::WorkerLease() {
  WorkerPool& pool = worker_pool();
  {
    std::lock_guard<std::mutex> lock(pool.mutex);
    if (!pool.idle.empty()) {
      worker_ = std::move(pool.idle.back());
      pool.idle.pop_back();
    }
  }
  if (!worker_) worker_ = std::make_unique<Worker>();
}

WorkerLease::~WorkerLease() {
  WorkerPool& pool = worker_pool();
  std::lock_guard<std::mutex> lock(pool.mutex);
  pool.idle.push_back(std::move(worker_));
}

}  // namespace quern::emu
