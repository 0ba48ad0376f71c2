// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "quern/device/emulated.h"
#include "quern/emu/report.h"

namespace quern::emu {

class Footprint;
class MemoryMap;
class Module;

/// What a launch runs.
struct LaunchRequest {
  void (*entry)(const void* params) = nullptr;
  const void* params = nullptr;
  Index3 grid = {1, 1, 1};
  ClusterShape cluster;
  u32 threads = 1;
  u32 smem = 0;
  u32 registers = 256;      ///< of a thread, at launch
  u32 resident_blocks = 1;  ///< most blocks that the device holds at once
  EmulatedOptions options;
  const Module* module = nullptr;  ///< where code lies, to name source lines
  MemoryMap* memory = nullptr;     ///< checked mode: what the launch may touch; null: global memory is not checked
  // Checked mode, programmatic dependent launch.
  Footprint* footprint = nullptr;                                       ///< filled with what the launch touches
  std::vector<std::shared_ptr<const Footprint>> overlapped;             ///< of launches that may not have ended
  std::vector<std::shared_ptr<const Footprint>> overlapped_after_wait;  ///< those of them that griddepcontrol.wait leaves
};
struct LaunchStats {
  u64 switches = 0;
  bool waited = false;  ///< a block has executed griddepcontrol.wait: then the launch ended after those before it
};

/// Runs the grid to its end or its first fatal fault. Thread-safe.
std::vector<Report> run_launch(const LaunchRequest& request, LaunchStats* stats = nullptr);

/// A launch in progress: shared by its workers.
class Launch {
 public:
  explicit Launch(const LaunchRequest& request);

  const LaunchRequest& request;
  const u64 blocks;
  const u64 clusters;

  /// Number of the next cluster to run, or -1 when all have been taken. A GPU may start them in any order: here the copies' policy and the
  /// schedule choose one.
  i64 take_cluster();
  bool mixes_clusters() const {
    return request.options.schedule == SchedulePolicy::shuffled || request.options.async == AsyncPolicy::random;
  }
  bool clusters_left() const { return next_cluster_.load(std::memory_order_relaxed) < clusters; }

  /// At most 20 are kept, and 20 that need two places; `last`: the one that ends the launch is kept in any case.
  void add(Report report, bool last = false);
  void stop() { stopped_.store(true, std::memory_order_relaxed); }
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  std::vector<Report> take_reports() { return std::move(reports_); }

  /// Changes of memory that a polling thread may be waiting for.
  std::atomic<u64> progress{0};
  std::atomic<i32> active_workers{0};
  /// Workers that have nothing to do until `progress` moves on from `stuck_at`. One that was counted at an earlier value has
  /// news to see, whenever its OS thread runs again.
  std::mutex stuck_mutex;
  u64 stuck_at = 0;
  i32 stuck_workers = 0;
  std::atomic<u32> resident{0};  ///< blocks started and not finished
  std::atomic<u64> switches{0};
  std::atomic<bool> waited{false};  ///< a block has executed griddepcontrol.wait

 private:
  std::atomic<u64> next_cluster_{0};
  u64 step_ = 1, first_ = 0;  ///< of the order
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
  std::vector<Report> reports_;
};

}  // namespace quern::emu
