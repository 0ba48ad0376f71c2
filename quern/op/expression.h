// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <map>
#include <string>
#include <vector>

#include "quern/kit/abi.h"

namespace quern {

/// Values of named sizes: a model's geometry, and what its callers choose ("tokens", "page_size").
using Extents = std::map<std::string, i64>;

/// An integer expression over named sizes: + - * / ( ), min(a, b), max(a, b), ceil_div(a, b). A division must come out even,
/// so that a head is never cut in two unnoticed.
class Expression {
 public:
  /// Throws Error{value} with what is wrong in the text; `names` are the words that it may use.
  Expression(const std::string& text, const std::vector<std::string>& names);
  /// `values` are those of `names`, in their order. Throws Error{value} for a division with a remainder or by zero.
  i64 operator()(const i64* values) const;
  bool uses(size_t name) const;

 private:
  friend class ExpressionParser;
  enum class Kind : i32 { number, name, add, subtract, multiply, divide, ceil_div, min, max };
  struct Step {
    Kind kind;
    i64 value;  ///< of a number; index of a name
  };
  std::string text_;
  std::vector<Step> steps_;  ///< in postfix order
};

/// One word with extents put in: "2*intermediate".
i64 extent_value(const std::string& word, const Extents& extents);
/// The same for words separated by spaces, which therefore hold none.
std::vector<i64> extent_values(const std::string& words, const Extents& extents);

}  // namespace quern
