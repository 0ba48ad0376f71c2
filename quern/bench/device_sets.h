// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// One case's arguments several times on a device, so that runs that take turns do not find their operands in the L2.
#pragma once
#include <deque>
#include <memory>
#include <vector>

#include "quern/bench/stream.h"
#include "quern/testing/case_args.h"

namespace quern::bench {

/// How many sets: enough that they exceed three times the L2, 2 at least, 8 at most (small operands are left to the
/// flush of the L2), and no more than half the device's memory holds. One when the L2 may stay hot.
int sets_wanted(double set_bytes, const DeviceInfo& device, bool cold);

/// What a device holds of one tensor, guard bands included, in host memory.
struct Downloaded {
  std::unique_ptr<char, void (*)(void*)> bytes{nullptr, nullptr};
  TensorView view;
};

/// Device copies of host arguments, each with memory, strides and guard bands of its own. The host's arguments stay as
/// they were generated; every set after the first is copied from the first on the device.
class DeviceSets {
 public:
  DeviceSets(const testing::CaseArgs& host, Device& device, int count);
  int count() const { return int(sets_.size()); }
  void* args(int set) { return sets_[size_t(set)].args.get(); }
  /// Outputs poisoned, tensors updated in place as they were generated.
  void restore(int set);
  /// Waits for the default stream.
  Downloaded download(int set, size_t tensor);

 private:
  struct Set {
    testing::ArgsStorage args;
    std::vector<DeviceMemory> blocks;  // one a tensor; none for absent ones
  };
  Set make(int set);

  const testing::CaseArgs& host_;
  Device& device_;
  std::deque<Set> sets_;
};

}  // namespace quern::bench
