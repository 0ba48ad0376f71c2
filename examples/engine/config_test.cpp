// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Configs: the published ones as they are, and everything that can be wrong with one.
#include "config.h"

#include <cmath>

#include "published_configs.h"

namespace engine {
namespace {

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
  for (const auto& [text, hidden, heads, layers, tied] :
       {std::tuple{kQwen3_8B, 4096, 32, 36, false}, std::tuple{kQwen3_06B, 1024, 16, 28, true}}) {
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
  EXPECT_EQ(
      refused(kQwen3_8B, changed("modules_to_not_convert", R"(["model.layers.0.mlp.down_proj"])").c_str()),
      at + "modules_to_not_convert has \"model.layers.0.mlp.down_proj\" | only lm_head, embed_tokens and norms: all other weights are FP8");
  EXPECT_EQ(refused(kQwen3_8B, changed("scale_fmt", R"("ue8m0")").c_str()), at + "scale_fmt is \"ue8m0\"" + kUnknown);
  EXPECT_EQ(refused(kQwen3_8B, R"({"quantization_config": "fp8"})"), "quantization_config is \"fp8\" | an object");
  Json half = Json::parse(kFp8);
  half["torch_dtype"] = "float16";
  EXPECT_EQ(refused(kQwen3_8B, half.dump().c_str()),
            "torch_dtype is \"float16\" | bfloat16 beside quantization_config: products of FP8 give no f16");
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
  EXPECT_EQ(
      with(kQwen3_8B, more("layer_types", R"(["sliding_attention", "full_attention", "sliding_attention", "full_attention"])").c_str())
          .windows,
      (std::vector<i64>{64, 0, 64, 0}));
  EXPECT_EQ(refused(kQwen3_8B, R"({"num_hidden_layers": 1, "layer_types": ["sliding_attention"]})"),
            "layer_types has \"sliding_attention\" at layer 0 | full_attention, as no sliding_window is in force");
  EXPECT_EQ(refused(kQwen3_8B, more("layer_types", R"(["full_attention"])").c_str()),
            "layer_types is [\"full_attention\"] | a list of num_hidden_layers=4 strings");
  EXPECT_EQ(refused(kQwen3_8B, more("layer_types", R"("full_attention")").c_str()),
            "layer_types is \"full_attention\" | a list of num_hidden_layers=4 strings");
  EXPECT_EQ(refused(kQwen3_8B, R"({"num_hidden_layers": 1, "layer_types": ["chunked_attention"]})"),
            "layer_types has \"chunked_attention\" at layer 0 | full_attention or sliding_attention");
  EXPECT_EQ(refused(kQwen3_8B, R"({"num_hidden_layers": 1, "layer_types": [7]})"),
            "layer_types has 7 at layer 0 | full_attention or sliding_attention");
  EXPECT_EQ(refused(kQwen3_8B, R"({"use_sliding_window": 1})"), "use_sliding_window is 1 | true or false");
  EXPECT_EQ(refused(kQwen3_8B, R"({"max_window_layers": -1})"), "max_window_layers is -1 | a whole number from 0 to 2147483647");
}

TEST(Config, DefaultsOfQwensWindowAreTransformers) {
  const ModelConfig c =
      with(kQwen3_8B, R"({"num_hidden_layers": 30, "use_sliding_window": true})", {"max_window_layers", "sliding_window"});
  EXPECT_EQ(c.windows[27], 0);
  EXPECT_EQ(c.windows[28], 4096);
  EXPECT_EQ(c.windows[29], 4096);
}

TEST(Config, LlamaHasNoWindows) {
  EXPECT_EQ(with(kLlama31_8B, R"({"num_hidden_layers": 2, "layer_types": ["full_attention", "full_attention"]})").windows,
            std::vector<i64>(2, 0));
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
  const ModelConfig c =
      with(kLlama31_8B, R"({"head_dim": null})",
           {"num_key_value_heads", "rope_scaling", "rope_theta", "rms_norm_eps", "initializer_range", "tie_word_embeddings", "torch_dtype",
            "hidden_act", "eos_token_id", "attention_bias", "mlp_bias", "pretraining_tp", "architectures"});
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
  EXPECT_EQ(with(kLlama31_8B, R"({"eos_token_id": [128001, 128008, 128009, 128001]})").stop_tokens,
            (std::vector<i64>{128001, 128008, 128009}));
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
  for (const char* inner :
       {"null", "{}", "false", R"({"type": "default"})", R"({"rope_type": "default", "type": "default", "factor": null})"}) {
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
  const ModelConfig c =
      roped(R"({"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096, "mscale": 0.7, "mscale_all_dim": 1.0})");
  EXPECT_DOUBLE_EQ(c.attention_factor, (0.1 * 0.7 * std::log(40.0) + 1) / (0.1 * std::log(40.0) + 1));
  EXPECT_EQ(quern::rope::frequencies(c.rope, c.rope_options).softmax_scale, 1);
  EXPECT_EQ(roped(R"({"type": "yarn", "factor": 40, "mscale": 0.7})").attention_factor, 0) << "one alone counts for nothing";
  EXPECT_EQ(roped(R"({"type": "yarn", "factor": 40, "mscale": 0.7, "mscale_all_dim": 1, "attention_factor": 1.5})").attention_factor, 1.5);
}

TEST(Rope, LongropeTakesOneListByTheContext) {
  constexpr const char* base =
      R"({"num_hidden_layers": 1, "head_dim": 16, "rope_scaling": {"rope_type": "longrope", "short_factor": [1, 1, 1, 1, 1, 1, 1, 1.5],
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
  ModelConfig c =
      with(kQwen3_8B, R"({"rope_parameters": {"rope_type": "default", "rope_theta": 5000000}})", {"rope_theta", "rope_scaling"});
  EXPECT_EQ(c.rope, FrequencyKind::plain);
  EXPECT_EQ(c.rope_options.theta, 5e6);
  c = with(kLlama31_8B, R"({"rope_parameters": {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
    "high_freq_factor": 4.0, "partial_rotary_factor": 1}})",
           {"rope_theta", "rope_scaling"});
  EXPECT_EQ(c.rope, FrequencyKind::llama3);
  EXPECT_EQ(c.rope_options.theta, 500000);
  EXPECT_EQ(c.rope_options.original_max, 131072) << "max_position_embeddings where it is not given";
  EXPECT_EQ(with(kQwen3_8B, R"({"rope_parameters": null})").rope_options.theta, 1e6);
  EXPECT_EQ(refused(kQwen3_8B, R"({"rope_parameters": {"rope_theta": 10000}})"),
            "rope_theta is 1000000.0 | as in rope_parameters: 10000.0");
  EXPECT_EQ(refused(kQwen3_8B,
                    R"({"rope_parameters": {"rope_type": "linear", "factor": 2}, "rope_scaling": {"rope_type": "linear", "factor": 4}})"),
            "rope_scaling is {\"factor\":4,\"rope_type\":\"linear\"} | the same as rope_parameters, or only one of them");
  EXPECT_EQ(refused(kQwen3_8B, R"({"rope_parameters": {"full_attention": {"rope_type": "default"}}})"),
            "rope_parameters.full_attention is {\"rope_type\":\"default\"}" + kUnknown);
}

