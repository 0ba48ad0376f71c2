// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/emu/worker.h"
namespace quern::emu {
/// Not yet: checked mode.
class Shadow {
 public:
  explicit Shadow(Worker&) {}
  void block_started(Block&) {}
  void block_finished(Block&) {}
  void thread_finished(Fiber&) {}
  void join_threads(const std::vector<Fiber*>&) {}
  void join_lanes(Warp&, u32) {}
  void copy_issued(Fiber&, const AsyncCopy&) {}
  void copy_waited(Fiber&, const AsyncCopy&) {}
  void before_atomic(Fiber&, const AtomicCall&) {}
  void fence(Fiber&) {}
  void access(Fiber&, const void*, u64, bool, const char*) {}
};
}  // namespace quern::emu
