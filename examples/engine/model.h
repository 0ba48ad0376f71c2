// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The forward pass: embeddings, decoder layers, last norm, LM head, sampling; each computation an op of quern.
#pragma once
#include <vector>

#include "config.h"
#include "quern/op/run.h"
#include "step.h"
#include "weights.h"

namespace engine {

/// K and V of a layer: [pages, page_size, heads_kv, head_dim].
struct LayerCache {
  TensorView k, v;
};

class Model {
 public:
  /// Allocates what a step writes. `weights` stays the caller's.
  Model(const ModelConfig& config, const Weights& weights, const StepLimits& limits, bool batch_invariant, Memory& memory);

  /// Launches a step of so many tokens of so many requests; reads `inputs` on the device. Where tokens == rows, each request has one token:
  /// the same kernels then serve every step of so many rows, so that it may be captured.
  void launch(const StepInputs& inputs, i64 tokens, i64 rows, const std::vector<LayerCache>& caches, quern::Stream stream);
  /// Makes the workspace large enough for launch() with these numbers. Not while a stream captures. One that is too small stays, as
  /// captured graphs hold its address, and the next is at least twice as large.
  void reserve(const StepInputs& inputs, i64 tokens, i64 rows, const std::vector<LayerCache>& caches);

  TensorView logits() const { return logits_; }    ///< [rows, vocab] f32, of the last step
  TensorView sampled() const { return sampled_; }  ///< [rows] i32
  i64 workspace_bytes() const { return workspace_.bytes; }
  TensorView valid() const { return valid_; }  ///< [rows] u8: 0 where there is no token to draw: the logits hold a NaN

 private:
  /// Rows of activations as a linear layer reads them: of an FP8 model e4m3 with scales.
  struct Rows {
    TensorView values, scales;
  };
  void forward(const StepInputs& inputs, i64 tokens, i64 rows, const std::vector<LayerCache>& caches);
  void attend(const Layer& layer, i64 window, const LayerCache& cache, const StepInputs& inputs, i64 tokens, i64 rows);
  void linear(const Linear& by, const Rows& x, const TensorView& out);
  /// residual += x where x is present, then its norm as the input of a linear layer.
  Rows norm(const TensorView& x, const TensorView& residual, const TensorView& weight, bool for_linear);
  template <class Args> void call(const char* op, void (*function)(const Args&, const quern::RunOptions&), const Args& args);

  const ModelConfig& config_;
  const Weights& weights_;
  quern::Device& device_;
  TensorView frequencies_;
  float cos_sin_scale_ = 1, sm_scale_ = 0;
  TensorView residual_, normed_, qkv_, attention_, projected_, gate_up_, hidden_, gathered_, logits_, sampled_, valid_;
  Rows quantised_hidden_, quantised_attention_, quantised_mlp_;  ///< of FP8 models
  quern::RunOptions options_;
  quern::Workspace workspace_;
  Memory workspace_memory_;
  i64 needed_ = -1;  ///< bytes while reserve() walks through the calls; -1: calls are made
};

}  // namespace engine
