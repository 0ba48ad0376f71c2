// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Warm-up: the kernels that serving a model can need are listed from the pure plan and compiled before the first request.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "quern/base/error.h"
#include "quern/device/device.h"
#include "quern/op/problem.h"

namespace quern {

/// A call that was made or will be, without its tensors: what bind() makes of it.
struct WarmCall {
  std::string name;  ///< for the report
  Problem problem;
};

/// What to warm: a model file, single calls, or both. testing/warm_trace.h makes the calls from a folder of QN_TRACE.
struct WarmOptions {
  std::string model;                ///< a model inside the library by name, or a file by path; empty: none
  std::vector<std::string> limits;  ///< in the place of the model file's: "tokens=1..64", "tp=1,2", "alignment=16"
  std::vector<WarmCall> calls;
  std::vector<DeviceInfo> devices;  ///< device_info_of(arch), or a device's own info(); empty: that of the standard device
  int processes = 0;                ///< worker processes; 0: one a CPU
  bool list_only = false;           ///< compile nothing
};

/// One kernel of the list.
struct WarmKernel {
  enum class State { listed, cached, compiled, failed };
  std::string kernel;              ///< "norm_row<dtype=bf16, ...>"
  std::string arch;                ///< "sm_90a", or "emu" for the emulated device
  std::vector<std::string> calls;  ///< what calls it: "QKV projection", ...
  bool aligned = false;            ///< reached by 16-byte aligned operands too, not only by less aligned ones
  State state = State::listed;
  double compile_ms = 0;  ///< of the compile that made it, now or earlier
  i64 image_bytes = 0;    ///< of the cubin or shared object
  std::string error;      ///< why it failed
};
/// A call that reaches no kernel, or none with some of the values that its words and lists may have.
struct WarmSkipped {
  std::string call, op, arch, reason;
  bool refused = false;  ///< the op refuses the call; else quern lacks the op, or the call computes nothing
  std::string with;      ///< "head_dim=1000 tp=2"; empty: any
  bool partly = false;   ///< some sizes of its ranges are refused, of which `reason` is the first; the others are in the list
};
struct WarmReport {
  std::vector<WarmKernel> kernels;
  std::vector<WarmSkipped> skipped;
  i64 plans = 0;  ///< that the enumeration made
  double list_seconds = 0, build_seconds = 0;
};
/// After each kernel: which, how many of all are done, and an estimate of the seconds that the rest takes.
using WarmProgress = std::function<void(const WarmKernel& kernel, size_t done, size_t all, double seconds_left)>;

/// Lists and compiles into the disk cache, on worker processes that it forks: call it at start-up, while no other thread
/// compiles. A kernel that fails is reported and the others go on. Throws Error{value} for bad input (a model file that says
/// what is not so, an unknown limit).
QN_API WarmReport warm(const WarmOptions& options, const WarmProgress& progress = {});

}  // namespace quern
