// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Every argument must matter: a kernel that ignores one is right on half of the inputs that a test thinks of.
#pragma once
#include <string>
#include <vector>

#include "quern/op/schema.h"

namespace quern::testing {

/// Inputs, attributes and, where a case states it, batch_invariant that change nothing: neither another content or value of it alone
/// changes a bit of an output in any of the op's pairwise cases of at most `most_bytes`, nor is every other value refused. For
/// batch_invariant and hints the plan must change. Tensors take the content that another seed gives them, so what an op's
/// `.generate` makes is the range in which they must matter. On a checked device a fault counts as a change: the content was used.
std::vector<std::string> ignored_arguments(const Op& op, Device& device, double most_bytes = 1 << 18);

/// Hints that do more than choose the plan, each once: "expected_m: 17 in the place of 0 changes the bits of variant portable in CASE", or
/// that a call which names no variant is then wrong by the reference. Contents stay those of the case. Tried are pairwise cases of at most
/// `most_bytes`, up to `most_cases` of them spread over the array.
std::vector<std::string> misleading_hints(const Op& op, Device& device, size_t most_cases, double most_bytes = 1 << 18);

}  // namespace quern::testing