TEST(Rope, Refused) {
  EXPECT_EQ(rope_refused(R"({"type": "dynamic", "factor": 2})"),
            "rope_scaling.type is \"dynamic\" | default, linear, llama3, yarn or longrope: others are not supported");
  EXPECT_EQ(rope_refused(R"({"rope_type": "mrope", "mrope_section": [16, 24, 24]})"),
            "rope_scaling.rope_type is \"mrope\" | default, linear, llama3, yarn or longrope: others are not supported");
  EXPECT_EQ(rope_refused(R"({"type": "linear", "rope_type": "yarn", "factor": 2})"),
            "rope_scaling.type is \"linear\" | as rope_type: \"yarn\"");
  EXPECT_EQ(rope_refused(R"({"type": 3})"), "rope_scaling.type is 3 | a string");
  EXPECT_EQ(rope_refused(R"([1])"), "rope_scaling is [1] | an object");
  EXPECT_EQ(rope_refused(R"({"type": "linear"})"), "rope_scaling.factor is missing | a number");
  EXPECT_EQ(rope_refused(R"({"type": "linear", "factor": "2"})"), "rope_scaling.factor is \"2\" | a number");
  EXPECT_EQ(rope_refused(R"({"type": "linear", "factor": 0})"), "rope_scaling.factor is 0 | a number from 0.125 to 1e+30");
  EXPECT_EQ(rope_refused(R"({"type": "yarn", "factor": 0.5})"), "rope_scaling.factor is 0.5 | a number from 1 to 1e+30");
  EXPECT_EQ(rope_refused(R"({"type": "yarn", "factor": 4, "beta_fast": 0.5})"),
            "rope_scaling.beta_fast is 0.5 | more than beta_slow, up to 1e30");
  EXPECT_EQ(rope_refused(R"({"type": "yarn", "factor": 4, "attention_factor": 0})"),
            "rope_scaling.attention_factor is 0 | a number above 0");
  EXPECT_EQ(rope_refused(R"({"type": "yarn", "factor": 4, "mscale": -1})"), "rope_scaling.mscale is -1 | a number from 0");
  EXPECT_EQ(rope_refused(R"({"type": "yarn", "factor": 4, "mscale_all_dim": -1})"), "rope_scaling.mscale_all_dim is -1 | a number from 0");
  EXPECT_EQ(rope_refused(R"({"type": "yarn", "factor": 4, "original_max_position_embeddings": 1})"),
            "rope_scaling.original_max_position_embeddings is 1.0 | more than 1");
  EXPECT_EQ(rope_refused(R"({"type": "yarn", "factor": 4, "attn_factor": 2})"), "rope_scaling.attn_factor is 2" + kUnknown);
  EXPECT_EQ(rope_refused(R"({"type": "linear", "factor": 4, "attention_factor": 2})"), "rope_scaling.attention_factor is 2" + kUnknown);
  EXPECT_EQ(rope_refused(R"({"type": "llama3", "factor": 8, "high_freq_factor": 4})"),
            "rope_scaling.low_freq_factor is missing | a number");
  EXPECT_EQ(rope_refused(R"({"type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 4})"),
            "rope_scaling.high_freq_factor is 4 | more than low_freq_factor, up to 1e30");
  EXPECT_EQ(rope_refused(R"({"type": "default", "partial_rotary_factor": 0.5})"), "rope_scaling.partial_rotary_factor is 0.5 | 1.0");
  EXPECT_EQ(refused(kQwen25_7B, R"({"partial_rotary_factor": 0.5})"), "partial_rotary_factor is 0.5 | 1.0");
  EXPECT_EQ(refused(kQwen25_7B, R"({"rope_theta": 0})"), "rope_theta is 0 | a number from 1 to 1e+30");
  EXPECT_EQ(refused(kQwen25_7B, R"({"rope_theta": "10000"})"), "rope_theta is \"10000\" | a number");
  EXPECT_EQ(refused(kQwen25_7B, R"({"original_max_position_embeddings": 4096})"), "original_max_position_embeddings is 4096" + kUnknown);
}

