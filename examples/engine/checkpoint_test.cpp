// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Configs and checkpoints: the published ones as they are, and everything that can be wrong with one.
#include "checkpoint.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "config.h"
#include "quern/base/error.h"
#include "write_checkpoint.h"

namespace engine {

using Json = nlohmann::ordered_json;
using quern::Error, quern::ErrorKind, quern::TensorView, quern::u64, quern::u8;
using quern::rope::FrequencyKind;

namespace {

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
std::string edited(const char* config, const char* changes, std::initializer_list<const char*> without = {}) {
  Json json = Json::parse(config);
  const Json other = Json::parse(changes);
  for (const auto& [key, value] : other.items()) json[key] = value;
  for (const char* key : without) json.erase(key);
  return json.dump();
}
ModelConfig with(const char* config, const char* changes, std::initializer_list<const char*> without = {}) {
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
std::string refused(const char* config, const char* changes, std::initializer_list<const char*> without = {}) {
  return refusal([&] { (void)with(config, changes, without); });
}

TEST(Config, Llama31) {
  const ModelConfig c = parse_config(kLlama31_8B, "config.json");
  EXPECT_EQ(c.type, "llama");
  EXPECT_EQ(c.layers, 32);
  EXPECT_EQ(c.hidden, 4096);
  EXPECT_EQ(c.intermediate, 14336);
  EXPECT_EQ(c.vocab, 128256);
  EXPECT_EQ(c.heads_q, 32);
  EXPECT_EQ(c.heads_kv, 8);
  EXPECT_EQ(c.head_dim, 128);
  EXPECT_EQ(c.max_positions, 131072);
  EXPECT_EQ(c.eps, 1e-5f);
  EXPECT_FALSE(c.tied_embeddings || c.qkv_bias || c.out_bias || c.mlp_bias || c.qk_norm || c.fp8);
  EXPECT_EQ(c.dtype, DType::bf16);
  EXPECT_EQ(c.windows, std::vector<i64>(32, 0));
  EXPECT_EQ(c.rope, FrequencyKind::llama3);
  EXPECT_EQ(c.rope_options.rotary_dim, 128);
  EXPECT_EQ(c.rope_options.theta, 500000);
  EXPECT_EQ(c.rope_options.factor, 8);
  EXPECT_EQ(c.rope_options.low_freq_factor, 1);
  EXPECT_EQ(c.rope_options.high_freq_factor, 4);
  EXPECT_EQ(c.rope_options.original_max, 8192);
  EXPECT_EQ(c.attention_factor, 0);
  EXPECT_EQ(c.initializer_range, 0.02);
  EXPECT_EQ(c.stop_tokens, std::vector<i64>{128001});
}

TEST(Config, Llama32IsTied) {
  const ModelConfig c = parse_config(kLlama32_1B, "config.json");
  EXPECT_TRUE(c.tied_embeddings);
  EXPECT_EQ(c.layers, 16);
  EXPECT_EQ(c.hidden, 2048);
  EXPECT_EQ(c.head_dim, 64);
  EXPECT_EQ(c.rope_options.rotary_dim, 64);
  EXPECT_EQ(c.rope_options.factor, 32);
}

TEST(Config, Qwen25HasBiasesOfQkvAlone) {
  for (const auto& [text, heads, kv, layers, tied] : {std::tuple{kQwen25_7B, 28, 4, 28, false}, std::tuple{kQwen25_05B, 14, 2, 24, true}}) {
    const ModelConfig c = parse_config(text, "config.json");
    EXPECT_EQ(c.type, "qwen2");
    EXPECT_TRUE(c.qkv_bias);
    EXPECT_FALSE(c.out_bias || c.mlp_bias || c.qk_norm);
    EXPECT_EQ(c.heads_q, heads);
    EXPECT_EQ(c.heads_kv, kv);
    EXPECT_EQ(c.layers, layers);
    EXPECT_EQ(c.tied_embeddings, tied);
    EXPECT_EQ(c.head_dim, tied ? 64 : 128);
    EXPECT_EQ(c.eps, 1e-6f);
    EXPECT_EQ(c.rope, FrequencyKind::plain);
    EXPECT_EQ(c.rope_options.theta, 1e6);
    EXPECT_EQ(c.windows, std::vector<i64>(size_t(layers), 0)) << "use_sliding_window is false";
  }
}

TEST(Config, Qwen3NormalisesHeads) {
  for (const auto& [text, hidden, heads, layers, tied] : {std::tuple{kQwen3_8B, 4096, 32, 36, false}, std::tuple{kQwen3_06B, 1024, 16, 28, true}}) {
    const ModelConfig c = parse_config(text, "config.json");
    EXPECT_EQ(c.type, "qwen3");
    EXPECT_TRUE(c.qk_norm);
    EXPECT_FALSE(c.qkv_bias || c.out_bias || c.mlp_bias || c.fp8);
    EXPECT_EQ(c.hidden, hidden);
    EXPECT_EQ(c.heads_q, heads);
    EXPECT_EQ(c.heads_kv, 8);
    EXPECT_EQ(c.head_dim, 128) << "not hidden / heads";
    EXPECT_EQ(c.layers, layers);
    EXPECT_EQ(c.tied_embeddings, tied);
    EXPECT_EQ(c.max_positions, 40960);
    EXPECT_EQ(c.vocab, 151936);
    EXPECT_EQ(c.rope, FrequencyKind::plain);
    EXPECT_EQ(c.rope_options.theta, 1e6) << "an integer in the file";
    EXPECT_EQ(c.windows, std::vector<i64>(size_t(layers), 0));
    EXPECT_EQ(c.stop_tokens, std::vector<i64>{151645});
  }
}

constexpr const char* kFp8 =
    R"({"quantization_config": {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8", "weight_block_size": [128, 128]}})";

TEST(Config, Qwen3InFp8) {
  const ModelConfig c = with(kQwen3_8B, kFp8);
  EXPECT_TRUE(c.fp8);
  EXPECT_EQ(c.dtype, DType::bf16);
  const auto changed = [](const char* key, const char* value) {
    Json json = Json::parse(kFp8);
    if (value) json["quantization_config"][key] = Json::parse(value);
    else json["quantization_config"].erase(key);
    return json.dump();
  };
  for (const char* list : {"null", "[]", R"(["lm_head"])",
                           R"(["lm_head", "model.norm", "model.layers.3.input_layernorm", "model.layers.3.self_attn.q_norm.weight"])"})
    EXPECT_TRUE(with(kQwen3_8B, changed("modules_to_not_convert", list).c_str()).fp8) << list;
  EXPECT_TRUE(with(kQwen3_8B, changed("fmt", nullptr).c_str()).fp8);
  EXPECT_FALSE(with(kQwen3_8B, R"({"quantization_config": null})").fp8);

  const std::string at = "quantization_config.";
  EXPECT_EQ(refused(kQwen3_8B, changed("quant_method", R"("gptq")").c_str()), at + "quant_method is \"gptq\" | \"fp8\"");
  EXPECT_EQ(refused(kQwen3_8B, changed("quant_method", nullptr).c_str()), at + "quant_method is missing | \"fp8\"");
  EXPECT_EQ(refused(kQwen3_8B, changed("fmt", R"("e5m2")").c_str()), at + "fmt is \"e5m2\" | \"e4m3\"");
  EXPECT_EQ(refused(kQwen3_8B, changed("weight_block_size", "[64, 128]").c_str()), at + "weight_block_size is [64,128] | [128,128]");
  EXPECT_EQ(refused(kQwen3_8B, changed("weight_block_size", "null").c_str()), at + "weight_block_size is missing | [128,128]");
  EXPECT_EQ(refused(kQwen3_8B, changed("activation_scheme", R"("static")").c_str()), at + "activation_scheme is \"static\" | \"dynamic\"");
  EXPECT_EQ(refused(kQwen3_8B, changed("modules_to_not_convert", R"(["model.layers.0.mlp.down_proj"])").c_str()),
            at + "modules_to_not_convert has \"model.layers.0.mlp.down_proj\" | only lm_head, embed_tokens and norms: all other weights are FP8");
  EXPECT_EQ(refused(kQwen3_8B, changed("scale_fmt", R"("ue8m0")").c_str()), at + "scale_fmt is \"ue8m0\"" + kUnknown);
  EXPECT_EQ(refused(kQwen3_8B, R"({"quantization_config": "fp8"})"), "quantization_config is \"fp8\" | an object");
  Json half = Json::parse(kFp8);
  half["torch_dtype"] = "float16";
  EXPECT_EQ(refused(kQwen3_8B, half.dump().c_str()), "torch_dtype is \"float16\" | bfloat16 beside quantization_config: products of FP8 give no f16");
}

