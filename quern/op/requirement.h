// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What an op's requirement says of a call.
#pragma once
#include "quern/op/schema.h"

namespace quern {

/// Throws Error{value}. Axes whose value the expectation states, as in "a multiple of heads_kv=16", are followed by the tensor that set them, with its shape: where a tensor has another layout than
/// was meant, the axes are right by name and wrong by value, and only the shape shows it.
[[noreturn]] void fail_requirement(const Op& op, const void* args, const Rejection& rejection);

}  // namespace quern
