// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The model's forward pass as plain loops in double, for checks. It shares no code with the engine but the weights' numbers.
#pragma once
#include <string>
#include <vector>

#include "config.h"
#include "weights.h"

namespace engine {

class Reference {
 public:
  /// Copies the weights from the device: 8 bytes each. Throws quern::Error{value} above 2^28 weights.
  Reference(const ModelConfig& config, const Weights& weights, quern::Device& device);

  /// A sequence's keys and values so far.
  struct Sequence {
    std::vector<std::vector<double>> k, v;  ///< of each layer: [tokens][heads_kv * head_dim]
    i64 length = 0;
  };
  /// Logits behind the last of `tokens`, which continue the sequence.
  std::vector<double> advance(Sequence& sequence, const std::vector<i32>& tokens) const;

  /// Largest relative error of logits, ||got - expected|| / ||expected||, that roundings explain. Each of the 2 * layers + 1 parts of the residual adds
  /// an error of about `unit` of its magnitude, independent of the others: unit * sqrt(2 * layers + 1), and as much again for the spread. `unit` is the
  /// relative error of one rounding: 2^-9 of bf16, 2^-12 of f16, 2^-4 of FP8.
  double bound() const;

 private:
  using Matrix = std::vector<double>;  ///< [rows][columns]
  struct LayerWeights {
    Matrix attention_norm, mlp_norm, q_norm, k_norm, qkv, qkv_bias, out, out_bias, gate_up, gate_up_bias, down, down_bias;
  };
  void attend(const LayerWeights& layer, size_t number, Sequence& sequence, i64 position, std::vector<double>& x) const;
  void mlp(const LayerWeights& layer, std::vector<double>& x) const;
  void rotate(double* head, i64 position) const;

  const ModelConfig& config_;
  Matrix embeddings_, lm_head_, last_norm_;
  std::vector<LayerWeights> layers_;
  std::vector<double> radians_;  ///< of a position, by pair
  double cos_sin_scale_ = 1, sm_scale_ = 1;
};

}  // namespace engine
