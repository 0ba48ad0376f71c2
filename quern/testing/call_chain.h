// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/schema.h"

namespace quern::testing {

/// Makes calls on a device as a serving engine makes them. With pdl in checked mode each stands in a chain of dependent launches: one
/// before it that reads and writes all that it touches, but for what the schema lets it read early, and one behind it that does the same.
/// Neither is a kernel; the device only takes it that they were launched.
class CallChain {
 public:
  explicit CallChain(Device& device);
  ~CallChain();
  CallChain(const CallChain&) = delete;
  /// Where the chain ends without a wait: Error{device}. `options.device` and, on a checked device, `options.stream` are the chain's.
  void run(const Op& op, const void* args, RunOptions options);

 private:
  Device& device_;
  bool checked_;
  Stream stream_;  ///< of its own: calls of other host threads would break the chain
};

}  // namespace quern::testing
