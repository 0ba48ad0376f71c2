// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The tensors of a checkpoint: model.safetensors, or the files that model.safetensors.index.json names. Files are mapped, not read.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "quern/base/tensor_view.h"

namespace engine {

using quern::i64;

class Checkpoint {
 public:
  /// Maps the files of a folder and reads their headers. Throws quern::Error{value} for a missing or truncated file, a header that is no
  /// JSON, offsets outside the file or that do not fit shape and dtype, a tensor that the index places elsewhere: with file, tensor,
  /// expected, got.
  explicit Checkpoint(const std::string& folder);
  ~Checkpoint();
  Checkpoint(const Checkpoint&) = delete;

  /// A tensor in host memory, contiguous. Throws quern::Error{value} where the checkpoint has none of that name (nearest names in the
  /// text), or its shape is another one.
  quern::TensorView get(const std::string& name, const std::vector<i64>& shape);
  bool has(const std::string& name) const;
  /// Names that nobody asked for by get().
  std::vector<std::string> unused() const;

 private:
  struct Mapping;
  std::vector<std::unique_ptr<Mapping>> files_;
  std::map<std::string, quern::TensorView> tensors_;
  std::map<std::string, bool> used_;
};

}  // namespace engine
