// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "config.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>

#include "json_file.h"
#include "quern/base/error.h"

namespace engine {

using Json = nlohmann::json;
using quern::Error, quern::ErrorKind;
using quern::rope::FrequencyKind;

constexpr i64 kMostSize = (1ll << 31) - 1;
constexpr i64 kMostLayers = 10000;

[[noreturn]] static void fail(const std::string& where, const std::string& key, const std::string& got, const std::string& expected) {
  throw Error(ErrorKind::value, where, key, got, expected);
}

/// A value as an error shows it: ASCII, cut where it is long.
static std::string shown(const Json& value) {
  const std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() <= 120 ? text : text.substr(0, 120) + "...";
}

namespace {

/// The keys of one object. Those that were asked for are known; refuse_others() takes of all others only what is off.
class Keys {
 public:
  Keys(const Json& object, std::string where, std::string prefix = "")
      : object_(object), where_(std::move(where)), prefix_(std::move(prefix)) {
    if (!object.is_object()) throw Error(ErrorKind::value, where_, prefix_, "is " + shown(object), "an object");
    if (!prefix_.empty()) prefix_ += ".";
  }

  [[noreturn]] void refuse(const std::string& key, const std::string& got, const std::string& expected) const {
    fail(where_, prefix_ + key, got, expected);
  }
  [[noreturn]] void refuse_value(const std::string& key, const Json& value, const std::string& expected) const {
    refuse(key, "is " + shown(value), expected);
  }

  /// Null where the object has no such key; may point to JSON's null.
  const Json* given(const std::string& key) {
    known_.insert(key);
    const auto found = object_.find(key);
    return found == object_.end() ? nullptr : &*found;
  }
  /// Null where the object has no such key, or null.
  const Json* find(const std::string& key) {
    const Json* const value = given(key);
    return value && !value->is_null() ? value : nullptr;
  }
  void know(std::initializer_list<const char*> keys) { known_.insert(keys.begin(), keys.end()); }