TEST(Config, MistralSlidesEverywhere) {
  ModelConfig c = parse_config(kMistral7B, "config.json");
  EXPECT_EQ(c.type, "mistral");
  EXPECT_EQ(c.vocab, 32000);
  EXPECT_EQ(c.windows, std::vector<i64>(32, 4096));
  EXPECT_FALSE(c.qkv_bias || c.out_bias || c.mlp_bias || c.qk_norm);
  EXPECT_EQ(with(kMistral7B, R"({"sliding_window": null})").windows, std::vector<i64>(32, 0));
  EXPECT_EQ(with(kMistral7B, R"({"sliding_window": 1})").windows, std::vector<i64>(32, 1));
  EXPECT_EQ(with(kMistral7B, "{}", {"sliding_window"}).windows, std::vector<i64>(32, 4096)) << "transformers' default";
  EXPECT_EQ(with(kMistral7B, R"({"num_hidden_layers": 1, "layer_types": ["sliding_attention"]})").windows, std::vector<i64>{4096});
  EXPECT_EQ(refused(kMistral7B, R"({"num_hidden_layers": 2, "layer_types": ["sliding_attention", "full_attention"]})"),
            "layer_types has \"full_attention\" at layer 1 | sliding_attention, as mistral's sliding_window is of all layers");
  EXPECT_EQ(refused(kMistral7B, R"({"sliding_window": 0})"), "sliding_window is 0 | a whole number from 1 to 2147483647");
  EXPECT_EQ(refused(kMistral7B, R"({"attention_bias": true})"), "attention_bias is true" + kUnknown);
}

TEST(Config, WindowsOfQwen) {
  constexpr const char* base = R"({"num_hidden_layers": 4, "use_sliding_window": true, "sliding_window": 64, "max_window_layers": 3})";
  EXPECT_EQ(with(kQwen25_7B, base).windows, (std::vector<i64>{0, 0, 0, 64}));
  EXPECT_EQ(with(kQwen3_8B, base).windows, (std::vector<i64>{0, 0, 0, 64}));
  const auto more = [&](const char* key, const char* value) {
    Json json = Json::parse(base);
    json[key] = Json::parse(value);
    return json.dump();
  };
  EXPECT_EQ(with(kQwen3_8B, more("use_sliding_window", "false").c_str()).windows, std::vector<i64>(4, 0));
  EXPECT_EQ(with(kQwen3_8B, more("sliding_window", "null").c_str()).windows, std::vector<i64>(4, 0));
  EXPECT_EQ(with(kQwen3_8B, more("max_window_layers", "0").c_str()).windows, std::vector<i64>(4, 64));
  EXPECT_EQ(with(kQwen3_8B, more("max_window_layers", "4").c_str()).windows, std::vector<i64>(4, 0));
  // layer_types wins over max_window_layers.
  EXPECT_EQ(with(kQwen3_8B, more("layer_types", R"(["sliding_attention", "full_attention", "sliding_attention", "full_attention"])").c_str()).windows,
            (std::vector<i64>{64, 0, 64, 0}));
  EXPECT_EQ(refused(kQwen3_8B, R"({"num_hidden_layers": 1, "layer_types": ["sliding_attention"]})"),
            "layer_types has \"sliding_attention\" at layer 0 | full_attention, as no sliding_window is in force");
  EXPECT_EQ(refused(kQwen3_8B, more("layer_types", R"(["full_attention"])").c_str()),
            "layer_types is [\"full_attention\"] | a list of num_hidden_layers=4 strings");
  EXPECT_EQ(refused(kQwen3_8B, more("layer_types", R"("full_attention")").c_str()),
            "layer_types is \"full_attention\" | a list of num_hidden_layers=4 strings");
  EXPECT_EQ(refused(kQwen3_8B, R"({"num_hidden_layers": 1, "layer_types": ["chunked_attention"]})"),
            "layer_types has \"chunked_attention\" at layer 0 | full_attention or sliding_attention");
  EXPECT_EQ(refused(kQwen3_8B, R"({"num_hidden_layers": 1, "layer_types": [7]})"), "layer_types has 7 at layer 0 | full_attention or sliding_attention");
  EXPECT_EQ(refused(kQwen3_8B, R"({"use_sliding_window": 1})"), "use_sliding_window is 1 | true or false");
  EXPECT_EQ(refused(kQwen3_8B, R"({"max_window_layers": -1})"), "max_window_layers is -1 | a whole number from 0 to 2147483647");
}

TEST(Config, DefaultsOfQwensWindowAreTransformers) {
  const ModelConfig c = with(kQwen3_8B, R"({"num_hidden_layers": 30, "use_sliding_window": true})", {"max_window_layers", "sliding_window"});
  EXPECT_EQ(c.windows[27], 0);
  EXPECT_EQ(c.windows[28], 4096);
  EXPECT_EQ(c.windows[29], 4096);
}

TEST(Config, LlamaHasNoWindows) {
  EXPECT_EQ(with(kLlama31_8B, R"({"num_hidden_layers": 2, "layer_types": ["full_attention", "full_attention"]})").windows, std::vector<i64>(2, 0));
  EXPECT_EQ(with(kLlama31_8B, R"({"sliding_window": null})").windows, std::vector<i64>(32, 0));
  EXPECT_EQ(refused(kLlama31_8B, R"({"sliding_window": 4096})"), "sliding_window is 4096" + kUnknown);
  EXPECT_EQ(refused(kLlama31_8B, R"({"num_hidden_layers": 1, "layer_types": ["sliding_attention"]})"),
            "layer_types has \"sliding_attention\" at layer 0 | full_attention, as no sliding_window is in force");
}

TEST(Config, Biases) {
  ModelConfig c = with(kLlama31_8B, R"({"attention_bias": true})");
  EXPECT_TRUE(c.qkv_bias && c.out_bias && !c.mlp_bias);
  c = with(kLlama31_8B, R"({"mlp_bias": true})");
  EXPECT_TRUE(!c.qkv_bias && !c.out_bias && c.mlp_bias);
  c = with(kQwen3_8B, R"({"attention_bias": true})");
  EXPECT_TRUE(c.qkv_bias && c.out_bias && !c.mlp_bias);
  c = with(kQwen25_7B, R"({"attention_bias": false})");
  EXPECT_TRUE(c.qkv_bias && !c.out_bias);
  EXPECT_EQ(refused(kQwen3_8B, R"({"mlp_bias": true})"), "mlp_bias is true" + kUnknown);
  EXPECT_EQ(refused(kLlama31_8B, R"({"attention_bias": "yes"})"), "attention_bias is \"yes\" | true or false");
}

