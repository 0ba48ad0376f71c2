// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What an op's requirement says of a call, and where the values of axes are from.
#pragma once
#include <string>

#include "quern/op/schema.h"

namespace quern {

/// The tensor that told the axis: the first one stated that does and is present; null: none.
const TensorDef* teller_of(const Op& op, const void* args, Axis axis);
/// "hidden was set by `x` [3, 8]".
std::string teller_text(const Op& op, const void* args, Axis axis, const TensorDef& teller);

/// Throws Error{value}. Axes whose value the expectation states, as in "a multiple of heads_kv=16", are followed by the tensor that set
/// them, with its shape: where a tensor has another layout than was meant, the axes are right by name and wrong by value, and only the
/// shape shows it.
[[noreturn]] void fail_requirement(const Op& op, const void* args, const Rejection& rejection);

}  // namespace quern