  /// `least` is 0 or more: numbers of more than 63 bits are read as negative ones.
  i64 as_whole(const std::string& key, const Json& value, i64 least, i64 most) const {
    if (!value.is_number_integer() || value.get<i64>() < least || value.get<i64>() > most)
      refuse_value(key, value, "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    return value.get<i64>();
  }
  i64 whole(const std::string& key, i64 least, i64 most) {
    const Json* const value = find(key);
    if (!value) refuse(key, "is missing", "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    return as_whole(key, *value, least, most);
  }
  i64 whole(const std::string& key, i64 least, i64 most, i64 otherwise) {
    const Json* const value = find(key);
    return value ? as_whole(key, *value, least, most) : otherwise;
  }

  std::optional<double> number(const std::string& key) {
    const Json* const value = find(key);
    if (!value) return std::nullopt;
    if (!value->is_number() || !std::isfinite(value->get<double>())) refuse_value(key, *value, "a number");
    return value->get<double>();
  }
  double required_number(const std::string& key) {
    const std::optional<double> value = number(key);
    if (!value) refuse(key, "is missing", "a number");
    return *value;
  }
  std::vector<double> numbers(const std::string& key) {
    const Json* const list = find(key);
    if (!list) refuse(key, "is missing", "a list of numbers");
    std::vector<double> values;
    for (const Json& value : *list) {
      if (!list->is_array() || !value.is_number()) refuse_value(key, *list, "a list of numbers");
      values.push_back(value.get<double>());
    }
    return values;
  }
  bool flag(const std::string& key, bool otherwise) {
    const Json* const value = find(key);
    if (value && !value->is_boolean()) refuse_value(key, *value, "true or false");
    return value ? value->get<bool>() : otherwise;
  }
  /// Empty where there is none.
  std::string text(const std::string& key) {
    const Json* const value = find(key);
    if (value && !value->is_string()) refuse_value(key, *value, "a string");
    return value ? value->get<std::string>() : "";
  }
  /// The value must be the given one, or not be there.
  void must_be(const std::string& key, const Json& only) {
    const Json* const value = find(key);
    if (value && *value != only) refuse_value(key, *value, shown(only));
  }

  void refuse_others() const {
    for (const auto& [key, value] : object_.items()) {
      const bool off = value.is_null() || value == Json(false) || value == "" || ((value.is_object() || value.is_array()) && value.empty());
      if (!off && !known_.count(key)) refuse_value(key, value, "null, false or no such key: the engine does not know what it changes");
    }
  }

  const std::string& where() const { return where_; }

 private:
  const Json& object_;
  std::string where_, prefix_;
  std::set<std::string> known_;
};

void read_type(Keys& keys, ModelConfig& c) {
  static const std::map<std::string, std::string> known = {
      {"llama", "LlamaForCausalLM"}, {"mistral", "MistralForCausalLM"}, {"qwen2", "Qwen2ForCausalLM"}, {"qwen3", "Qwen3ForCausalLM"}};
  c.type = keys.text("model_type");
  const auto found = known.find(c.type);
  if (found == known.end())
    keys.refuse("model_type", c.type.empty() ? "is missing" : "is " + shown(c.type), "llama, mistral, qwen2 or qwen3");
  // A classifier has the same model_type, and with tied embeddings the same tensors but one.
  if (const Json* const classes = keys.find("architectures")) {
    if (!classes->is_array() || (!classes->empty() && std::find(classes->begin(), classes->end(), Json(found->second)) == classes->end()))
      keys.refuse_value("architectures", *classes, "a list with " + found->second);
  }
}

void read_sizes(Keys& keys, ModelConfig& c) {
  c.layers = keys.whole("num_hidden_layers", 1, kMostLayers);
  c.hidden = keys.whole("hidden_size", 1, kMostSize);
  c.intermediate = keys.whole("intermediate_size", 1, kMostSize);
  c.vocab = keys.whole("vocab_size", 1, kMostSize);
  c.max_positions = keys.whole("max_position_embeddings", 1, kMostSize);
  c.heads_q = keys.whole("num_attention_heads", 1, 65536);
  c.heads_kv = keys.whole("num_key_value_heads", 1, 65536, c.heads_q);
  if (c.heads_q % c.heads_kv)
    keys.refuse("num_key_value_heads", "is " + std::to_string(c.heads_kv), "a divisor of num_attention_heads=" + std::to_string(c.heads_q));
  c.head_dim = keys.whole("head_dim", 1, kMostSize, 0);
  if (c.head_dim == 0) {
    if (c.hidden % c.heads_q)
      keys.refuse(
          "head_dim", "is missing",
          "a number, as hidden_size=" + std::to_string(c.hidden) + " is no multiple of num_attention_heads=" + std::to_string(c.heads_q));
    c.head_dim = c.hidden / c.heads_q;
  }
  if (c.head_dim % 16 || c.head_dim > 256) keys.refuse("head_dim", "is " + std::to_string(c.head_dim), "a multiple of 16 up to 256");
}

void read_parts(Keys& keys, ModelConfig& c) {
  c.tied_embeddings = keys.flag("tie_word_embeddings", false);
  c.qk_norm = c.type == "qwen3";
  if (c.type == "llama" || c.type == "qwen3") c.qkv_bias = c.out_bias = keys.flag("attention_bias", false);
  if (c.type == "qwen2") {
    c.qkv_bias = true;  // whatever attention_bias says: the architecture does not read it
    keys.flag("attention_bias", true);
  }
  if (c.type == "llama") c.mlp_bias = keys.flag("mlp_bias", false);
  keys.must_be("hidden_act", "silu");
  keys.must_be("pretraining_tp", 1);
  const double eps = keys.number("rms_norm_eps").value_or(1e-6);
  if (!(eps >= 1e-30 && eps <= 1)) keys.refuse_value("rms_norm_eps", *keys.find("rms_norm_eps"), "a number from 1e-30 to 1");
  c.eps = float(eps);
  c.initializer_range = keys.number("initializer_range").value_or(0.02);
  if (!(c.initializer_range >= 0 && c.initializer_range <= 1))
    keys.refuse_value("initializer_range", *keys.find("initializer_range"), "a number from 0 to 1");
}

/// Which keys each layer's queries see.
void read_windows(Keys& keys, ModelConfig& c) {
  const bool qwen = c.type == "qwen2" || c.type == "qwen3", mistral = c.type == "mistral";
  i64 window = 0, first = 0;  // 0: no window; the first layer that has it
  if (qwen || mistral)
    window = keys.given("sliding_window") ? keys.whole("sliding_window", 1, kMostSize, 0) : 4096;  // transformers' default
  if (qwen) {
    first = keys.whole("max_window_layers", 0, kMostSize, 28);
    if (!keys.flag("use_sliding_window", false)) window = 0;
  }
  for (i64 i = 0; i < c.layers; ++i) c.windows.push_back(i >= first ? window : 0);

  const Json* const types = keys.find("layer_types");
  if (!types) return;
  if (!types->is_array() || i64(types->size()) != c.layers)
    keys.refuse_value("layer_types", *types, "a list of num_hidden_layers=" + std::to_string(c.layers) + " strings");
  for (i64 i = 0; i < c.layers; ++i) {
    const Json& type = (*types)[size_t(i)];
    const std::string got = "has " + shown(type) + " at layer " + std::to_string(i);
    if (type != "full_attention" && type != "sliding_attention") keys.refuse("layer_types", got, "full_attention or sliding_attention");
    const bool slides = type == "sliding_attention";
    if (slides && window == 0) keys.refuse("layer_types", got, "full_attention, as no sliding_window is in force");
    if (!slides && mistral && window > 0)
      keys.refuse("layer_types", got, "sliding_attention, as mistral's sliding_window is of all layers");
    c.windows[size_t(i)] = slides ? window : 0;
  }
}

/// YaRN's attention factor where both mscales are given. FrequencyOptions has these too, but as DeepSeek's model means them: they would
/// change the scale of the softmax as well.
double ratio_of_mscales(double factor, double mscale, double all_dim) {
  const auto of = [&](double m) { return 0.1 * m * std::log(std::max(factor, 1.0)) + 1; };
  return of(mscale) / of(all_dim);
}

/// `root` is the whole config: Phi's way to state the original context is to have it there, and it wins.
void read_stretching(Keys& keys, Keys& root, const std::string& kind, ModelConfig& c) {
  quern::rope::FrequencyOptions& o = c.rope_options;
  if (kind == "linear") {
    c.rope = FrequencyKind::linear;
    o.factor = keys.required_number("factor");
    return;
  }
  const double inner = keys.number("original_max_position_embeddings").value_or(double(c.max_positions));
  o.original_max = root.number("original_max_position_embeddings").value_or(inner);
  if (!(o.original_max > 1)) keys.refuse("original_max_position_embeddings", "is " + shown(o.original_max), "more than 1");
  if (kind == "llama3") {
    c.rope = FrequencyKind::llama3;
    o.factor = keys.required_number("factor");
    o.low_freq_factor = keys.required_number("low_freq_factor");
    o.high_freq_factor = keys.required_number("high_freq_factor");
    return;
  }
  const std::optional<double> factor = keys.number("factor");
  o.factor = factor.value_or(std::max(1.0, double(c.max_positions) / o.original_max));
  if (const std::optional<double> scale = keys.number("attention_factor")) {
    if (!(*scale > 0)) keys.refuse_value("attention_factor", *keys.find("attention_factor"), "a number above 0");
    c.attention_factor = *scale;
  }
  if (kind == "yarn") {
    c.rope = FrequencyKind::yarn;
    const auto or_default = [&](const char* key, double otherwise) {  // 0 stands for it, too
      const double value = keys.number(key).value_or(0);
      return value == 0 ? otherwise : value;
    };
    o.beta_fast = or_default("beta_fast", 32);
    o.beta_slow = or_default("beta_slow", 1);
    o.truncate = keys.flag("truncate", true);
    const double mscale = or_default("mscale", 0), all_dim = or_default("mscale_all_dim", 0);
    if (!(mscale >= 0)) keys.refuse_value("mscale", *keys.find("mscale"), "a number from 0");
    if (!(all_dim >= 0)) keys.refuse_value("mscale_all_dim", *keys.find("mscale_all_dim"), "a number from 0");
    if (c.attention_factor == 0 && mscale > 0 && all_dim > 0) c.attention_factor = ratio_of_mscales(o.factor, mscale, all_dim);
    keys.know({"finetuned"});  // of early files; says how the model came about
    return;
  }
  c.rope = FrequencyKind::longrope;
  const size_t pairs = size_t(c.head_dim / 2);
  std::vector<double> lists[2] = {keys.numbers("short_factor"), keys.numbers("long_factor")};
  for (const bool is_long : {false, true})
    if (lists[is_long].size() != pairs)
      keys.refuse(is_long ? "long_factor" : "short_factor", "has " + std::to_string(lists[is_long].size()) + " numbers",
                  "head_dim / 2 = " + std::to_string(pairs));
  o.divisors = lists[double(c.max_positions) > o.original_max];
}

/// rope_theta, and rope_scaling or what transformers 5 calls rope_parameters.
void read_rope(Keys& keys, ModelConfig& c) {
  static const Json none = Json::object();
  c.rope_options.rotary_dim = i32(c.head_dim);
  const auto given = [&](const char* key) {
    const Json* const value = keys.find(key);
    return value && *value != Json(false) && !(value->is_object() && value->empty()) ? value : nullptr;
  };
  const Json *const scaling = given("rope_scaling"), *const parameters = given("rope_parameters");
  if (scaling && parameters && *scaling != *parameters)
    keys.refuse_value("rope_scaling", *scaling, "the same as rope_parameters, or only one of them");
  const std::string name = parameters ? "rope_parameters" : "rope_scaling";
  Keys inner(parameters ? *parameters : scaling ? *scaling : none, keys.where(), name);

  for (Keys* of : {&keys, &inner}) of->must_be("partial_rotary_factor", 1.0);
  const std::optional<double> outer_theta = keys.number("rope_theta"), inner_theta = inner.number("rope_theta");
  if (outer_theta && inner_theta && *outer_theta != *inner_theta)
    keys.refuse("rope_theta", "is " + shown(*outer_theta), "as in " + name + ": " + shown(*inner_theta));
  c.rope_options.theta = inner_theta.value_or(outer_theta.value_or(10000));

  const std::string newer = inner.text("rope_type"), older = inner.text("type");
  if (!newer.empty() && !older.empty() && newer != older) inner.refuse("type", "is " + shown(older), "as rope_type: " + shown(newer));
  const std::string kind = !newer.empty() ? newer : !older.empty() ? older : "default";
  const char* const key = newer.empty() ? "type" : "rope_type";
  if (kind != "default" && kind != "linear" && kind != "llama3" && kind != "yarn" && kind != "longrope")
    inner.refuse(key, "is " + shown(kind), "default, linear, llama3, yarn or longrope: others are not supported");
  if (kind != "default") read_stretching(inner, keys, kind, c);
  inner.refuse_others();

  try {
    (void)quern::rope::frequencies(c.rope, c.rope_options);  // has all ranges
  } catch (const Error& e) {
    const std::map<std::string, std::string> keys_of = {
        {"theta", "rope_theta"},
        {"original_max", "original_max_position_embeddings"},
        {"divisors", double(c.max_positions) > c.rope_options.original_max ? "long_factor" : "short_factor"}};
    const auto found = keys_of.find(e.argument());
    const std::string argument = found == keys_of.end() ? e.argument() : found->second;
    if (argument == "rope_theta" && !inner_theta) keys.refuse(argument, e.got(), e.expected());
    inner.refuse(argument, e.got(), e.expected());
  }
}

void read_dtype(Keys& keys, ModelConfig& c) {
  const std::string newer = keys.text("dtype"), older = keys.text("torch_dtype");
  if (!newer.empty() && !older.empty() && newer != older) keys.refuse("torch_dtype", "is " + shown(older), "as dtype: " + shown(newer));
  const std::string name = newer.empty() ? older : newer;
  if (!name.empty() && name != "bfloat16" && name != "float16" && name != "float32")
    keys.refuse(newer.empty() ? "torch_dtype" : "dtype", "is " + shown(name), "bfloat16, float16 or float32");
  c.dtype = name == "float16" ? DType::f16 : DType::bf16;
}

/// FP8 as Qwen3's and DeepSeek's checkpoints have it.
void read_quantisation(Keys& keys, ModelConfig& c) {
  const Json* const value = keys.find("quantization_config");
  if (!value || (value->is_object() && value->empty())) return;
  Keys inner(*value, keys.where(), "quantization_config");
  for (const char* key : {"quant_method", "weight_block_size"})
    if (!inner.find(key)) inner.refuse(key, "is missing", std::string(key) == "quant_method" ? "\"fp8\"" : "[128,128]");
  inner.must_be("quant_method", "fp8");
  inner.must_be("weight_block_size", {128, 128});
  inner.must_be("fmt", "e4m3");
  inner.must_be("activation_scheme", "dynamic");
  // Lists of what is not quantised; only such modules as never are. "model.norm", "model.layers.0.self_attn.q_norm".
  for (const char* key : {"modules_to_not_convert", "ignored_layers"}) {
    const Json* const list = inner.find(key);
    if (!list) continue;
    if (!list->is_array()) inner.refuse_value(key, *list, "a list of strings");
    for (const Json& module : *list) {
      std::string name = module.is_string() ? module.get<std::string>() : "";
      if (name.ends_with(".weight")) name.resize(name.size() - 7);
      name = name.substr(name.rfind('.') + 1);
      static const std::set<std::string> never = {"lm_head", "embed_tokens", "norm", "input_layernorm", "post_attention_layernorm",
                                                  "q_norm",  "k_norm"};
      if (!never.count(name)) inner.refuse(key, "has " + shown(module), "only lm_head, embed_tokens and norms: all other weights are FP8");
    }
  }
  inner.refuse_others();
  if (c.dtype == DType::f16)
    keys.refuse(keys.find("dtype") ? "dtype" : "torch_dtype", "is \"float16\"",
                "bfloat16 beside quantization_config: products of FP8 give no f16");
  c.fp8 = true;
}

/// Nothing where there is no eos_token_id.
std::optional<std::vector<i64>> read_stop_tokens(Keys& keys, i64 vocab) {
  const Json* const value = keys.find("eos_token_id");
  if (!value) return std::nullopt;
  std::vector<i64> tokens;
  for (const Json& one : value->is_array() ? *value : Json::array({*value})) {
    const i64 token = keys.as_whole("eos_token_id", one, 0, vocab - 1);
    if (std::find(tokens.begin(), tokens.end(), token) == tokens.end()) tokens.push_back(token);
  }
  return tokens;
}

/// Keys that do not change what a given checkpoint computes for given tokens.
void know_the_rest(Keys& keys) {
  // Who wrote the file, and with what.
  keys.know(
      {"transformers_version", "_name_or_path", "name_or_path", "_commit_hash", "tokenizer_class", "unsloth_version", "unsloth_fixed"});
  // Tokens of a tokeniser, which puts them into prompts itself.
  keys.know({"bos_token_id", "pad_token_id", "unk_token_id", "sep_token_id", "cls_token_id", "mask_token_id", "decoder_start_token_id"});
  // Training.
  keys.know({"attention_dropout", "hidden_dropout", "embd_pdrop", "resid_pdrop", "attn_pdrop", "gradient_checkpointing", "use_bfloat16"});
  // What a Python object returns, how it computes the same, and what only other heads or an encoder have.
  keys.know({"use_cache",
             "output_attentions",
             "output_hidden_states",
             "output_scores",
             "return_dict",
             "return_dict_in_generate",
             "torchscript",
             "is_decoder",
             "chunk_size_feed_forward",
             "_attn_implementation",
             "attn_implementation",
             "_attn_implementation_autoset",
             "tf_legacy_loss",
             "id2label",
             "label2id",
             "num_labels",
             "problem_type",
             "finetuning_task",
             "task_specific_params",
             "prefix",
             "max_sequence_length"});
  // Defaults of sampling, which old files have here. A request states its own.
  keys.know({"do_sample", "temperature", "top_k", "top_p", "typical_p", "repetition_penalty", "length_penalty", "diversity_penalty",
             "no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "num_beams", "num_beam_groups", "num_return_sequences",
             "early_stopping", "max_length", "min_length", "max_new_tokens", "min_new_tokens", "remove_invalid_values"});
}

ModelConfig config_of(const Json& json, const std::string& where) {
  Keys keys(json, where);
  ModelConfig c;
  read_type(keys, c);
  read_sizes(keys, c);
  read_parts(keys, c);
  read_windows(keys, c);
  read_rope(keys, c);
  read_dtype(keys, c);
  read_quantisation(keys, c);
  c.stop_tokens = read_stop_tokens(keys, c.vocab).value_or(std::vector<i64>());
  know_the_rest(keys);
  keys.refuse_others();
  return c;
}

}  // namespace

ModelConfig parse_config(const std::string& text, const std::string& where) { return config_of(parse_json(text, where), where); }

ModelConfig read_config(const std::string& folder) {
  const std::string path = folder + "/config.json", generation = folder + "/generation_config.json";
  ModelConfig c = config_of(read_json(path), path);
  struct stat status;
  if (::lstat(generation.c_str(), &status) == 0) {  // also a link that leads nowhere: its tokens would be missed
    const Json json = read_json(generation);
    Keys keys(json, generation);
    if (const auto tokens = read_stop_tokens(keys, c.vocab)) c.stop_tokens = *tokens;
  }
  return c;
}

}  // namespace engine
