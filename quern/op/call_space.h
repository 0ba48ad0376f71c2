// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <string>
#include <vector>

#include "quern/op/model.h"
#include "quern/op/schema.h"

namespace quern {

/// One call of a model with its choices made (page size, tensor-parallel degree, batch invariance, ...), as a function from
/// what is left to vary to a plan: the model's ranges, and of every tensor the facts that plan may see (TensorFacts), which
/// pointers and strides decide.
class CallSpace {
 public:
  /// `chosen`: values for the limits that are lists; `alternative`: which value each word of the call takes.
  /// Throws Error{value} for words that the op does not have, and for extents that no word gives.
  CallSpace(const Model& model, const ModelCall& call, const Extents& chosen, const std::vector<size_t>& alternative);

  /// Something that varies: a range of sizes, or a fact of a tensor with its best value first.
  struct Variable {
    std::string name;
    std::vector<i64> values;
    bool fact = false;
    size_t slot = 0;         ///< ranges: in the values of expressions; facts: index of the tensor
    bool alignment = false;  ///< facts: alignment, else contiguous
  };
  using Point = std::vector<i32>;  ///< an index into each variable's values

  const Op& op() const { return op_; }
  const std::vector<Variable>& variables() const { return variables_; }
  enum class At { planned, refused, empty };  ///< empty: the outputs have no elements
  /// The plan there, or why there is none.
  At plan_at(const Point& point, i32 variant, const DeviceInfo& device, Plan& plan, std::string& why);

 private:
  struct Term {
    Expression expression;
    bool axis;      ///< else an attribute
    size_t target;  ///< index of the axis in the op's list, or of the attribute
  };
  void set_word(const std::string& name, const std::string& text);
  void set_facts(const std::vector<i64>& alignments);
  bool outputs_are_empty() const;

  const Op& op_;
  std::vector<std::string> names_;  ///< words of expressions
  std::vector<i64> slots_;          ///< their values
  std::vector<Term> terms_;
  std::vector<Variable> variables_;
  Problem problem_;
};

/// Every combination of the words' values: of each word which one.
std::vector<std::vector<size_t>> alternatives_of(const ModelCall& call);
/// An error of a call with the names of model and call in front.
Error in_model(const Error& error, const Model& model, const ModelCall& call);

}  // namespace quern
