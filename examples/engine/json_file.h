// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace engine {

/// The tree of a JSON text. Throws quern::Error{value} for what is no JSON, nests deeper than kMostDepth, or has a key twice in an object:
/// the parser alone keeps the last one silently.
nlohmann::json parse_json(const std::string& text, const std::string& where);
/// A JSON file. Throws quern::Error{value} where it cannot be read.
nlohmann::json read_json(const std::string& path);

}  // namespace engine
