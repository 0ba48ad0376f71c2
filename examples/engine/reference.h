// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The model's forward pass as plain loops in double, for checks. It computes from the weights as they lie on the device and from the
// config, with the frequencies of rope::frequencies: faults of loading and of those are not seen by it.
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
  /// What is rounded on the way. exact: nothing. as_stored: what the engine keeps in memory, to the dtype that it keeps it in.
  enum class Rounding { exact, as_stored };

  /// A sequence's keys and values so far.
  struct Sequence {
    std::vector<std::vector<double>> k, v;  ///< of each layer: [tokens][heads_kv * head_dim]
    i64 length = 0;
  };
  /// Logits behind the last of `tokens`, which continue the sequence. `scale` gets the norm that logits of random weights would have:
  /// ||x|| ||LM head|| / sqrt(hidden), x being what the LM head reads.
  std::vector<double> advance(Sequence& sequence, const std::vector<i32>& tokens, Rounding rounding, double& scale) const;

 private:
  using Matrix = std::vector<double>;  ///< [rows][columns]
  struct LayerWeights {
    Matrix attention_norm, mlp_norm, q_norm, k_norm, qkv, qkv_bias, out, out_bias, gate_up, gate_up_bias, down, down_bias;
  };
  void attend(const LayerWeights& layer, size_t number, Sequence& sequence, i64 position, std::vector<double>& x, Rounding rounding) const;
  void mlp(const LayerWeights& layer, std::vector<double>& x, Rounding rounding) const;
  /// As a tensor of activations holds it.
  std::vector<double> stored(std::vector<double> x, Rounding rounding) const;
  /// As a linear layer reads it: of FP8 models e4m3 over a scale for each 128.
  std::vector<double> as_input(std::vector<double> x, Rounding rounding) const;
  void rotate(double* head, i64 position) const;

  const ModelConfig& config_;
  Matrix embeddings_, lm_head_, last_norm_;
  std::vector<LayerWeights> layers_;
  std::vector<double> radians_;  ///< of a position, by pair
  double cos_sin_scale_ = 1, sm_scale_ = 1, head_norm_ = 0;
};

}  // namespace engine
