// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <vector>

#include "quern/testing/case_args.h"

namespace quern::testing {

/// What one output should hold, row-major: values and magnitudes (see Budget) in f64. Patterns kUnwrittenBits and
/// kUnspecifiedBits (op/ref.h) mark elements that must stay untouched and elements that may hold anything.
struct Truth {
  size_t tensor = 0;  ///< index in op.tensors
  std::vector<double> values, magnitudes;
};

/// Runs the op's reference on host arguments in their initial state. Throws Error{internal} when the op has none.
std::vector<Truth> truth_of(const CaseArgs& args);
/// The same for any host arguments; outputs may be strided views.
std::vector<Truth> truth_of(const Op& op, const void* args);

/// The error budget of an output: its own, else the op's, else rounding alone: one for the value, eight f32 roundings of the
/// magnitude.
Budget budget_of(const Op& op, const Problem& problem, size_t tensor);
/// The op's cost, else every operand moved once (those updated in place twice). `host_args` may be null when op.cost
/// is.
Cost cost_of(const Op& op, const Problem& problem, const void* args);

}  // namespace quern::testing
