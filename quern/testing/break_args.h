// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <string>

#include "quern/testing/case_args.h"

namespace quern::testing {

/// What was done to valid arguments.
struct Broken {
  const char* kind = "nothing";
  std::string tensor;
  bool must_fail = false;  ///< a quern::Error is the only right answer
  bool may_run = true;     ///< when accepted, the call stays inside its memory and the reference can judge it
  bool small_workspace = false;
};
/// Breaks one thing (or, at times, nothing) of the arguments and options.
Broken break_args(const Op& op, void* args, RunOptions& options, Random& random);

}  // namespace quern::testing