TEST(Config, Defaults) {
  const ModelConfig c = with(kLlama31_8B, R"({"head_dim": null})",
                             {"num_key_value_heads", "rope_scaling", "rope_theta", "rms_norm_eps", "initializer_range", "tie_word_embeddings", "torch_dtype",
                              "hidden_act", "eos_token_id",
                              "attention_bias", "mlp_bias", "pretraining_tp", "architectures"});
  EXPECT_EQ(c.heads_kv, 32);
  EXPECT_EQ(c.head_dim, 128);
  EXPECT_EQ(c.rope, FrequencyKind::plain);
  EXPECT_EQ(c.rope_options.theta, 10000);
  EXPECT_EQ(c.eps, 1e-6f);
  EXPECT_EQ(c.initializer_range, 0.02);
  EXPECT_FALSE(c.tied_embeddings);
  EXPECT_EQ(c.dtype, DType::bf16);
  EXPECT_TRUE(c.stop_tokens.empty());
}

TEST(Config, Dtypes) {
  EXPECT_EQ(with(kLlama31_8B, R"({"torch_dtype": "float16"})").dtype, DType::f16);
  EXPECT_EQ(with(kLlama31_8B, R"({"torch_dtype": "float32"})").dtype, DType::bf16);
  EXPECT_EQ(with(kLlama31_8B, R"({"dtype": "float16"})", {"torch_dtype"}).dtype, DType::f16);
  EXPECT_EQ(refused(kLlama31_8B, R"({"dtype": "float16"})"), "torch_dtype is \"bfloat16\" | as dtype: \"float16\"");
  EXPECT_EQ(refused(kLlama31_8B, R"({"torch_dtype": "int8"})"), "torch_dtype is \"int8\" | bfloat16, float16 or float32");
  EXPECT_EQ(refused(kLlama31_8B, R"({"torch_dtype": 16})"), "torch_dtype is 16 | a string");
}

TEST(Config, StopTokens) {
  EXPECT_EQ(with(kLlama31_8B, R"({"eos_token_id": [128001, 128008, 128009, 128001]})").stop_tokens, (std::vector<i64>{128001, 128008, 128009}));
  EXPECT_TRUE(with(kLlama31_8B, R"({"eos_token_id": null})").stop_tokens.empty());
  EXPECT_EQ(refused(kLlama31_8B, R"({"eos_token_id": 128256})"), "eos_token_id is 128256 | a whole number from 0 to 128255");
  EXPECT_EQ(refused(kLlama31_8B, R"({"eos_token_id": [-1]})"), "eos_token_id is -1 | a whole number from 0 to 128255");
  EXPECT_EQ(refused(kLlama31_8B, R"({"eos_token_id": "</s>"})"), "eos_token_id is \"</s>\" | a whole number from 0 to 128255");
}

// ---- RoPE ----------------------------------------------------------------------------------------------------------------

std::string scaling(const char* inner, const char* key = "rope_scaling") { return "{\"" + std::string(key) + "\": " + inner + "}"; }
ModelConfig roped(const char* inner) { return with(kQwen25_7B, scaling(inner).c_str()); }
std::string rope_refused(const char* inner) { return refused(kQwen25_7B, scaling(inner).c_str()); }

TEST(Rope, PlainOnes) {
  for (const char* inner : {"null", "{}", "false", R"({"type": "default"})", R"({"rope_type": "default", "type": "default", "factor": null})"}) {
    const ModelConfig c = roped(inner);
    EXPECT_EQ(c.rope, FrequencyKind::plain) << inner;
    EXPECT_EQ(c.rope_options.theta, 1e6) << inner;
  }
}

TEST(Rope, Linear) {
  for (const char* inner : {R"({"type": "linear", "factor": 4.0})", R"({"rope_type": "linear", "factor": 4})"}) {
    EXPECT_EQ(roped(inner).rope, FrequencyKind::linear);
    EXPECT_EQ(roped(inner).rope_options.factor, 4);
  }
}

TEST(Rope, Yarn) {
  ModelConfig c = roped(R"({"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768})");
  EXPECT_EQ(c.rope, FrequencyKind::yarn);
  EXPECT_EQ(c.rope_options.factor, 4);
  EXPECT_EQ(c.rope_options.original_max, 32768);
  EXPECT_EQ(c.rope_options.beta_fast, 32);
  EXPECT_EQ(c.rope_options.beta_slow, 1);
  EXPECT_TRUE(c.rope_options.truncate);
  EXPECT_EQ(c.attention_factor, 0);
  c = roped(R"({"type": "yarn", "factor": null, "original_max_position_embeddings": 32768,
    "beta_fast": 16, "beta_slow": 2.5, "truncate": false, "attention_factor": 1.25, "finetuned": true})");
  EXPECT_EQ(c.rope_options.factor, 4) << "131072 / 32768";
  EXPECT_EQ(c.rope_options.beta_fast, 16);
  EXPECT_EQ(c.rope_options.beta_slow, 2.5);
  EXPECT_FALSE(c.rope_options.truncate);
  EXPECT_EQ(c.attention_factor, 1.25);
  c = roped(R"({"type": "yarn", "factor": 2.0, "beta_fast": 0, "beta_slow": null})");
  EXPECT_EQ(c.rope_options.original_max, 131072) << "max_position_embeddings";
  EXPECT_EQ(c.rope_options.beta_fast, 32) << "0 is none";
  EXPECT_EQ(c.rope_options.beta_slow, 1);
}

TEST(Rope, MscalesOfYarnScaleCosAndSinAlone) {
  const ModelConfig c = roped(R"({"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096, "mscale": 0.7, "mscale_all_dim": 1.0})");
  EXPECT_DOUBLE_EQ(c.attention_factor, (0.1 * 0.7 * std::log(40.0) + 1) / (0.1 * std::log(40.0) + 1));
  EXPECT_EQ(quern::rope::frequencies(c.rope, c.rope_options).softmax_scale, 1);
  EXPECT_EQ(roped(R"({"type": "yarn", "factor": 40, "mscale": 0.7})").attention_factor, 0) << "one alone counts for nothing";
  EXPECT_EQ(roped(R"({"type": "yarn", "factor": 40, "mscale": 0.7, "mscale_all_dim": 1, "attention_factor": 1.5})").attention_factor, 1.5);
}

TEST(Rope, LongropeTakesOneListByTheContext) {
  constexpr const char* base = R"({"num_hidden_layers": 1, "head_dim": 16, "rope_scaling": {"rope_type": "longrope", "short_factor": [1, 1, 1, 1, 1, 1, 1, 1.5],
    "long_factor": [1, 2, 3, 4, 5, 6, 7, 8.5], "original_max_position_embeddings": 4096}})";
  const auto at = [&](int max_positions, const char* outer = "null") {
    Json json = Json::parse(base);
    json["max_position_embeddings"] = max_positions;
    json["original_max_position_embeddings"] = Json::parse(outer);
    return with(kQwen3_8B, json.dump().c_str());
  };
  EXPECT_EQ(at(131072).rope, FrequencyKind::longrope);
  EXPECT_EQ(at(131072).rope_options.divisors, (std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8.5}));
  EXPECT_EQ(at(131072).rope_options.factor, 32);
  EXPECT_EQ(at(4097).rope_options.divisors.back(), 8.5);
  EXPECT_EQ(at(4096).rope_options.divisors, (std::vector<double>{1, 1, 1, 1, 1, 1, 1, 1.5}));
  EXPECT_EQ(at(4096).rope_options.factor, 1);
  EXPECT_EQ(at(2048).rope_options.factor, 1) << "not below 1";
  EXPECT_EQ(at(131072, "8192").rope_options.original_max, 8192) << "the outer one wins";
  EXPECT_EQ(at(131072, "8192").rope_options.factor, 16);

  Json json = Json::parse(base);
  json["rope_scaling"]["long_factor"] = {1, 2};
  EXPECT_EQ(refused(kQwen3_8B, json.dump().c_str()), "rope_scaling.long_factor has 2 numbers | head_dim / 2 = 8");
  json["rope_scaling"]["short_factor"] = {1, 2, "x"};
  EXPECT_EQ(refused(kQwen3_8B, json.dump().c_str()), "rope_scaling.short_factor is [1,2,\"x\"] | a list of numbers");
  json["rope_scaling"]["short_factor"] = 3;
  EXPECT_EQ(refused(kQwen3_8B, json.dump().c_str()), "rope_scaling.short_factor is 3 | a list of numbers");
  json["rope_scaling"].erase("short_factor");
  EXPECT_EQ(refused(kQwen3_8B, json.dump().c_str()), "rope_scaling.short_factor is missing | a list of numbers");
  json = Json::parse(base);
  json["rope_scaling"]["long_factor"][3] = 0;
  EXPECT_EQ(refused(kQwen3_8B, json.dump().c_str()), "rope_scaling.long_factor is 0 | a number from 0.125 to 1e+30");
}

