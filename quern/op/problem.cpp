// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/op/problem.h"

#include <cstdio>
#include <string>

#include "quern/op/schema.h"

namespace quern {

[[noreturn, gnu::cold, gnu::noinline]] static void fail_member(const Op& op, const char* what) {
  throw Error(ErrorKind::internal, op.id + " was asked for a member of its Args that its schema does not state as " + what);
}

int Problem::tensor_at(ptrdiff_t offset) const {
  int i = 0;
  while (op->tensor_offsets[i] != offset)
    if (++i == kMaxTensors) fail_member(*op, "a tensor");
  return i;
}

int Problem::attr_at(ptrdiff_t offset) const {
  int i = 0;
  while (op->attr_offsets[i] != offset)
    if (++i == kMaxAttrs) fail_member(*op, "an attribute");
  return i;
}

std::string expectation(const Rejection& r) {
  std::string s = r.text ? r.text : "";
  if (const size_t at = s.find("{}"); at != std::string::npos) s.replace(at, 2, std::to_string(r.wanted));
  return s;
}

std::string to_string(const Got& got) {
  if (got.word) return got.word;
  if (!got.is_real) return std::to_string(got.integer);
  char text[32];
  std::snprintf(text, sizeof text, "%.7g", got.real);
  return text;
}

std::string to_string(const Rejection& r) {
  return std::string(r.subject ? r.subject : "") + "=" + to_string(r.got) + ", wants " + expectation(r);
}

}  // namespace quern
