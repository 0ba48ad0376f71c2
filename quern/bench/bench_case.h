// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Times one case of an op: runs that take turns among sets of buffers, then judges what those buffers hold.
#pragma once
#include <string>
#include <vector>

#include "quern/bench/ceiling.h"
#include "quern/bench/host_time.h"
#include "quern/bench/time_call.h"
#include "quern/testing/check.h"

namespace quern::bench {

struct BenchOptions {
  TimingOptions timing;
  u64 seed = 1;
  bool host = false;  ///< also the host's time
  std::string peer;   ///< also this provider's kernel
};

/// One line of a benchmark. Figures that do not apply or were not measured are 0.
struct BenchResult {
  std::string op, which, kernel, device, provider;
  std::string asked;  ///< the case as it was asked for; `which` also states what the op's cases complete; both what the op makes of them
  bool cold = true;
  Timing timing;
  Cost cost;
  double floor_us = 0, copy_us = 0;
  double error = 0;  ///< largest, in units of the tolerance
  bool ok = true;
  testing::CheckResult::Verdict verdict =
      testing::CheckResult::Verdict::wrong;  ///< of a result that is not ok: wrong, or the call did not run
  std::string message;                       ///< why it is wrong, or why there is no figure
  std::string checked;                       ///< "8 of 4096 rows", "all"
  u32 sm_clock_mhz = 0;
  std::string clocks;  ///< the GPU's state after the runs
  HostTime host;
  bool timed() const { return timing.runs > 0; }
  double share_of_floor() const { return timed() ? floor_us / timing.median_us : 0; }
  double share_of_copy() const { return timed() ? copy_us / timing.median_us : 0; }
  double tflops() const { return timed() ? cost.flops / timing.median_us / 1e6 : 0; }
  double gbps() const { return timed() ? cost.bytes / timing.median_us / 1e3 : 0; }
};

/// quern's result, then the peer's if one is asked for and there is one for the op. Typed errors of the call become
/// results with a message.
std::vector<BenchResult> bench_case(const Op& op, const Case& given, Device& device, const Ceilings& ceilings, const BenchOptions& options);

/// The cases that "tokens=1,64 hidden=4096" names (every combination), or without words the op's bench shapes, else the
/// first value of each parameter. Throws Error{value} for words that the op does not know.
std::vector<Case> bench_cases(const Op& op, const std::vector<std::string>& words);

/// Bytes of a case's operands, without making them.
double case_bytes(const Op& op, const Case& given);

}  // namespace quern::bench