TEST(Rope, ParametersOfTransformers5) {
  ModelConfig c = with(kQwen3_8B, R"({"rope_parameters": {"rope_type": "default", "rope_theta": 5000000}})", {"rope_theta", "rope_scaling"});
  EXPECT_EQ(c.rope, FrequencyKind::plain);
  EXPECT_EQ(c.rope_options.theta, 5e6);
  c = with(kLlama31_8B, R"({"rope_parameters": {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
    "high_freq_factor": 4.0, "partial_rotary_factor": 1}})",
           {"rope_theta", "rope_scaling"});
  EXPECT_EQ(c.rope, FrequencyKind::llama3);
  EXPECT_EQ(c.rope_options.theta, 500000);
  EXPECT_EQ(c.rope_options.original_max, 131072) << "max_position_embeddings where it is not given";
  EXPECT_EQ(with(kQwen3_8B, R"({"rope_parameters": null})").rope_options.theta, 1e6);
  EXPECT_EQ(refused(kQwen3_8B, R"({"rope_parameters": {"rope_theta": 10000}})"), "rope_theta is 1000000.0 | as in rope_parameters: 10000.0");
  EXPECT_EQ(refused(kQwen3_8B, R"({"rope_parameters": {"rope_type": "linear", "factor": 2}, "rope_scaling": {"rope_type": "linear", "factor": 4}})"),
            "rope_scaling is {\"factor\":4,\"rope_type\":\"linear\"} | the same as rope_parameters, or only one of them");
  EXPECT_EQ(refused(kQwen3_8B, R"({"rope_parameters": {"full_attention": {"rope_type": "default"}}})"),
            "rope_parameters.full_attention is {\"rope_type\":\"default\"}" + kUnknown);
}

TEST(Rope, Refused) {
  EXPECT_EQ(rope_refused(R"({"type": "dynamic", "factor": 2})"),
            "rope_scaling.type is \"dynamic\" | default, linear, llama3, yarn or longrope: others are not supported");
  EXPECT_EQ(rope_refused(R"({"rope_type": "mrope", "mrope_section": [16, 24, 24]})"),
            "rope_scaling.rope_type is \"mrope\" | default, linear, llama3, yarn or longrope: others are not supported");
  EXPECT_EQ(rope_refused(R"({"type": "linear", "rope_type": "yarn", "factor": 2})"), "rope_scaling.type is \"linear\" | as rope_type: \"yarn\"");
  EXPECT_EQ(rope_refused(R"({"type": 3})"), "rope_scaling.type is 3 | a string");
  EXPECT_EQ(rope_refused(R"([1])"), "rope_scaling is [1] | an object");
  EXPECT_EQ(rope_refused(R"({"type": "linear"})"), "rope_scaling.factor is missing | a number");
  EXPECT_EQ(rope_refused(R"({"type": "linear", "factor": "2"})"), "rope_scaling.factor is \"2\" | a number");
  EXPECT_EQ(rope_refused(R"({"type": "linear", "factor": 0})"), "rope_scaling.factor is 0 | a number from 0.125 to 1e+30");
  EXPECT_EQ(rope_refused(R"({"type": "yarn", "factor": 0.5})"), "rope_scaling.factor is 0.5 | a number from 1 to 1e+30");
  EXPECT_EQ(rope_refused(R"({"type": "yarn", "factor": 4, "beta_fast": 0.5})"), "rope_scaling.beta_fast is 0.5 | more than beta_slow, up to 1e30");
  EXPECT_EQ(rope_refused(R"({"type": "yarn", "factor": 4, "attention_factor": 0})"), "rope_scaling.attention_factor is 0 | a number above 0");
  EXPECT_EQ(rope_refused(R"({"type": "yarn", "factor": 4, "mscale": -1})"), "rope_scaling.mscale is -1 | a number from 0");
  EXPECT_EQ(rope_refused(R"({"type": "yarn", "factor": 4, "mscale_all_dim": -1})"), "rope_scaling.mscale_all_dim is -1 | a number from 0");
  EXPECT_EQ(rope_refused(R"({"type": "yarn", "factor": 4, "original_max_position_embeddings": 1})"),
            "rope_scaling.original_max_position_embeddings is 1.0 | more than 1");
  EXPECT_EQ(rope_refused(R"({"type": "yarn", "factor": 4, "attn_factor": 2})"), "rope_scaling.attn_factor is 2" + kUnknown);
  EXPECT_EQ(rope_refused(R"({"type": "linear", "factor": 4, "attention_factor": 2})"),
            "rope_scaling.attention_factor is 2" + kUnknown);
  EXPECT_EQ(rope_refused(R"({"type": "llama3", "factor": 8, "high_freq_factor": 4})"), "rope_scaling.low_freq_factor is missing | a number");
  EXPECT_EQ(rope_refused(R"({"type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 4})"),
            "rope_scaling.high_freq_factor is 4 | more than low_freq_factor, up to 1e30");
  EXPECT_EQ(rope_refused(R"({"type": "default", "partial_rotary_factor": 0.5})"), "rope_scaling.partial_rotary_factor is 0.5 | 1.0");
  EXPECT_EQ(refused(kQwen25_7B, R"({"partial_rotary_factor": 0.5})"), "partial_rotary_factor is 0.5 | 1.0");
  EXPECT_EQ(refused(kQwen25_7B, R"({"rope_theta": 0})"), "rope_theta is 0 | a number from 1 to 1e+30");
  EXPECT_EQ(refused(kQwen25_7B, R"({"rope_theta": "10000"})"), "rope_theta is \"10000\" | a number");
  EXPECT_EQ(refused(kQwen25_7B, R"({"original_max_position_embeddings": 4096})"),
            "original_max_position_embeddings is 4096" + kUnknown);
}

// ---- what is wrong with a config ---------------------------------------------------------------------------------------

