// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Outputs of a device of Number::order_free, compared bit for bit.
#pragma once
#include <string>
#include <vector>

#include "quern/testing/case_args.h"

namespace quern::testing {

/// What an output must hold, row-major; elements that are not `certain` may hold anything.
struct Expected {
  size_t tensor = 0;
  std::vector<u32> bits;
  std::vector<char> certain;
};

/// The op's meaning, by its order-free reference, which it must have. `args` are in their initial state.
std::vector<Expected> meaning_of(const CaseArgs& args);
/// The outputs as they are.
std::vector<Expected> outputs_of(const CaseArgs& args);
/// Why the outputs are not what they must be, damage around them included; empty when they are.
std::string difference(const CaseArgs& args, const std::vector<Expected>& expected);
/// Names an output that is no number: arithmetic that order-free numbers have no law for. Empty when there is none.
std::string without_meaning(const CaseArgs& args, const std::vector<Expected>& expected);

}  // namespace quern::testing
