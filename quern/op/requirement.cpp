// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/op/requirement.h"

#include <cctype>
#include <set>
#include <string>

namespace quern {

const TensorDef* teller_of(const Op& op, const void* args, Axis axis) {
  for (size_t i = 0; i < op.tensors.size(); ++i)
    for (int d = 0; d < op.tensors[i].rank && op.tensor(args, i).present(); ++d)
      if (op.tensors[i].extents[d].tells_axis() && op.tensors[i].extents[d].axis == axis) return &op.tensors[i];
  return nullptr;
}

std::string teller_text(const Op& op, const void* args, Axis axis, const TensorDef& teller) {
  const TensorView& view = op.tensor(args, size_t(&teller - op.tensors.data()));
  return std::string(name(axis)) + " was set by `" + teller.name + "` " + shape_string(view);
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
  const std::set<std::string> named = named_in(expected);
  for (const Axis axis : op.axes)
    if (const TensorDef* teller = named.contains(name(axis)) ? teller_of(op, args, axis) : nullptr)
      expected += " (" + teller_text(op, args, axis, *teller) + ")";
  throw Error(ErrorKind::value, op.id, rejection.subject ? rejection.subject : "", "is " + to_string(rejection.got), expected);
}

}  // namespace quern
