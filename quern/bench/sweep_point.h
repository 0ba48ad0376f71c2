// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// One point of a sweep in one mode: every provider is judged, then timed in turns with the others, and its memory is counted.
#pragma once
#include <string>
#include <vector>

#include "quern/bench/ceiling.h"
#include "quern/bench/sweep.h"
#include "quern/bench/time_call.h"
#include "quern/testing/check.h"

namespace quern::bench {

struct SweepOptions {
  TimingOptions timing;
  u64 seed = 1;
  bool speed = true, memory = false;
};

/// What came of a provider. Figures that were not measured are 0.
struct SweepResult {
  std::string op, provider, spec;  ///< spec: kernels with their Configs, or what the provider calls itself
  Mode mode = Mode::forward;
  Timing timing;
  double memory_bytes = -1;  ///< measured; -1: not
  double planned_bytes = 0;  ///< outputs, and quern's workspace
  Cost cost;
  double floor_us = 0, sheet_us = 0;  ///< at the rates measured, and at the data sheet's
  double error = 0;                   ///< the largest, in units of the tolerance
  bool ok = true;
  testing::CheckResult::Verdict verdict = testing::CheckResult::Verdict::right;
  std::string message;  ///< why it is wrong, or why there is no figure
  std::string checked;  ///< "all", "8 of 4096 rows"
  std::string clocks;   ///< the GPU's state after the runs
  bool timed() const { return timing.runs > 0; }
};

/// Throws Error{value} for a provider that nobody is, Error{unsupported} for one of the Python package where this is not.
void check_provider(const std::string& name);

/// Results by provider, in their order. Each provider runs once on poisoned outputs, which are judged: a wrong one is not timed. What the
/// last timed run left is judged again. Other libraries may round four times more often than the op's budget says (judge_timed). Typed
/// errors become results with a message.
std::vector<SweepResult> bench_point(const Op& op, const SweepPoint& point, Mode mode, const std::vector<std::string>& providers,
                                     Device& device, const Ceilings& ceilings, const SweepOptions& options);

}  // namespace quern::bench
