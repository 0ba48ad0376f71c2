// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Runs cases of an op on devices and judges them: every variant against the reference, guard bands, inputs, and rows
// alone against rows in the batch.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "quern/testing/compare.h"
#include "quern/testing/gpu_compiles.h"
#include "quern/testing/truth.h"

namespace quern::testing {

/// A device to check on and the options that make it again: "--device emu --async lazy --emu-seed 3".
struct CheckDevice {
  Device* device = nullptr;
  std::string words;
};

struct CheckResult {
  /// unsupported: no variant takes the case on that device. refused: the call is bad input. frozen: a kernel would have had to be
  /// compiled. Of these three nothing was compared. compile: no result of a case but of a kernel that ran there and that the compiler of
  /// the GPU refuses.
  enum class Verdict { right, wrong, unsupported, refused, frozen, compile };
  static constexpr int kVerdicts = 6;
  Verdict verdict = Verdict::right;
  std::string op, which, variant, kernels, device;
  std::string made;      ///< what the op makes of `which` (made_of)
  double error = 0;      ///< the largest of all outputs, in units of the tolerance
  double us = 0;         ///< of the call, compiling included
  std::string message;   ///< why it is not right
  std::string repro;     ///< command line
  std::string gpu_arch;  ///< for which the kernels are also compiled in this run; empty: for none
  bool ok() const { return verdict == Verdict::right || verdict == Verdict::unsupported; }
};
const char* name(CheckResult::Verdict verdict);
/// What an error of a call makes of its result.
CheckResult::Verdict verdict_of(ErrorKind kind);

/// One case with its data's seed, on some devices. Arguments and truth are made once.
struct CheckJob {
  const Op* op = nullptr;
  Case given;
  u64 seed = 1;
  std::vector<CheckDevice> devices;
  GpuCompiles* compiles = nullptr;  ///< also compiles what runs on an emulated device for its GPU; null: nothing is
};
/// A result for each device and variant, and one for each kernel that GpuCompiles refuses for the first time.
std::vector<CheckResult> check_case(const CheckJob& job);

/// Jobs on `threads` threads (0: one per CPU); `report` is called by one thread at a time, in no order. When the jobs of an op have
/// taken `seconds_an_op` together (0: no limit), the others of the op are left out: their report has no results.
void check_cases(const std::vector<CheckJob>& jobs, int threads, double seconds_an_op,
                 const std::function<void(const CheckJob&, const std::vector<CheckResult>&)>& report);

/// Compares every output of `args` (as after a run) with the truth, and looks for damage. The message names the output.
Comparison judge(const CaseArgs& args, const std::vector<Truth>& truths, const Problem& problem);

/// "rms_norm_row_block<...> + combine<...>" of a plan.
std::string kernels_text(const Plan& plan);

}  // namespace quern::testing
