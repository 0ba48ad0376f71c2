// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Random calls within the limits of a model file. Sizes, strides and alignments are drawn and bound from tensors, so that
// they judge quern/op/reach.h, which computes Problems.
#pragma once
#include <string>
#include <vector>

#include "quern/op/model.h"
#include "quern/op/schema.h"

namespace quern::testing {

struct ModelDraw {
  const ModelCall* call = nullptr;
  const Op* op = nullptr;
  Case which;  ///< with nothing left to derive
};

class ModelCalls {
 public:
  /// The calls whose ops quern has. Throws Error{value} when there is none, and for what is wrong in one, as a warm-up does.
  ModelCalls(const Model& model, u64 seed);
  size_t size() const { return calls_.size(); }
  const ModelCall& call(size_t i) const { return *calls_[i]; }

  /// A random call: lists and words by chance, ranges log-uniform, a random layout of each tensor.
  ModelDraw draw() { return draw(size_t(random_.below(i64(calls_.size())))); }
  ModelDraw draw(size_t call) { return draw(call, {}); }
  /// The same with some of the limits given: `fixed` names them.
  ModelDraw draw(size_t call, const Extents& fixed);

 private:
  i64 draw_limit(const Limit& limit);
  void draw_layout(const Op& op, size_t tensor, DType dtype, Case& which);

  const Model model_;
  std::vector<const ModelCall*> calls_;
  Random random_;
};

}  // namespace quern::testing
