// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "quern/kit/abi.h"

namespace quern {

/// Values of named sizes: a model's geometry, and what its callers choose ("tokens", "page_size").
using Extents = std::map<std::string, i64>;

/// An integer expression over named sizes: + - * / ( ), min(a, b), max(a, b), ceil_div(a, b). A division must come out even,
/// so that a head is never cut in two unnoticed. Dims of tensors, model files and layers are written in it.
class Expression {
 public:
  enum class Kind : i32 { number, name, add, subtract, multiply, divide, ceil_div, min, max };
  struct Step {
    Kind kind;
    i64 value;  ///< of a number; number of a name
  };

  /// Throws Error{value} with what is wrong in the text; `names` are the words that it may use, numbered in their order.
  Expression(const std::string& text, const std::vector<std::string>& names);
  /// The same where `number_of` numbers the words, or throws.
  Expression(const std::string& text, const std::function<i64(const std::string& word)>& number_of);
  /// `values` are those of the names by number. Throws Error{value} for a division with a remainder or by zero.
  i64 operator()(const i64* values) const;
  bool uses(size_t name) const;
  const std::string& text() const { return text_; }
  const std::vector<Step>& steps() const { return steps_; }  ///< in postfix order

 private:
  friend class ExpressionParser;
  std::string text_;
  std::vector<Step> steps_;
};

/// One word with extents put in: "2*intermediate".
i64 extent_value(const std::string& word, const Extents& extents);
/// The same for words separated by spaces, which therefore hold none.
std::vector<i64> extent_values(const std::string& words, const Extents& extents);

}  // namespace quern
