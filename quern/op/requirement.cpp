// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/op/requirement.h"

#include <cctype>
#include <set>
#include <string>

namespace quern {

/// " (hidden was set by `x` [3, 8])" for an axis that a present tensor has: the first one stated. Empty for any other word.
static std::string set_by(const Op& op, const void* args, const std::string& axis) {
  for (size_t i = 0; i < op.tensors.size(); ++i) {
    const TensorDef& t = op.tensors[i];
    const TensorView& view = op.tensor(args, i);
    for (int d = 0; d < t.rank && view.present(); ++d)
      if (t.extents[d].tells_axis() && axis == name(t.extents[d].axis)) return " (" + axis + " was set by `" + t.name + "` " + shape_string(view) + ")";
  }
  return "";
}

/// The names before the equals signs of a text, as in "at most head_dim=64".
static std::set<std::string> named_in(const std::string& text) {
  std::set<std::string> names;
  for (size_t end = 0; (end = text.find('=', end)) != std::string::npos; ++end) {
    size_t begin = end;
    while (begin > 0 && (std::isalnum(static_cast<unsigned char>(text[begin - 1])) || text[begin - 1] == '_')) --begin;
    names.insert(text.substr(begin, end - begin));
  }
  return names;
}

void fail_requirement(const Op& op, const void* args, const Rejection& rejection) {
  std::string expected = expectation(rejection);
  for (const std::string& axis : named_in(expectation(rejection))) expected += set_by(op, args, axis);
  throw Error(ErrorKind::value, op.id, rejection.subject ? rejection.subject : "", "is " + to_string(rejection.got), expected);
}

}  // namespace quern