TEST(Config, SizesMustFit) {
  for (const char* key : {"num_hidden_layers", "hidden_size", "intermediate_size", "vocab_size", "max_position_embeddings", "num_attention_heads"}) {
    const std::string name = key, range = name == "num_hidden_layers" ? "10000" : name == "num_attention_heads" ? "65536" : "2147483647";
    EXPECT_EQ(refused(kQwen3_8B, "{}", {key}), name + " is missing | a whole number from 1 to " + range);
    for (const char* value : {"0", "-1", "4294967296000", "18446744073709551615", "1e300", "32.0", "\"32\"", "[32]", "true"})
      EXPECT_NE(refused(kQwen3_8B, ("{\"" + name + "\": " + value + "}").c_str()).find(name + " is "), std::string::npos) << key << " " << value;
  }
  EXPECT_EQ(refused(kQwen3_8B, R"({"hidden_size": 32.5})"), "hidden_size is 32.5 | a whole number from 1 to 2147483647");
  EXPECT_EQ(refused(kQwen3_8B, R"({"num_key_value_heads": 5})"), "num_key_value_heads is 5 | a divisor of num_attention_heads=32");
  EXPECT_EQ(refused(kQwen3_8B, R"({"num_key_value_heads": 64})"), "num_key_value_heads is 64 | a divisor of num_attention_heads=32");
  EXPECT_EQ(refused(kQwen3_8B, R"({"head_dim": 0})"), "head_dim is 0 | a whole number from 1 to 2147483647");
  for (const int head_dim : {8, 63, 100, 257, 272})
    EXPECT_EQ(refused(kQwen3_8B, ("{\"head_dim\": " + std::to_string(head_dim) + "}").c_str()),
              "head_dim is " + std::to_string(head_dim) + " | a multiple of 16 up to 256");
  EXPECT_EQ(with(kQwen3_8B, R"({"head_dim": 256})").head_dim, 256);
  EXPECT_EQ(refused(kLlama31_8B, R"({"hidden_size": 4095})"), "head_dim is missing | a number, as hidden_size=4095 is no multiple of num_attention_heads=32");
  EXPECT_EQ(refused(kLlama31_8B, R"({"rms_norm_eps": 0})"), "rms_norm_eps is 0 | a number from 1e-30 to 1");
  EXPECT_EQ(refused(kLlama31_8B, R"({"rms_norm_eps": "1e-5"})"), "rms_norm_eps is \"1e-5\" | a number");
  EXPECT_EQ(refused(kLlama31_8B, R"({"initializer_range": -0.02})"), "initializer_range is -0.02 | a number from 0 to 1");
  EXPECT_EQ(refused(kLlama31_8B, R"({"tie_word_embeddings": 1})"), "tie_word_embeddings is 1 | true or false");
}

TEST(Config, WhatItCannotCompute) {
  EXPECT_EQ(refused(kLlama31_8B, R"({"hidden_act": "gelu"})"), "hidden_act is \"gelu\" | \"silu\"");
  EXPECT_EQ(refused(kLlama31_8B, R"({"hidden_act": 1})"), "hidden_act is 1 | \"silu\"");
  EXPECT_EQ(refused(kLlama31_8B, R"({"pretraining_tp": 2})"), "pretraining_tp is 2 | 1");
  EXPECT_EQ(refused(kLlama31_8B, R"({"model_type": "gemma"})"), "model_type is \"gemma\" | llama, mistral, qwen2 or qwen3");
  EXPECT_EQ(refused(kLlama31_8B, "{}", {"model_type"}), "model_type is missing | llama, mistral, qwen2 or qwen3");
  EXPECT_EQ(refused(kQwen3_06B, R"({"architectures": ["Qwen3ForSequenceClassification"]})"),
            "architectures is [\"Qwen3ForSequenceClassification\"] | a list with Qwen3ForCausalLM");
  EXPECT_EQ(refused(kQwen3_06B, R"({"architectures": "Qwen3ForCausalLM"})"), "architectures is \"Qwen3ForCausalLM\" | a list with Qwen3ForCausalLM");
}

TEST(Config, KeysItDoesNotKnow) {
  for (const char* off : {"null", "false", "{}", "[]", "\"\""})
    EXPECT_EQ(refused(kLlama31_8B, ("{\"some_feature\": " + std::string(off) + "}").c_str()), "taken") << off;
  for (const char* on : {"true", "0", "0.0", "1", "\"on\"", "[0]", "{\"a\":null}"})
    EXPECT_EQ(refused(kLlama31_8B, ("{\"some_feature\": " + std::string(on) + "}").c_str()),
              "some_feature is " + std::string(on) + kUnknown);
  EXPECT_EQ(refused(kLlama31_8B, R"({"is_decoder": true, "output_attentions": true, "id2label": {"0": "LABEL_0"},
    "pad_token_id": 0, "_name_or_path": "x", "unsloth_version": "1", "top_k": 50})"), "taken");
  EXPECT_EQ(refused(kLlama31_8B, R"({"is_encoder_decoder": true})"), "is_encoder_decoder is true" + kUnknown);
  EXPECT_EQ(refused(kLlama31_8B, R"({"num_experts": 8})"), "num_experts is 8" + kUnknown);
  EXPECT_EQ(refused(kLlama31_8B, ("{\"long\": \"" + std::string(500, 'x') + "\"}").c_str()).substr(0, 133), "long is \"" + std::string(119, 'x') + "... |")
      << "long values are cut";
}

TEST(Config, NoJson) {
  const auto parsed = [](const std::string& text) { return refusal([&] { (void)parse_config(text, "config.json"); }); };
  for (const char* text : {"", "{", "{\"a\": 1,}", "nonsense", "{} {}", "{\"a\": NaN}", "{\"a\": 1e999}", "{\"a\": \"\xff\"}"})
    EXPECT_EQ(parsed(text).substr(0, 12), " is no JSON:") << text;
  EXPECT_EQ(parsed("[]"), " is [] | an object");
  EXPECT_EQ(parsed(R"({"a": 1, "b": {"a": 2}, "a": 3})"), "a stands twice in one object | once");
  EXPECT_EQ(parsed(std::string(1000000, '[')), " nests deeper than 32 objects and lists | less");
}

// ---- files --------------------------------------------------------------------------------------------------------------

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

TEST(ConfigFiles, GenerationConfigHasTheStopTokens) {
  const Folder f;
  f.write("config.json", kQwen3_8B);
  EXPECT_EQ(read_config(f.path).stop_tokens, std::vector<i64>{151645});
  f.write("generation_config.json", R"({"bos_token_id": 151643, "do_sample": true,
    "eos_token_id": [151645, 151643], "pad_token_id": 151643, "temperature": 0.6, "top_k": 20, "top_p": 0.95})");
  EXPECT_EQ(read_config(f.path).stop_tokens, (std::vector<i64>{151645, 151643}));
  f.write("generation_config.json", R"({"temperature": 0.6})");
  EXPECT_EQ(read_config(f.path).stop_tokens, std::vector<i64>{151645});
  f.write("generation_config.json", R"({"eos_token_id": 200000})");
  EXPECT_EQ(refusal([&] { (void)read_config(f.path); }, f.at("generation_config.json")), "eos_token_id is 200000 | a whole number from 0 to 151935");
  f.write("generation_config.json", "{");
  EXPECT_EQ(refusal([&] { (void)read_config(f.path); }, f.at("generation_config.json")).substr(0, 12), " is no JSON:");
  std::filesystem::remove(f.at("generation_config.json"));
  std::filesystem::create_symlink("nowhere", f.at("generation_config.json"));
  EXPECT_EQ(refusal([&] { (void)read_config(f.path); }, f.at("generation_config.json")), " is no file that can be read | a file of JSON");
}

TEST(ConfigFiles, Missing) {
  const Folder f;
  EXPECT_EQ(refusal([&] { (void)read_config(f.path); }, f.at("config.json")), " is no file that can be read | a file of JSON");
  std::filesystem::create_directory(f.at("config.json"));
  EXPECT_EQ(refusal([&] { (void)read_config(f.path); }, f.at("config.json")), " is no file that can be read | a file of JSON");
}

/// The bytes of a file of safetensors with this header.
std::string file_of(const std::string& header, size_t data_bytes) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += char(u64(header.size()) >> (8 * i) & 255);
  bytes += header;
  for (size_t i = 0; i < data_bytes; ++i) bytes += char(i * 7 + 1);
  return bytes;
}
/// What the constructor says of a folder with this file alone.
std::string unreadable(const std::string& bytes) {
  const Folder f;
  f.write("model.safetensors", bytes);
  return refusal([&] { Checkpoint c(f.path); }, f.at("model.safetensors"));
}
std::string unreadable(const std::string& header, size_t data_bytes) { return unreadable(file_of(header, data_bytes)); }

