// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Model files (models/*.json): a model's geometry, the limits within which it is served, the calls of ops that serving it
// makes, and for the demo one decoder layer on named tensors. docs/warm.md describes the format.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "quern/base/tensor_view.h"
#include "quern/op/expression.h"
#include "quern/op/scalar.h"

namespace quern {

/// What a size may be while the model is served.
struct Limit {
  std::string name;
  bool range = false;  ///< values is {least, most} and all between are met; else one of values
  std::vector<i64> values;
};

/// A word of a call's case: an axis ("m"), dtype ("a.dtype"), presence ("bias.present") or attribute with the texts of its
/// values; each is met. Text: a dtype's name, a number, or an Expression over geometry and limits.
struct ModelWord {
  std::string name;
  std::vector<std::string> values;
};
/// One call of an op, as often and with whatever sizes serving the model makes it.
struct ModelCall {
  std::string does, op;
  bool missing = false;  ///< quern has no such op yet
  std::vector<ModelWord> words;
};

struct LayerTensor {
  std::string name;
  std::string of;       ///< base tensor of a view; empty: memory of its own
  std::string offset;   ///< words that are added, in elements
  std::string shape;    ///< an Expression a dimension
  std::string strides;  ///< the same; views only
  DType dtype = DType::bf16;
  std::string holds;  ///< "weights", "norm_weights", "activations", "iota", "lengths", ...; empty: written by a call
};
struct LayerCall {
  std::string does, op;
  bool once = false;                                      ///< made behind the last layer, not by each
  std::vector<std::pair<std::string, std::string>> args;  ///< argument, tensor
  std::vector<std::pair<std::string, Scalar>> attrs;
};
/// One decode step of one layer; empty in a file without it.
struct Layer {
  std::vector<LayerTensor> tensors;
  std::vector<LayerCall> calls;
  std::vector<std::string> outputs;
  size_t repeated() const;                                   ///< calls that every layer makes; those made once stand behind them
  const LayerTensor& tensor(const std::string& name) const;  ///< throws Error{value}
};

struct Model {
  std::string name;
  Extents geometry;
  std::vector<Limit> limits;
  std::vector<ModelCall> calls;
  Layer layer;

  const Limit* limit(const std::string& name) const;  ///< null: none of that name
};

/// A model inside the library by name ("llama-3.1-8b"), or a file by path. Throws Error{value} with what is wrong in it.
Model load_model(const std::string& name_or_path);
/// Puts other limits in: "tokens=1..64", "tp=1,2". Throws Error{value}; known are the file's limits, `alignment` and
/// `batch_invariant`.
void set_limit(Model& model, const std::string& word);

}  // namespace quern
