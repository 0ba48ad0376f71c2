// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/testing/case_args.h"
#include "quern/testing/null_device.h"

namespace quern::bench {

/// An op's call on a device that launches nothing, with tensors that are never touched: what remains is the host's
/// part, at any size. Kernels are built once, when the call is made.
class NullCall {
 public:
  /// The op's first bench shape, or the first value of each parameter of its cases.
  explicit NullCall(const Op& op);
  NullCall(const NullCall&) = delete;
  /// One call: bind, plan, kernel lookup, parameters, null launches.
  void operator()() { run(op_, args_.get(), options_); }
  i64 launches() const { return device_.launches(); }
  const Case& which() const { return which_; }

 private:
  const Op& op_;
  Case which_;
  testing::ArgsStorage args_;
  testing::NullDevice device_;
  RunOptions options_;
};

}  // namespace quern::bench