TEST(CheckpointFiles, WrittenAndRead) {
  const Folder f;
  std::vector<float> f32 = {1, 2, 3, 4, 5, 6};
  std::vector<uint16_t> bf16 = {0x3f80, 0x4000, 0x4040}, f16 = {0x3c00};
  std::vector<u8> fp8 = {0x38, 0x40, 0x44, 0x48, 0x4a};
  write_safetensors(f.at("model.safetensors"), {{"a.fp8", TensorView(fp8.data(), DType::e4m3, {5})},
                                                {"b.f16", TensorView(f16.data(), DType::f16, {1, 1})},
                                                {"c.bf16", TensorView(bf16.data(), DType::bf16, {3, 1})},
                                                {"d.f32", TensorView(f32.data(), DType::f32, {2, 3})},
                                                {"e.empty", TensorView(nullptr, DType::bf16, {0, 8})}});
  Checkpoint c(f.path);
  EXPECT_EQ(c.unused(), (std::vector<std::string>{"a.fp8", "b.f16", "c.bf16", "d.f32", "e.empty"}));
  const TensorView d = c.get("d.f32", {2, 3});
  EXPECT_EQ(d.dtype, DType::f32);
  EXPECT_EQ(d.device.type, quern::DeviceType::cpu);
  EXPECT_TRUE(d.contiguous());
  EXPECT_EQ(std::memcmp(d.data, f32.data(), 24), 0);
  EXPECT_EQ(std::memcmp(c.get("c.bf16", {3, 1}).data, bf16.data(), 6), 0);
  EXPECT_EQ(c.get("c.bf16", {3, 1}).dtype, DType::bf16);
  EXPECT_EQ(std::memcmp(c.get("b.f16", {1, 1}).data, f16.data(), 2), 0);
  EXPECT_EQ(c.get("b.f16", {1, 1}).dtype, DType::f16);
  EXPECT_EQ(std::memcmp(c.get("a.fp8", {5}).data, fp8.data(), 5), 0);
  EXPECT_EQ(c.get("a.fp8", {5}).dtype, DType::e4m3);
  EXPECT_EQ(c.unused(), std::vector<std::string>{"e.empty"});
  EXPECT_EQ(c.get("e.empty", {0, 8}).numel(), 0);
  EXPECT_TRUE(c.unused().empty());
  EXPECT_TRUE(c.has("d.f32"));
  EXPECT_FALSE(c.has("d"));
}

TEST(CheckpointFiles, GetRefusesOtherNamesAndShapes) {
  const Folder f;
  std::vector<float> x(6);
  std::map<std::string, TensorView> tensors;
  for (const char* name : {"model.layers.0.self_attn.q_proj.weight", "model.layers.0.self_attn.k_proj.weight", "model.layers.1.self_attn.q_proj.weight",
                           "model.layers.0.mlp.up_proj.weight", "lm_head.weight"})
    tensors[name] = TensorView(x.data(), DType::f32, {2, 3});
  write_safetensors(f.at("model.safetensors"), tensors);
  Checkpoint c(f.path);
  EXPECT_EQ(refusal([&] { c.get("model.layers.0.self_attn.q_proj.bias", {2}); }, f.path),
            "model.layers.0.self_attn.q_proj.bias is not in the checkpoint | one of its tensors; near are model.layers.0.self_attn.q_proj.weight, "
            "model.layers.0.self_attn.k_proj.weight, model.layers.1.self_attn.q_proj.weight");
  EXPECT_EQ(refusal([&] { c.get("xyz", {2}); }, f.path), "xyz is not in the checkpoint | one of its 5 tensors");
  const std::pair<std::vector<i64>, const char*> others[] = {{{3, 2}, "[3, 2]"}, {{6}, "[6]"}, {{2, 3, 1}, "[2, 3, 1]"}, {{}, "[]"}, {{2, 4}, "[2, 4]"},
                                                             {{2, -3}, "[2, -3]"}};
  for (const auto& [shape, text] : others)
    EXPECT_EQ(refusal([&, &shape = shape] { c.get("lm_head.weight", shape); }, f.at("model.safetensors")),
              "lm_head.weight has shape [2, 3] | " + std::string(text));
  EXPECT_EQ(c.unused().size(), 5u) << "a refused get is no use";
}

TEST(CheckpointFiles, OtherDtypesAreRefusedByGetAlone) {
  const Folder f;
  f.write("model.safetensors", file_of(R"({"__metadata__": {"format": "pt"},
    "i": {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]}, "n": {"dtype": "F4", "shape": [4], "data_offsets": [8, 10]},
    "r": {"dtype": "BF16", "shape": [1,1,1,1,1,1], "data_offsets": [10, 12]}, "x": {"dtype": "BF16", "shape": [], "data_offsets": [12, 14]}})", 14));
  Checkpoint c(f.path);
  EXPECT_TRUE(c.has("i") && c.has("n") && c.has("r"));
  EXPECT_FALSE(c.has("__metadata__"));
  EXPECT_EQ(c.unused(), (std::vector<std::string>{"i", "n", "r", "x"}));
  EXPECT_EQ(refusal([&] { c.get("i", {1}); }, f.at("model.safetensors")), "i is I64 | BF16, F16, F32 or F8_E4M3, of 5 dims at most");
  EXPECT_EQ(refusal([&] { c.get("n", {4}); }, f.at("model.safetensors")), "n is F4 | BF16, F16, F32 or F8_E4M3, of 5 dims at most");
  EXPECT_EQ(refusal([&] { c.get("r", {1, 1, 1, 1, 1, 1}); }, f.at("model.safetensors")),
            "r has shape [1, 1, 1, 1, 1, 1] | BF16, F16, F32 or F8_E4M3, of 5 dims at most");
  EXPECT_EQ(c.get("x", {}).rank, 0);
}

TEST(CheckpointFiles, ElementsAcrossBoundariesAreCopied) {
  for (const char* pad : {"", " ", "  ", "   "}) {
    const Folder f;
    const std::string bytes = file_of(R"({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})" + std::string(pad), 8);
    f.write("model.safetensors", bytes);
    Checkpoint c(f.path);
    const TensorView w = c.get("w", {2}), again = c.get("w", {2});
    EXPECT_EQ(reinterpret_cast<uintptr_t>(w.data) % 4, 0u);
    EXPECT_EQ(w.data, again.data);
    EXPECT_EQ(std::memcmp(w.data, bytes.data() + bytes.size() - 8, 8), 0);
  }
}

TEST(CheckpointFiles, Headers) {
  constexpr const char* good = R"({"w": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}})";
  EXPECT_EQ(unreadable(good, 4), "taken");
  EXPECT_EQ(unreadable(""), " has 0 bytes | 8 at least: the length of a header");
  EXPECT_EQ(unreadable("1234567"), " has 7 bytes | 8 at least: the length of a header");
  EXPECT_EQ(unreadable(file_of(good, 4).substr(0, 40)), " states a header of 62 bytes | 2 to 32, as the file has 40");
  EXPECT_EQ(unreadable(std::string(8, '\xff') + good), " states a header of 18446744073709551615 bytes | 2 to 62, as the file has 70");
  EXPECT_EQ(unreadable(std::string("\1\0\0\0\0\0\0\0{}", 10)), " states a header of 1 bytes | 2 to 2, as the file has 10");
  EXPECT_EQ(unreadable("[1]", 0), " has a header that does not begin with { | a file of safetensors");
  EXPECT_EQ(unreadable("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n").find(" states a header of "), 0u);
  EXPECT_EQ(unreadable("{\"w\": garbage", 0).substr(0, 12), " is no JSON:");
  EXPECT_EQ(unreadable(std::string("{\"w\0\": 1}", 9), 0).substr(0, 12), " is no JSON:");
  EXPECT_EQ(unreadable("{\"a\":" + std::string(100000, '['), 0), " nests deeper than 32 objects and lists | less");
  EXPECT_EQ(unreadable(R"({"w": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}, "w": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}})", 4),
            "w stands twice in one object | once");
  EXPECT_EQ(unreadable(R"({"__metadata__": 3})", 0), "__metadata__ is 3 | an object of strings");
  EXPECT_EQ(unreadable("{}", 0), "taken");
}