// ---- what is wrong with a config ---------------------------------------------------------------------------------------

TEST(Config, SizesMustFit) {
  for (const char* key :
       {"num_hidden_layers", "hidden_size", "intermediate_size", "vocab_size", "max_position_embeddings", "num_attention_heads"}) {
    const std::string name = key, range = name == "num_hidden_layers" ? "10000" : name == "num_attention_heads" ? "65536" : "2147483647";
    EXPECT_EQ(refused(kQwen3_8B, "{}", {key}), name + " is missing | a whole number from 1 to " + range);
    for (const char* value : {"0", "-1", "4294967296000", "18446744073709551615", "1e300", "32.0", "\"32\"", "[32]", "true"})
      EXPECT_NE(refused(kQwen3_8B, ("{\"" + name + "\": " + value + "}").c_str()).find(name + " is "), std::string::npos)
          << key << " " << value;
  }
  EXPECT_EQ(refused(kQwen3_8B, R"({"hidden_size": 32.5})"), "hidden_size is 32.5 | a whole number from 1 to 2147483647");
  EXPECT_EQ(refused(kQwen3_8B, R"({"num_key_value_heads": 5})"), "num_key_value_heads is 5 | a divisor of num_attention_heads=32");
  EXPECT_EQ(refused(kQwen3_8B, R"({"num_key_value_heads": 64})"), "num_key_value_heads is 64 | a divisor of num_attention_heads=32");
  EXPECT_EQ(refused(kQwen3_8B, R"({"head_dim": 0})"), "head_dim is 0 | a whole number from 1 to 2147483647");
  for (const int head_dim : {8, 63, 100, 257, 272})
    EXPECT_EQ(refused(kQwen3_8B, ("{\"head_dim\": " + std::to_string(head_dim) + "}").c_str()),
              "head_dim is " + std::to_string(head_dim) + " | a multiple of 16 up to 256");
  EXPECT_EQ(with(kQwen3_8B, R"({"head_dim": 256})").head_dim, 256);
  EXPECT_EQ(refused(kLlama31_8B, R"({"hidden_size": 4095})"),
            "head_dim is missing | a number, as hidden_size=4095 is no multiple of num_attention_heads=32");
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
  EXPECT_EQ(refused(kQwen3_06B, R"({"architectures": "Qwen3ForCausalLM"})"),
            "architectures is \"Qwen3ForCausalLM\" | a list with Qwen3ForCausalLM");
}

