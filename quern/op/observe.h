// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What users may switch on to see the calls of a process: the log (QN_LOG_LEVEL) and the record (QN_TRACE).
#pragma once
#include <string>

#include "quern/op/schema.h"

namespace quern {

/// A call between plan and launch.
struct ObservedCall {
  const Op& op;
  const void* args;
  const RunOptions& options;
  const Problem& problem;
  const Plan& plan;
  Device& device;
  bool capturing = false;  ///< of the stream: its launches run later, and its tensors cannot be read now
};

/// True when calls are logged or recorded. One relaxed load, but for the first time.
bool calls_observed();
/// What calls_observed() answers from now on. Only the recorder says so, under its lock, so that no answer is older than another.
void set_observed(bool tracing);

/// Where calls are recorded and how many are kept. QN_TRACE, QN_TRACE_MAX and QN_TRACE_MAX_MB say so at start.
struct TraceOptions {
  std::string folder;               ///< empty: nothing is recorded
  i64 max_calls = 1000;             ///< kept of this process since set_trace(), but for max_bytes 0; the oldest are removed
  i64 max_bytes = i64(4096) << 20;  ///< of their data; a call with more is recorded without. 0: all distinct calls, without data
};
/// Records calls from now on, by any thread, instead of what the environment said. A call that runs now may be missed.
QN_API void set_trace(const TraceOptions& options);

struct KernelNames {
  std::string printed;  ///< jit::print()
  std::string entry;    ///< jit::entry_name()
};
/// Both read the kernel's sources for the names of its fields, here once a kernel of the process: a call that is logged or
/// recorded says each of its kernels. The texts stay.
const KernelNames& kernel_names(const jit::KernelSpec& spec);

/// Logs and records around `launch`, which launches the call. Errors of it name the call, its kernels and where it was recorded.
void observe(const ObservedCall& call, void (*launch)(const ObservedCall&));

}  // namespace quern
