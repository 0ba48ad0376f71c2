// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Calls recorded with QN_TRACE, read back. The format is docs/tracing.md.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "quern/testing/case_args.h"

namespace quern::testing {

/// Memory that one or more tensors of a recorded call lay in.
struct TracedMemory {
  i64 bytes = 0;
  i64 misalignment = 0;  ///< of its address to 256 bytes
};
/// Where a tensor lay; memory is -1 for an absent one.
struct TracedPlace {
  i32 memory = -1;
  i64 offset = 0;  ///< bytes
};

/// What of a launch of the recorded plan decides the order in which its kernel computes.
struct TracedLaunch {
  std::string kernel;  ///< "norm_row<...>"
  u32 grid[3] = {};
  ClusterShape cluster;
};

/// A recorded call. Its arguments can be bound and planned as they are; their pointers have the alignment of the recorded
/// ones, alias as those did, and must not be followed (replay.h gives them memory).
struct TracedCall {
  explicit TracedCall(const Op& o) : op(&o), args(o) {}

  const Op* op;
  std::string folder;
  ArgsStorage args;    ///< tensors on the device that was recorded, attributes, hooks
  RunOptions options;  ///< variant, batch_invariant, pdl and skip_check as recorded
  bool emulated = false;
  Arch arch;
  std::string kernels;                 ///< of the recorded plan: "norm_row<...> + combine<...>"
  std::vector<TracedLaunch> launches;  ///< of the recorded plan
  std::vector<TracedPlace> places;     ///< by the op's tensors
  std::vector<TracedMemory> memory;
  std::string left_out;      ///< why the record has no data; empty when it has
  bool finished = false;     ///< it came to an end
  bool has_outputs = false;  ///< and its outputs are in the record
  std::string error;         ///< of the recorded call

  /// Elements of a tensor before the call or after it, packed; Error{value} when the record lacks them.
  std::string elements(size_t tensor, bool after) const;
};

/// Throws Error{value} naming the folder and what is wrong in it, also when it was written by another format. Recorded hooks are
/// code, which a replay compiles and runs: other than those of a registered op are refused unless `trust_hooks`.
TracedCall read_traced_call(const std::string& folder, bool trust_hooks = false);
/// Folders of calls in a folder that QN_TRACE named, in the order of recording; `folder` itself when it is one.
std::vector<std::string> traced_calls(const std::string& folder);

}  // namespace quern::testing
