// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The weights of a model on a device. What reads the same input lies in one matrix: q, k and v; gate and up.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "checkpoint.h"
#include "config.h"
#include "memory.h"

namespace engine {

/// Rows of a linear layer's weight that one product computes. FP8 weights have a scale for each 128 x 128: parts whose rows are no multiple
/// of 128 stay apart, else q, k and v, or gate and up, are one.
struct LinearPart {
  i64 first_row = 0;
  TensorView weight;  ///< [rows, k]
  TensorView scales;  ///< [ceil(rows / 128), ceil(k / 128)] f32, of FP8
};
struct Linear {
  i64 rows = 0, k = 0;
  std::vector<LinearPart> parts;
  TensorView bias;  ///< [rows], or absent
};

struct Layer {
  TensorView attention_norm, mlp_norm;  ///< [hidden]
  TensorView q_norm, k_norm;            ///< [head_dim], or absent
  Linear qkv, out, gate_up, down;
};

struct Weights {
  TensorView embeddings;  ///< [vocab, hidden]
  TensorView lm_head;     ///< [vocab, hidden]; with tied embeddings the same memory
  TensorView last_norm;   ///< [hidden]
  std::vector<Layer> layers;
  i64 step_bytes = 0;  ///< that a step reads: all but the embeddings, with tied ones those too
};

/// Where the elements of a tensor come from. `stored` is the whole tensor on the device, in the dtype that it has there, or FP8's scales.
using Fill = std::function<void(const std::string& name, const TensorView& stored)>;

/// Allocates all weights and fills each tensor by its checkpoint's name, as in "model.layers.0.self_attn.q_proj.weight".
Weights make_weights(const ModelConfig& config, Memory& memory, const Fill& fill);

/// From a checkpoint. Throws quern::Error{value} for a tensor that is missing, has another shape or dtype, or is left over.
Weights load_weights(const ModelConfig& config, Checkpoint& checkpoint, Memory& memory);
/// Normal numbers of the config's initializer_range, norms about 1. The same numbers on every device.
Weights random_weights(const ModelConfig& config, u64 seed, Memory& memory);

}  // namespace engine
