// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <string>
#include <vector>

#include "quern/base/api.h"

namespace quern {

/// Levenshtein distance.
QN_API size_t edit_distance(const std::string& a, const std::string& b);
/// The known word that `word` most likely means, for "did you mean"; empty when none is near.
std::string nearest(const std::string& word, const std::vector<std::string>& known);

}  // namespace quern
