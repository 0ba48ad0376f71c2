// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The memory of a call beside its tensors: workspace, kept regions, and what a checked device is told of all of it.
#pragma once
#include "quern/op/schema.h"

namespace quern {

/// Bytes that a checked device has between the regions of a workspace from its pool: what one writes behind its end is in no other.
constexpr i64 kCheckedGap = 1024;

/// Addresses of the plan's scratch and zeroed regions in a workspace where `gap` bytes follow each.
void place_regions(const Plan& plan, char* workspace, i64 gap, char** regions);

/// Owns what a call works in for its time: the workspace, the caller's or one of the device's pool; tells a checked device which memory
/// the call may touch. Throws Error{value} for a workspace that is too small, Error{frozen} where the stream captures.
class CallMemory {
 public:
  CallMemory(const Op& op, const void* args, const Plan& plan, const RunOptions& options, Device& device);
  ~CallMemory();
  CallMemory(const CallMemory&) = delete;
  char* const* regions() const { return regions_; }

 private:
  CallMemory(Device& device, Stream stream) : device_(device), stream_(stream) {}
  /// `needed`: without the gaps that a checked device has between regions, which are in `bytes`.
  char* take_workspace(const Op& op, const void* args, i64 needed, i64 bytes, const RunOptions& options);
  void tell_ranges(const Op& op, const void* args, const Plan& plan);

  Device& device_;
  Stream stream_;
  void* pooled_ = nullptr;
  bool told_ = false;
  char* regions_[kMaxRegions];
};

/// Runs the plan's fills that come before launch `before`, or behind all launches. Whether there were any.
bool run_fills(const Op& op, const void* args, const Plan& plan, i32 before, char* const* regions, Device& device, Stream stream);

}  // namespace quern
