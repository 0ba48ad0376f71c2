// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <string>

#include "quern/op/schema.h"

namespace quern::emu {
class Graph;
}

namespace quern::testing {

/// In words, the order of the largest sum in the expression of a word: "8 fma in a row; 32 of these added in pairs; 4 of
/// these added in order". Factors and functions around the sum are left out, and so is what its terms are made of.
std::string sum_text(const emu::Graph& graph, u32 word);

/// The order in which the op sums one element of its first output (of the first row) for a case of these sizes, on an
/// emulated H200. Throws Error{device} when the case is too large for a graph.
std::string sum_text_of(const Op& op, const Case& given, u64 seed);

}  // namespace quern::testing
