// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Model files (models/*.json): a model's geometry and one layer as calls of ops on named tensors with symbolic extents.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "quern/base/tensor_view.h"

namespace quern::testing {

/// Values of a model's symbolic extents: its geometry, and what a caller chooses ("tokens", "pages").
using Extents = std::map<std::string, i64>;

struct ModelTensor {
  std::string name;
  std::string of;       ///< base tensor of a view; empty: memory of its own
  std::string offset;   ///< words that are added, in elements
  std::string shape;    ///< words, "2*intermediate" allowed
  std::string strides;  ///< words; views only
  DType dtype = DType::bf16;
  std::string holds;    ///< "weights", "norm_weights", "activations", "iota", "lengths", ...; empty: written by a call
};

struct ModelCall {
  std::string does, op;
  std::vector<std::pair<std::string, std::string>> args;  ///< argument, tensor
  std::vector<std::pair<std::string, double>> attrs;
};

struct Model {
  std::string name;
  Extents geometry;
  std::vector<ModelTensor> tensors;
  std::vector<ModelCall> calls;
  std::vector<std::string> outputs;

  const ModelTensor& tensor(const std::string& name) const;  ///< throws Error{value}
};

/// A model inside the library by name ("llama-3.1-8b"), or a file by path. Throws Error{value} with what is wrong in it.
Model load_model(const std::string& name_or_path);
/// "2*intermediate" or "4" with extents put in. Throws Error{value} for an unknown word.
i64 extent_value(const std::string& word, const Extents& extents);
/// The same for words separated by spaces.
std::vector<i64> extent_values(const std::string& words, const Extents& extents);

}  // namespace quern::testing
