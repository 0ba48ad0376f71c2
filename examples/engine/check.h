// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <map>

#include "engine.h"
#include "reference.h"

namespace engine {

/// Compares the logits of an engine's steps with the reference, which is fed the tokens that the engine drew.
class LogitsCheck {
 public:
  LogitsCheck(const ModelConfig& config, const Weights& weights, quern::Device& device) : reference_(config, weights, device) {}

  /// Call it behind each step.
  void add(const Engine& engine);
  bool right() const { return rows_ > 0 && worst_ <= reference_.bound(); }
  i64 rows() const { return rows_; }        ///< that were compared
  double worst() const { return worst_; }   ///< largest ||got - expected|| / ||expected||; infinite for a NaN
  double bound() const { return reference_.bound(); }
  i64 same_largest() const { return same_largest_; }  ///< rows whose largest logit is the reference's

 private:
  Reference reference_;
  std::map<i64, Reference::Sequence> sequences_;
  i64 rows_ = 0, same_largest_ = 0;
  double worst_ = 0;
};

}  // namespace engine
