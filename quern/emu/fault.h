// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once

namespace quern::emu {

class Worker;

/// While it lives, a SIGSEGV, SIGBUS or SIGFPE on this OS thread ends the worker's launch (siglongjmp to fault_return).
/// Signals of other threads go to whoever handled them before.
class FaultGuard {
 public:
  explicit FaultGuard(Worker& worker);
  ~FaultGuard();
  FaultGuard(const FaultGuard&) = delete;
  FaultGuard& operator=(const FaultGuard&) = delete;

 private:
  Worker* outer_;
};

}  // namespace quern::emu