TEST(CheckpointFiles, Entries) {
  const auto entry = [](const char* text, size_t bytes = 4) { return unreadable("{\"w\": " + std::string(text) + "}", bytes); };
  const std::string whole = "an object with dtype, shape and data_offsets", list = "a list of whole numbers from 0",
      within = "[begin, end] within the file's 4 bytes of data";
  EXPECT_EQ(entry("[]"), "w is [] | " + whole);
  EXPECT_EQ(entry(R"({"shape": [2], "data_offsets": [0, 4]})"), "w has no dtype | " + whole);
  EXPECT_EQ(entry(R"({"dtype": "BF16", "data_offsets": [0, 4]})"), "w has no shape | " + whole);
  EXPECT_EQ(entry(R"({"dtype": "BF16", "shape": [2]})"), "w has no data_offsets | " + whole);
  EXPECT_EQ(entry(R"({"dtype": 16, "shape": [2], "data_offsets": [0, 4]})"), "w has dtype 16 | a string");
  for (const char* shape : {"2", "[-2]", "[2.0]", "[\"2\"]", "[[2]]", "[9223372036854775808]", "{\"a\":2}"})
    EXPECT_EQ(entry((R"({"dtype": "BF16", "data_offsets": [0, 4], "shape": )" + std::string(shape) + "}").c_str()),
              "w has shape " + std::string(shape) + " | " + list);
  for (const char* shape : {"[4294967296,4294967296]", "[2147483648,2147483648]", "[0,9223372036854775807,9223372036854775807]",
                            "[4294967296,4294967296,4294967296,2]"})
    EXPECT_EQ(entry((R"({"dtype": "BF16", "data_offsets": [0, 4], "shape": )" + std::string(shape) + "}").c_str()),
              "w has shape " + std::string(shape) + " | at most 2^60 elements");
  for (const char* offsets : {"4", "[4]", "[0,2,4]", "[0,\"4\"]", "[-1,4]", "[0,4.0]", "[4,0]", "[0,5]", "[18446744073709551612,18446744073709551615]",
                              "{\"a\":0,\"b\":4}"})
    EXPECT_EQ(entry((R"({"dtype": "BF16", "shape": [2], "data_offsets": )" + std::string(offsets) + "}").c_str()),
              "w has data_offsets " + std::string(offsets) + " | " + within);
  EXPECT_EQ(entry(R"({"dtype": "BF16", "shape": [3], "data_offsets": [0, 4]})"), "w has 4 bytes | 6 of BF16 [3]");
  EXPECT_EQ(entry(R"({"dtype": "F32", "shape": [], "data_offsets": [0, 2]})"), "w has 2 bytes | 4 of F32 []");
  EXPECT_EQ(entry(R"({"dtype": "BF16", "shape": [0], "data_offsets": [0, 4]})"), "w has 4 bytes | 0 of BF16 [0]");
  EXPECT_EQ(entry(R"({"dtype": "I32", "shape": [2], "data_offsets": [0, 4]})"), "w has 4 bytes | 8 of I32 [2]") << "dtypes that no get() takes are judged too";
}

TEST(CheckpointFiles, DataHasNoHolesAndNoOverlaps) {
  const auto two = [](const char* a, const char* b, size_t bytes) {
    return unreadable(R"({"a": {"dtype": "BF16", "shape": [2], "data_offsets": )" + std::string(a)
                      + R"(}, "b": {"dtype": "BF16", "shape": [2], "data_offsets": )" + b + "}}", bytes);
  };
  const std::string why = ", where the tensor before it ends: data has no holes and no overlaps";
  EXPECT_EQ(two("[4,8]", "[0,4]", 8), "taken");
  EXPECT_EQ(two("[0,4]", "[2,6]", 6), "b begins at byte 2 of the data | 4" + why);
  EXPECT_EQ(two("[0,4]", "[0,4]", 4), "b begins at byte 0 of the data | 4" + why);
  EXPECT_EQ(two("[0,4]", "[6,10]", 10), "b begins at byte 6 of the data | 4" + why);
  EXPECT_EQ(two("[2,6]", "[6,10]", 10), "a begins at byte 2 of the data | 0" + why);
  EXPECT_EQ(two("[0,4]", "[4,8]", 9), " has 9 bytes of data | 8, where its last tensor ends");
  EXPECT_EQ(two("[0,4]", "[4,8]", 7), "b has data_offsets [4,8] | [begin, end] within the file's 7 bytes of data") << "truncated";
}

// ---- folders ------------------------------------------------------------------------------------------------------------

TEST(CheckpointFolder, NoFile) {
  const Folder f;
  EXPECT_EQ(refusal([&] { Checkpoint c(f.path); }, f.path), " has no model.safetensors and no model.safetensors.index.json | one of them");
  std::filesystem::create_directory(f.at("model.safetensors"));
  EXPECT_EQ(refusal([&] { Checkpoint c(f.path); }, f.at("model.safetensors")), " is no regular file | a file of safetensors");
  std::filesystem::remove(f.at("model.safetensors"));
  ASSERT_EQ(::mkfifo(f.at("model.safetensors").c_str(), 0600), 0);
  EXPECT_EQ(refusal([&] { Checkpoint c(f.path); }, f.at("model.safetensors")), " is no regular file | a file of safetensors");
  std::filesystem::remove(f.at("model.safetensors"));
  std::filesystem::create_symlink("nowhere", f.at("model.safetensors"));
  EXPECT_EQ(refusal([&] { Checkpoint c(f.path); }, f.at("model.safetensors")), " cannot be opened: No such file or directory | a file of safetensors");
}

struct Sharded : Folder {
  std::vector<float> x = {1, 2, 3}, y = {4, 5}, z = {6};
  Sharded() {
    write_safetensors(at("1.safetensors"), {{"x", TensorView(x.data(), DType::f32, {3})}});
    write_safetensors(at("2.safetensors"), {{"y", TensorView(y.data(), DType::f32, {2})}, {"z", TensorView(z.data(), DType::f32, {1})}});
  }
  std::string with_index(const std::string& index, const std::string& op) const {
    write("model.safetensors.index.json", index);
    return refusal([&] { Checkpoint c(path); }, at(op));
  }
};
constexpr const char* kIndex = "model.safetensors.index.json";

TEST(CheckpointFolder, Sharded) {
  const Sharded f;
  f.write(kIndex, R"({"metadata": {"total_size": 24}, "weight_map": {"x": "1.safetensors", "y": "2.safetensors", "z": "2.safetensors"}})");
  Checkpoint c(f.path);
  EXPECT_EQ(c.unused(), (std::vector<std::string>{"x", "y", "z"}));
  EXPECT_EQ(std::memcmp(c.get("x", {3}).data, f.x.data(), 12), 0);
  EXPECT_EQ(std::memcmp(c.get("y", {2}).data, f.y.data(), 8), 0);
  EXPECT_EQ(refusal([&] { c.get("z", {2}); }, f.at("2.safetensors")), "z has shape [1] | [2]");
  EXPECT_EQ(refusal([&] { c.get("x", {2}); }, f.at("1.safetensors")), "x has shape [3] | [2]");
}

TEST(CheckpointFolder, LinksAreFollowed) {  // as in the cache of Hugging Face's hub
  const Sharded f;
  const Folder snapshot;
  std::filesystem::create_symlink(f.at("1.safetensors"), snapshot.at("model.safetensors"));
  EXPECT_TRUE(Checkpoint(snapshot.path).has("x"));
}

