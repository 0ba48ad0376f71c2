// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <algorithm>
#include <map>

#include "engine.h"
#include "reference.h"

namespace engine {

/// Compares the logits of an engine's steps with the model in double, which is fed the tokens that the engine drew, and each token with
/// what its request asks for.
///
/// The error of a row is ||got - expected|| over the norm that logits of random weights would have (Reference::advance). The same model in
/// double, with what the engine stores rounded to its dtypes, has an error of its own. The engine's may be at most twice that one, the
/// largest of all rows each, or twice a rounding for each of the 2 * layers + 1 parts of the residual, independent of each other, where
/// that is more.
class LogitsCheck {
 public:
  LogitsCheck(const ModelConfig& config, const Weights& weights, quern::Device& device);

  /// Call it behind each step. `requests` are those that were added, in order.
  void add(const Engine& engine, const std::vector<Request>& requests);
  bool right() const { return rows_ > 0 && wrong_tokens_ == 0 && worst_ <= bound(); }
  i64 rows() const { return rows_; }       ///< that were compared
  double worst() const { return worst_; }  ///< largest error of a row; infinite for a NaN
  double bound() const { return std::max(2 * rounded_, least_); }
  i64 same_largest() const { return same_largest_; }  ///< rows whose largest logit is the reference's
  /// Tokens that are not those which sampling.sample, called for the row alone with the request's numbers, draws from the engine's logits.
  i64 wrong_tokens() const { return wrong_tokens_; }

 private:
  i32 token_of(const std::vector<float>& logits, const Request& request, i64 position);
  Reference reference_;
  quern::Device& device_;
  Memory memory_;
  TensorView row_, seed_, offset_, token_;
  std::map<i64, Reference::Sequence> exact_, as_stored_;
  i64 rows_ = 0, same_largest_ = 0, wrong_tokens_ = 0;
  double worst_ = 0, rounded_ = 0, least_;
};

}  // namespace engine
