// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// For tests: configs as they are published, changes to them, folders, and random faults.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "config.h"
#include "quern/base/error.h"

namespace engine {

using Json = nlohmann::ordered_json;
using quern::Error, quern::ErrorKind, quern::u64, quern::u8;
using quern::rope::FrequencyKind;

// ---- configs as published, from Hugging Face ---------------------------------------------------------------------------

const char* const kLlama31_8B = R"({
  "architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 128000, "eos_token_id": 128001,
  "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 14336, "max_position_embeddings": 131072,
  "mlp_bias": false, "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "pretraining_tp": 1,
  "rms_norm_eps": 1e-05, "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
  "original_max_position_embeddings": 8192, "rope_type": "llama3"}, "rope_theta": 500000.0, "tie_word_embeddings": false,
  "torch_dtype": "bfloat16", "transformers_version": "4.43.0.dev0", "use_cache": true, "vocab_size": 128256})";

const char* const kLlama32_1B = R"({
  "architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 128000, "eos_token_id": 128001,
  "head_dim": 64, "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 8192,
  "max_position_embeddings": 131072, "mlp_bias": false, "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 16,
  "num_key_value_heads": 8, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0,
  "low_freq_factor": 1.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"}, "rope_theta": 500000.0,
  "tie_word_embeddings": true, "torch_dtype": "bfloat16", "transformers_version": "4.45.0.dev0", "use_cache": true, "vocab_size": 128256})";

const char* const kQwen25_7B = R"({
  "architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 151643, "eos_token_id": 151643, "hidden_act": "silu",
  "hidden_size": 3584, "initializer_range": 0.02, "intermediate_size": 18944, "max_position_embeddings": 131072, "max_window_layers": 28,
  "model_type": "qwen2", "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4, "rms_norm_eps": 1e-06,
  "rope_theta": 1000000.0, "sliding_window": 131072, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
  "transformers_version": "4.40.1", "use_cache": true, "use_mrope": false, "use_sliding_window": false, "vocab_size": 152064})";

const char* const kQwen25_05B = R"({
  "architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 151643, "eos_token_id": 151643, "hidden_act": "silu",
  "hidden_size": 896, "initializer_range": 0.02, "intermediate_size": 4864, "max_position_embeddings": 32768, "max_window_layers": 24,
  "model_type": "qwen2", "num_attention_heads": 14, "num_hidden_layers": 24, "num_key_value_heads": 2, "rms_norm_eps": 1e-06,
  "rope_theta": 1000000.0, "sliding_window": 32768, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
  "transformers_version": "4.40.1", "use_cache": true, "use_mrope": false, "use_sliding_window": false, "vocab_size": 151936})";

const char* const kQwen3_8B = R"({
  "architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 151643, "eos_token_id": 151645,
  "head_dim": 128, "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 12288,
  "max_position_embeddings": 40960, "max_window_layers": 36, "model_type": "qwen3", "num_attention_heads": 32, "num_hidden_layers": 36,
  "num_key_value_heads": 8, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000, "sliding_window": null,
  "tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.51.0", "use_cache": true,
  "use_sliding_window": false, "vocab_size": 151936})";

const char* const kQwen3_06B = R"({
  "architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 151643, "eos_token_id": 151645,
  "head_dim": 128, "hidden_act": "silu", "hidden_size": 1024, "initializer_range": 0.02, "intermediate_size": 3072,
  "max_position_embeddings": 40960, "max_window_layers": 28, "model_type": "qwen3", "num_attention_heads": 16, "num_hidden_layers": 28,
  "num_key_value_heads": 8, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000, "sliding_window": null,
  "tie_word_embeddings": true, "torch_dtype": "bfloat16", "transformers_version": "4.51.0", "use_cache": true,
  "use_sliding_window": false, "vocab_size": 151936})";

const char* const kMistral7B = R"({
  "architectures": ["MistralForCausalLM"], "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 4096,
  "initializer_range": 0.02, "intermediate_size": 14336, "max_position_embeddings": 32768, "model_type": "mistral",
  "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "rope_theta": 10000.0,
  "sliding_window": 4096, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.34.0.dev0",
  "use_cache": true, "vocab_size": 32000})";

const std::string kUnknown = " | null, false or no such key: the engine does not know what it changes";

/// A config with some keys set to other values, as {"a": 1, "b": null}, and some left out.
inline std::string edited(const char* config, const char* changes, std::initializer_list<const char*> without = {}) {
  Json json = Json::parse(config);
  const Json other = Json::parse(changes);
  for (const auto& [key, value] : other.items()) json[key] = value;
  for (const char* key : without) json.erase(key);
  return json.dump();
}
inline ModelConfig with(const char* config, const char* changes, std::initializer_list<const char*> without = {}) {
  return parse_config(edited(config, changes, without), "config.json");
}

/// "key got | expected" of the error; the text where there is none.
template <class F> std::string refusal(F&& f, const std::string& op = "config.json") {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::value) << e.what();
    EXPECT_EQ(e.op(), op) << e.what();
    return e.argument() + " " + e.got() + " | " + e.expected();
  }
  return "taken";
}
inline std::string refused(const char* config, const char* changes, std::initializer_list<const char*> without = {}) {
  return refusal([&] { (void)with(config, changes, without); });
}

constexpr const char* kFp8 =
    R"({"quantization_config": {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8", "weight_block_size": [128, 128]}})";

/// A fresh folder, removed with its contents at the end.
struct Folder {
  std::string path;
  Folder() {
    std::string pattern = testing::TempDir() + "engine_checkpoint_XXXXXX";
    if (!::mkdtemp(pattern.data())) std::abort();
    path = pattern;
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string at(const std::string& name) const { return path + "/" + name; }
  void write(const std::string& name, const std::string& bytes) const { std::ofstream(at(name), std::ios::binary) << bytes; }
};

/// Some bytes of the header, its length among them, are others; at times a digit is another digit, or the file is cut.
inline std::string mutated(std::string bytes, size_t header_end, std::mt19937_64& random) {
  const auto below = [&](size_t n) { return size_t(random() % n); };
  for (size_t n = 1 + below(3); n > 0; --n) {
    const size_t at = below(8) ? 8 + below(header_end - 8) : below(8);
    switch (below(4)) {
      case 0: bytes[at] = char(random()); break;
      case 1: bytes[at] = char(bytes[at] ^ char(1 << below(8))); break;
      case 2: bytes[at] = "0123456789{}[]\",:-.e"[below(20)]; break;
      default:
        for (size_t i = 0; i < bytes.size() && i < header_end; ++i)
          if (const size_t j = (at + i) % header_end; j >= 8 && bytes[j] >= '0' && bytes[j] <= '9') {
            bytes[j] = char('0' + below(10));
            break;
          }
    }
  }
  if (below(16) == 0) bytes.resize(below(bytes.size() + 1));
  return bytes;
}

inline int fuzz_rounds() {
  const char* const rounds = std::getenv("ENGINE_FUZZ_ROUNDS");
  return rounds ? std::atoi(rounds) : 2000;
}

}  // namespace engine
