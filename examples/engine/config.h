// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What a model is: config.json and generation_config.json of a Hugging Face checkpoint, reduced to what the engine computes with.
#pragma once
#include <string>
#include <vector>

#include "quern/base/tensor_view.h"
#include "quern/ops/rope/frequencies.h"

namespace engine {

using quern::i32, quern::i64, quern::DType;

struct ModelConfig {
  std::string type;  ///< "llama", "mistral", "qwen2" or "qwen3"
  i64 layers = 0, hidden = 0, intermediate = 0, vocab = 0, heads_q = 0, heads_kv = 0, head_dim = 0;
  i64 max_positions = 0;         ///< longest sequence, prompt and answer: max_position_embeddings
  float eps = 1e-6f;             ///< of every norm
  bool tied_embeddings = false;  ///< the LM head is the table of embeddings
  bool qkv_bias = false, out_bias = false, mlp_bias = false;
  bool qk_norm = false;       ///< heads of q and k are normalised before RoPE
  DType dtype = DType::bf16;  ///< of weights and activations: bf16 or f16; a checkpoint in f32 is rounded to bf16
  bool fp8 = false;           ///< linear layers but the LM head are e4m3 with a scale for each 128 x 128
  std::vector<i64> windows;   ///< of each layer: how many keys a query sees, its own included; 0: all before it
  quern::rope::FrequencyKind rope = quern::rope::FrequencyKind::plain;
  quern::rope::FrequencyOptions rope_options;
  double attention_factor = 0;      ///< what cos and sin are multiplied by, in the place of what the kind says; 0: not given
  double initializer_range = 0.02;  ///< standard deviation of random weights
  std::vector<i64> stop_tokens;
};

/// Reads FOLDER/config.json, and FOLDER/generation_config.json where there is one (stop tokens). Throws quern::Error{value} with file, key,
/// value and what is expected, for:
///   a missing `model_type` or size, or what the kind of RoPE or FP8 needs; other keys that are absent have transformers' defaults;
///   a wrong type, and sizes that do not fit each other;
///   every key that the engine does not know and whose value could change the result.
ModelConfig read_config(const std::string& folder);
/// The same of the text of a config.json; `where` names it in errors.
ModelConfig parse_config(const std::string& text, const std::string& where);

}  // namespace engine
