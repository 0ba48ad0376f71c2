// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <string_view>

namespace quern {

/// More than any document of quern has.
constexpr int kMostJsonDepth = 64;

/// False for a JSON text whose objects and lists nest deeper than kMostJsonDepth. Asked before a text of others is parsed: the
/// parser's tree is copied, compared and printed by recursion, which some 100 KB of brackets drive over the end of the stack.
/// A text that is no JSON is judged up to what is wrong in it at least; the parser refuses it.
bool json_nests_well(std::string_view text);

}  // namespace quern
