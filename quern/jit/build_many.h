// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <chrono>
#include <functional>
#include <span>
#include <string>

#include "quern/jit/build.h"

namespace quern::jit {

struct BuildJob {
  KernelSpec spec;
  Target target;
};
/// What became of one job.
struct BuildOutcome {
  bool from_cache = false;
  double compile_ms = 0;  ///< of the compile that made it, now or earlier
  i64 image_bytes = 0;
  std::string error;  ///< why there is no kernel; empty: there is
};

/// Builds kernels into the disk cache on worker processes (0: one a CPU) and calls `report` as each is done, on this thread. A
/// kernel that fails, or kills its worker, is an outcome like others. The workers are forked, so kernels and hooks of the
/// caller are built as well; they use no device and touch nothing that the caller has mapped from one. No other thread may be
/// in quern: a lock that it holds at a fork stays held in the worker for ever. A job that takes longer than `deadline`, for this
/// or another reason, has its worker killed and is reported as failed. Throws Error{device} when no process can be made.
void build_many(std::span<const BuildJob> jobs, int processes, const std::function<void(size_t job, const BuildOutcome&)>& report,
                std::chrono::milliseconds deadline = std::chrono::minutes(10));

}  // namespace quern::jit
