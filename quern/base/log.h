// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <functional>
#include <string>

#include "quern/base/api.h"

namespace quern {

/// What QN_LOG_LEVEL asks for. Warnings are written at every level.
enum class LogLevel : int {
  warning = 0,
  call = 1,        ///< each call by op and kernels, each compile
  tensors = 3,     ///< also shapes, strides, dtypes, devices, attributes; before the launch
  statistics = 5,  ///< also min, max, mean, NaN and infinities of each tensor
};

/// True when a message of that level would be written. One relaxed load once QN_LOG_LEVEL was read.
bool log_enabled(LogLevel level);
/// One line, with time and process, to QN_LOG_DEST (stderr by default).
void log(LogLevel level, const std::string& text);
/// The same whatever QN_LOG_LEVEL says: for output that the user asked for by another variable.
void log_always(const std::string& text);

/// In the place of QN_LOG_LEVEL.
QN_API void set_log_level(int level);
/// Takes a line without time and process; false: write it to QN_LOG_DEST after all. Called by any thread, also with locks of quern
/// held: it must not call quern.
using LogSink = std::function<bool(LogLevel level, const std::string& text)>;
/// Gets every line from now on; an empty one: all go to QN_LOG_DEST again.
QN_API void set_log_sink(LogSink sink);

/// Keeps a call's name, so that a failure that a device reports later can be traced to it.
void remember_call(const std::string& text);
/// Sentence for such a failure: the calls remembered last, newest first, or how to have them remembered.
std::string suspects();

}  // namespace quern
