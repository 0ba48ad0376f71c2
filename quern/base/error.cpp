// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/base/error.h"

namespace quern {

const char* name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::value: return "value";
    case ErrorKind::type: return "type";
    case ErrorKind::unsupported: return "unsupported";
    case ErrorKind::compile: return "compile";
    case ErrorKind::frozen: return "frozen";
    case ErrorKind::device: return "device";
    case ErrorKind::internal: return "internal";
  }
  return "?";
}

static std::string sentence(const std::string& op, const std::string& argument, const std::string& got, const std::string& expected) {
  std::string s = op;
  if (!s.empty()) s += ": ";
  if (!argument.empty()) s += "`" + argument + "` ";
  s += got;
  if (!expected.empty()) s += ", expected " + expected;
  return s;
}

Error::Error(ErrorKind kind, std::string op, std::string argument, std::string got, std::string expected)
    : std::runtime_error(sentence(op, argument, got, expected)),
      kind_(kind),
      op_(std::move(op)),
      argument_(std::move(argument)),
      expected_(std::move(expected)),
      got_(std::move(got)) {}

Error Error::in_call(const std::string& op, const std::string& note) const {
  Error named(kind_, (op_.empty() ? op + ": " : "") + what() + note);
  named.op_ = op_.empty() ? op : op_;
  named.argument_ = argument_, named.expected_ = expected_, named.got_ = got_;
  return named;
}

}  // namespace quern