TEST(Config, KeysItDoesNotKnow) {
  for (const char* off : {"null", "false", "{}", "[]", "\"\""})
    EXPECT_EQ(refused(kLlama31_8B, ("{\"some_feature\": " + std::string(off) + "}").c_str()), "taken") << off;
  for (const char* on : {"true", "0", "0.0", "1", "\"on\"", "[0]", "{\"a\":null}"})
    EXPECT_EQ(refused(kLlama31_8B, ("{\"some_feature\": " + std::string(on) + "}").c_str()),
              "some_feature is " + std::string(on) + kUnknown);
  EXPECT_EQ(refused(kLlama31_8B, R"({"is_decoder": true, "output_attentions": true, "id2label": {"0": "LABEL_0"},
    "pad_token_id": 0, "_name_or_path": "x", "unsloth_version": "1", "top_k": 50})"),
            "taken");
  EXPECT_EQ(refused(kLlama31_8B, R"({"is_encoder_decoder": true})"), "is_encoder_decoder is true" + kUnknown);
  EXPECT_EQ(refused(kLlama31_8B, R"({"num_experts": 8})"), "num_experts is 8" + kUnknown);
  EXPECT_EQ(refused(kLlama31_8B, ("{\"long\": \"" + std::string(500, 'x') + "\"}").c_str()).substr(0, 133),
            "long is \"" + std::string(119, 'x') + "... |")
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
  EXPECT_EQ(refusal([&] { (void)read_config(f.path); }, f.at("generation_config.json")),
            "eos_token_id is 200000 | a whole number from 0 to 151935");
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

TEST(Fuzz, ConfigsGiveErrorsAlone) {
  std::mt19937_64 random(2);
  int taken = 0;
  for (int round = 0; round < fuzz_rounds(); ++round) {
    const std::string text = std::string(8, ' ') + (round % 2 ? kLlama31_8B : edited(kQwen3_8B, kFp8));
    try {
      (void)parse_config(mutated(text, text.size(), random), "config.json");
      ++taken;
    } catch (const Error& e) { ASSERT_EQ(e.kind(), ErrorKind::value) << e.what(); }
  }
  EXPECT_GT(taken, fuzz_rounds() / 200);
}

}  // namespace
}  // namespace engine