TEST(CheckpointFolder, BrokenIndex) {
  const Sharded f;
  EXPECT_EQ(f.with_index("{", kIndex).substr(0, 12), " is no JSON:");
  EXPECT_EQ(f.with_index("[]", kIndex), "weight_map is missing | an object of tensors and their files");
  EXPECT_EQ(f.with_index("{}", kIndex), "weight_map is missing | an object of tensors and their files");
  EXPECT_EQ(f.with_index(R"({"weight_map": []})", kIndex), "weight_map is [] | an object of tensors and their files");
  EXPECT_EQ(f.with_index(R"({"weight_map": {}})", kIndex), "weight_map is {} | an object of tensors and their files");
  for (const char* file : {"\"../1.safetensors\"", "\"/etc/passwd\"", "\"a/1.safetensors\"", "\"..\"", "\"\"", "7", "null", "\"1.safetensors\\u0000\""})
    EXPECT_EQ(f.with_index(R"({"weight_map": {"x": )" + std::string(file) + "}}", kIndex),
              "x is in " + std::string(file) + " | a file of the same folder: a name without / and ..");
  EXPECT_EQ(f.with_index(R"({"weight_map": {"x": "1.safetensors", "x": "2.safetensors"}})", kIndex), "x stands twice in one object | once");
  EXPECT_EQ(f.with_index(R"({"weight_map": {"x": "3.safetensors"}})", "3.safetensors"), " cannot be opened: No such file or directory | a file of safetensors");
  EXPECT_EQ(f.with_index(R"({"weight_map": {"x": "1.safetensors", "w": "1.safetensors"}})", "1.safetensors"),
            "w is not in this file | a tensor that the index places here");
  EXPECT_EQ(f.with_index(R"({"weight_map": {"x": "1.safetensors", "y": "1.safetensors", "z": "2.safetensors"}})", "2.safetensors"),
            "y is in this file | 1.safetensors, where the index places it");
  write_safetensors(f.at("3.safetensors"), {{"x", TensorView(const_cast<float*>(f.x.data()), DType::f32, {3})},
                                            {"v", TensorView(const_cast<float*>(f.x.data()), DType::f32, {3})}});
  EXPECT_EQ(f.with_index(R"({"weight_map": {"x": "1.safetensors", "v": "3.safetensors"}})", "3.safetensors"),
            "x is in this file and in 1.safetensors | one of them");
}

TEST(CheckpointFolder, TheSingleFileGoesFirst) {
  const Sharded f;
  f.write(kIndex, "{");
  write_safetensors(f.at("model.safetensors"), {{"w", TensorView(const_cast<float*>(f.x.data()), DType::f32, {3})}});
  EXPECT_TRUE(Checkpoint(f.path).has("w"));
}

// ---- the writer ---------------------------------------------------------------------------------------------------------

TEST(WriteCheckpoint, Refuses) {
  const Folder f;
  std::vector<float> x(6);
  const std::string file = f.at("a.safetensors");
  const auto written = [&](const std::string& name, const TensorView& view) { return refusal([&] { write_safetensors(file, {{name, view}}); }, file); };
  const TensorView view(x.data(), DType::f32, {2, 3});
  EXPECT_EQ(written("w", view.slice(1, 0, 2)), "w is not contiguous | a contiguous tensor");
  EXPECT_EQ(written("w", TensorView(x.data(), DType::f32, {2, 3}, {quern::DeviceType::cuda, 0})), "w is on a device | a tensor of host memory");
  EXPECT_EQ(written("w", TensorView()), "w has no data | a tensor of host memory");
  EXPECT_EQ(written("__metadata__", view), "__metadata__ is a tensor | another name: this one is safetensors' own");
  EXPECT_EQ(written("\xff", view).substr(0, 22), " cannot have a header:");
  EXPECT_FALSE(std::filesystem::exists(file));
  try {
    write_safetensors(f.at("no/such/file"), {{"w", view}});
    ADD_FAILURE() << "taken";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::device);
    EXPECT_EQ(e.op(), f.at("no/such/file"));
  }
}

TEST(WriteCheckpoint, KeepsElementsAtTheirBoundaries) {
  const Folder f;
  std::vector<double> memory(16);
  std::map<std::string, TensorView> tensors;
  for (int t = 0; t < quern::kDTypeCount; ++t) tensors[std::string(size_t(t + 1), 'w')] = TensorView(memory.data(), DType(t), {t + 1});
  write_safetensors(f.at("model.safetensors"), tensors);
  std::ifstream in(f.at("model.safetensors"), std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  u64 length = 0;
  for (int i = 0; i < 8; ++i) length |= u64(u8(bytes[size_t(i)])) << (8 * i);
  EXPECT_EQ(length % 8, 0u);
  const Json header = Json::parse(bytes.substr(8, length));
  EXPECT_EQ(header.size(), size_t(quern::kDTypeCount));
  for (const auto& [name, view] : tensors) EXPECT_EQ(header[name]["data_offsets"][0].get<u64>() % u64(size_of(view.dtype)), 0u) << name;
  Checkpoint c(f.path);
  EXPECT_EQ(c.unused().size(), size_t(quern::kDTypeCount));
}

// ---- random faults ------------------------------------------------------------------------------------------------------

u64 sum_of(const TensorView& v) {
  u64 sum = 0;
  for (i64 i = 0; i < v.numel() * size_of(v.dtype); ++i) sum += static_cast<const u8*>(v.data)[i];
  return sum;
}

/// Some bytes of the header, its length among them, are others; at times a digit is another digit, or the file is cut.
std::string mutated(std::string bytes, size_t header_end, std::mt19937_64& random) {
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

int fuzz_rounds() {
  const char* const rounds = std::getenv("ENGINE_FUZZ_ROUNDS");
  return rounds ? std::atoi(rounds) : 2000;
}

TEST(Fuzz, HeadersGiveErrorsAlone) {
  const Folder f;
  // The data ends with the page, so that a read behind it is no read of the mapping.
  std::string header = R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[20,10],"data_offsets":[0,800]},)"
                       R"("b":{"dtype":"BF16","shape":[5,4,5],"data_offsets":[800,1000]},)"
                       R"("c":{"dtype":"F8_E4M3","shape":[1000],"data_offsets":[1000,2000]},"d":{"dtype":"F16","shape":[0,3],"data_offsets":[2000,2000]},)"
                       R"("e":{"dtype":"I64","shape":[10],"data_offsets":[2000,2080]}})";
  header.resize(4096 - 2080 - 8, ' ');
  const std::string good = file_of(header, 2080);
  const size_t header_end = header.find_last_not_of(' ') + 9;
  std::mt19937_64 random(1);
  int taken = 0, refused = 0;
  u64 sum = 0;
  for (int round = 0; round < fuzz_rounds(); ++round) {
    f.write("model.safetensors", mutated(good, header_end, random));
    try {
      Checkpoint c(f.path);
      ++taken;
      for (const std::string& name : c.unused())
        for (const std::vector<i64>& shape : {std::vector<i64>{20, 10}, {5, 4, 5}, {1000}, {0, 3}, {10}}) try {
            sum += sum_of(c.get(name, shape));
            break;
          } catch (const Error&) {
          }
    } catch (const Error& e) {
      ++refused;
      ASSERT_EQ(e.kind(), ErrorKind::value) << e.what();
    }
  }
  EXPECT_GT(taken, fuzz_rounds() / 200);
  EXPECT_GT(refused, fuzz_rounds() / 2);
  EXPECT_GT(sum, 0u);
}

TEST(Fuzz, ConfigsGiveErrorsAlone) {
  std::mt19937_64 random(2);
  int taken = 0;
  for (int round = 0; round < fuzz_rounds(); ++round) {
    const std::string text = std::string(8, ' ') + (round % 2 ? kLlama31_8B : edited(kQwen3_8B, kFp8));
    try {
      (void)parse_config(mutated(text, text.size(), random), "config.json");
      ++taken;
    } catch (const Error& e) {
      ASSERT_EQ(e.kind(), ErrorKind::value) << e.what();
    }
  }
  EXPECT_GT(taken, fuzz_rounds() / 200);
}

}  // namespace
}  // namespace engine
