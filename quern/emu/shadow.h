// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Checked mode: judges every access of a kernel that Bounds lets pass. Races and uninitialised reads are reported and the
// launch goes on.
#pragma once
#include <unordered_map>

#include "quern/emu/bounds.h"
#include "quern/emu/cells.h"
#include "quern/emu/memory_map.h"
#include "quern/emu/worker.h"

namespace quern::emu {

/// Cells of a block's shared memory.
struct BlockShadow {
  std::vector<Cell> cells;
  std::vector<u8> states;
};

class Shadow {
 public:
  explicit Shadow(Worker& worker);

  void block_started(Block& block);
  /// A thread goes on after an arrival: the barrier publishes what it has done until here. Then all have come.
  void arrive(Fiber& fiber, Barrier& barrier);
  void barrier_opens(Barrier& barrier);
  /// Lanes have met at sync_warp.
  void join_lanes(Warp& warp, u32 lanes);

  /// An access by a thread to any address; `what` names the instruction.
  void access(Fiber& fiber, const void* address, u64 bytes, bool write, const char* what);
  void copy_issued(Fiber& fiber, const AsyncCopy& copy);
  void copy_waited(Fiber& fiber, const AsyncCopy& copy);
  void before_atomic(Fiber& fiber, const AtomicCall& call);
  void fence(Fiber& fiber);

 private:
  void judge(Fiber& fiber, u64 address, u64 bytes, AccessKind kind, bool reads, const char* what);
  void judge_shared(Fiber& fiber, const Bounds::Place& at, u64 bytes, AccessKind kind, bool reads, const char* what);
  void judge_global(Fiber& fiber, MemoryMap::Region& region, u64 address, u64 bytes, AccessKind kind, bool reads,
                    const char* what);
  void report_race(Fiber& fiber, const char* what, bool write, const std::string& place, const Conflict& conflict);
  void report_uninitialised(Fiber& fiber, const char* what, const std::string& place);
  CellSpan shared_span(Block& block, u32 offset, u64 bytes);
  u32 code_of(const Fiber& fiber) const;
  void order(Fiber& fiber, const AtomicCall& call);

  Worker& worker_;
  Bounds& bounds_;
  const LaunchRequest& request_;
  std::unordered_map<u64, Knowledge> published_;  ///< by address: what its atomics have released
  std::vector<ThreadClock*> meeting_;
};

}  // namespace quern::emu
