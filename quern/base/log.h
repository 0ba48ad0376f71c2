// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <string>

namespace quern {

enum class LogLevel : int { warning = 0, info = 1, call = 2, tensor = 3 };

/// True when a message of that level would be written (QN_LOG_LEVEL, read once).
bool log_enabled(LogLevel level);
/// One line to stderr, with time and process.
void log(LogLevel level, const std::string& text);

/// The same whatever QN_LOG_LEVEL says: for output that the user asked for by another variable.
void log_always(const std::string& text);

}  // namespace quern
