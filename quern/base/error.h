// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <stdexcept>
#include <string>

#include "quern/base/api.h"

namespace quern {

/// What went wrong, for callers that react by kind (the Python binding maps each to an exception type).
enum class ErrorKind {
  value,        ///< a shape, stride, alignment or attribute is wrong
  type,         ///< a dtype is wrong
  unsupported,  ///< no variant of the op runs this problem on this device
  compile,      ///< a kernel did not compile
  frozen,       ///< a compile, load or allocation was needed where none is allowed
  device,       ///< the device or its driver failed, or is missing
  internal,     ///< a bug in quern
};
QN_API const char* name(ErrorKind kind);

/// The only exception that quern throws. `what()` reads "<op>: `<argument>` <got>, expected <expected>" where those are known.
class QN_API Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  Error(ErrorKind kind, std::string op, std::string argument, std::string got, std::string expected);

  /// The same error of a call of `op`: the text names the op, where it did not, and ends with `note`.
  Error in_call(const std::string& op, const std::string& note = {}) const;

  ErrorKind kind() const { return kind_; }
  const std::string& op() const { return op_; }              ///< op id, or empty
  const std::string& argument() const { return argument_; }  ///< name of the argument, or empty
  const std::string& expected() const { return expected_; }
  const std::string& got() const { return got_; }

 private:
  ErrorKind kind_;
  std::string op_, argument_, expected_, got_;
};

}  // namespace quern
