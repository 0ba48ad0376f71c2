// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Tiny models of two layers on the emulated device, against the reference in double.
#include "engine.h"

#include <gmock/gmock.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "check.h"
#include "quern/base/error.h"
#include "quern/base/host_dtype.h"
#include "write_checkpoint.h"

namespace engine {
namespace {

using ::testing::AllOf, ::testing::HasSubstr;

std::string config_text(const std::string& name) {
  const std::string folder = __FILE__;
  std::ifstream file(folder.substr(0, folder.rfind('/')) + "/configs/" + name + ".json");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

template <class F> std::string error_of(F f) {
  try {
    f();
  } catch (const quern::Error& e) { return e.what(); }
  return "no error";
}

/// A model with random weights, made once a test.
struct Tiny {
  explicit Tiny(const std::string& name, const std::function<void(ModelConfig&)>& change = {})
      : config(parse_config(config_text(name), name)), device(quern::device_from_name("emu")), memory(device) {
    if (change) change(config);
    weights = random_weights(config, 7, memory);
  }
  ModelConfig config;
  quern::Device& device;
  Memory memory;
  Weights weights;
};

std::vector<i32> prompt(i64 length, u64 salt, const ModelConfig& config) {
  std::vector<i32> ids;
  for (i64 i = 0; i < length; ++i) ids.push_back(i32((u64(i) * 7919 + salt * 104729 + 13) % u64(config.vocab)));
  return ids;
}

EngineOptions options_for(i64 length) {
  EngineOptions options;
  options.max_length = length, options.max_batch = 4, options.ignore_stop = true;
  return options;
}

/// Answers of all requests; checks each step's logits where there is a check.
std::vector<std::vector<i32>> answers(Tiny& tiny, const EngineOptions& options, const std::vector<Request>& requests,
                                      LogitsCheck* check = nullptr, i64* graphs = nullptr) {
  Engine engine(tiny.config, tiny.weights, options, tiny.device);
  for (const Request& r : requests) engine.add(r);
  while (engine.step()) {
    if (check) check->add(engine, requests);
    if (graphs) *graphs += engine.last_step().graph;
    EXPECT_LE(engine.last_step().tokens, options.step_tokens ? options.step_tokens : 64);
  }
  std::vector<std::vector<i32>> all;
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(engine.answer(i64(i)).finish, Finish::length);
    EXPECT_EQ(i64(engine.answer(i64(i)).tokens.size()), requests[i].max_new);
    all.push_back(engine.answer(i64(i)).tokens);
  }
  return all;
}

/// The tokens of a greedy loop in double. `margin`: least distance of the two largest logits, over the norm of all.
std::vector<i32> greedy(Tiny& tiny, const Request& request, double& margin) {
  const Reference reference(tiny.config, tiny.weights, tiny.device);
  Reference::Sequence sequence;
  std::vector<i32> tokens, next = request.prompt;
  for (i64 i = 0; i < request.max_new; ++i) {
    double scale = 0;
    const std::vector<double> logits = reference.advance(sequence, next, Reference::Rounding::exact, scale);
    const i32 token = i32(std::max_element(logits.begin(), logits.end()) - logits.begin());
    double squares = 0, second = -1e300;
    for (i32 t = 0; t < i32(logits.size()); ++t) {
      squares += logits[size_t(t)] * logits[size_t(t)];
      if (t != token) second = std::max(second, logits[size_t(t)]);
    }
    margin = std::min(margin, (logits[size_t(token)] - second) / std::sqrt(squares));
    tokens.push_back(token);
    next = {token};
  }
  return tokens;
}

/// A prompt whose greedy tokens no rounding can change.
Request sure_request(Tiny& tiny, i64 length, i64 max_new, std::vector<i32>& expected) {
  for (u64 salt = 0; salt < 400; ++salt) {
    Request request{prompt(length, salt, tiny.config), max_new};
    double margin = 1e300;
    expected = greedy(tiny, request, margin);
    if (margin > 6e-3) return request;
  }
  ADD_FAILURE() << "every prompt has two logits that are nearly equal";
  return {};
}

struct Named {
  const char* config;
  bool fp8;
};
class TinyModels : public testing::TestWithParam<Named> {};

TEST_P(TinyModels, have_the_logits_of_the_model_in_double) {
  Tiny tiny(GetParam().config, [](ModelConfig& c) { c.fp8 = GetParam().fp8; });
  LogitsCheck check(tiny.config, tiny.weights, tiny.device);
  i64 graphs = 0;
  // 70 tokens are more than a step's 64: two chunks, the second beside tokens that are decoded
  answers(tiny, options_for(96), {{prompt(70, 1, tiny.config), 5}, {prompt(1, 2, tiny.config), 6}, {prompt(23, 3, tiny.config), 4}}, &check,
          &graphs);
  EXPECT_TRUE(check.right()) << check.worst() << " > " << check.bound();
  EXPECT_GT(check.worst(), check.bound() / 6) << "the bound is too wide";
  EXPECT_EQ(check.rows(), 15);
  EXPECT_GT(graphs, 2);
  std::printf("%s%s: error %.2e, bound %.2e\n", GetParam().config, GetParam().fp8 ? " fp8" : "", check.worst(), check.bound());
}

/// Not of FP8: of activations that are rounded so far no logit is sure.
class GreedyModels : public testing::TestWithParam<const char*> {};
TEST_P(GreedyModels, draw_the_tokens_of_a_greedy_loop_in_double) {
  Tiny tiny(GetParam());
  std::vector<i32> expected;
  const Request request = sure_request(tiny, 20, 6, expected);
  EXPECT_EQ(answers(tiny, options_for(64), {request})[0], expected);
}

INSTANTIATE_TEST_SUITE_P(Random, GreedyModels, testing::Values("tiny-llama", "tiny-qwen2", "tiny-qwen3"), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});
INSTANTIATE_TEST_SUITE_P(Random, TinyModels,
                         testing::Values(Named{"tiny-llama", false}, Named{"tiny-qwen2", false}, Named{"tiny-qwen3", false},
                                         Named{"tiny-llama", true}, Named{"tiny-qwen2", true}),
                         [](const auto& info) {
                           std::string name = info.param.config;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name + (info.param.fp8 ? "_fp8" : "");
                         });

TEST(engine, a_weight_that_the_reference_does_not_have_is_seen) {
  Tiny tiny("tiny-llama");
  LogitsCheck check(tiny.config, tiny.weights, tiny.device);
  auto* weights = static_cast<quern::u16*>(tiny.weights.layers[1].down.parts[0].weight.data);
  for (i64 i = 0; i < tiny.config.hidden * tiny.config.intermediate; i += 16) quern::store_value(weights + i, DType::bf16, 0);
  answers(tiny, options_for(32), {{prompt(9, 1, tiny.config), 2}}, &check);
  EXPECT_FALSE(check.right()) << check.worst();
}

/// The engine computes one model, the check another: what a fault of the engine would look like.
void expect_seen(const char* name, const char* what, const std::function<void(ModelConfig&)>& change) {
  Tiny tiny(name);
  ModelConfig other = tiny.config;
  change(other);
  LogitsCheck check(other, tiny.weights, tiny.device);
  answers(tiny, options_for(64), {{prompt(40, 1, tiny.config), 3}}, &check);
  EXPECT_FALSE(check.right()) << what << ": " << check.worst() << ", bound " << check.bound();
}
TEST(engine, the_check_sees_wrong_models) {
  expect_seen("tiny-qwen2", "a window of one key more", [](ModelConfig& c) { c.windows[1] = 9; });
  expect_seen("tiny-qwen2", "the window of another layer", [](ModelConfig& c) { std::swap(c.windows[0], c.windows[1]); });
  expect_seen("tiny-llama", "frequencies that are not stretched", [](ModelConfig& c) { c.rope = quern::rope::FrequencyKind::plain; });
  expect_seen("tiny-llama", "another eps", [](ModelConfig& c) { c.eps = 0.05f; });
  expect_seen("tiny-llama", "cos and sin multiplied", [](ModelConfig& c) { c.attention_factor = 1.2; });
  expect_seen("tiny-qwen3", "heads that are not normalised", [](ModelConfig& c) { c.qk_norm = false; });
}

TEST(engine, requests_in_a_batch_answer_as_each_alone) {
  Tiny tiny("tiny-qwen2");
  EngineOptions options = options_for(64);
  options.batch_invariant = true;
  std::vector<Request> requests = {{prompt(31, 4, tiny.config), 8}, {prompt(2, 5, tiny.config), 8}, {prompt(11, 6, tiny.config), 8}};
  for (size_t i = 0; i < requests.size(); ++i)
    requests[i].temperature = i == 1 ? 0.f : 0.9f, requests[i].seed = i64(100 + i), requests[i].top_k = 50, requests[i].top_p = 0.95f;
  const std::vector<std::vector<i32>> together = answers(tiny, options, requests);
  for (size_t i = 0; i < requests.size(); ++i) EXPECT_EQ(answers(tiny, options, {requests[i]})[0], together[i]) << i;
  options.graphs = false;
  EXPECT_EQ(answers(tiny, options, requests), together);
}

/// Logits of each answer of the first request, as bits.
std::vector<std::vector<float>> logits_of_first(Tiny& tiny, const EngineOptions& options, const std::vector<Request>& requests, i64& cut) {
  Engine engine(tiny.config, tiny.weights, options, tiny.device);
  for (const Request& r : requests) engine.add(r);
  std::vector<std::vector<float>> all;
  while (engine.step())
    for (size_t i = 0; i < engine.last_step().rows.size(); ++i) {
      const StepReport::Row& row = engine.last_step().rows[i];
      if (row.request != 0) continue;
      cut += !row.sampled;
      if (row.sampled) all.push_back(engine.logits(i64(i)));
    }
  return all;
}

TEST(engine, prompts_that_are_cut_have_the_same_bits_in_any_batch) {
  for (const char* name : {"tiny-llama", "tiny-qwen3"}) {
    Tiny tiny(name);
    EngineOptions options = options_for(128);
    options.batch_invariant = true;
    i64 cut = 0, cut_in_batch = 0;
    const Request request{prompt(70, 1, tiny.config), 4};  // parts of 32, 32 and 6
    const std::vector<std::vector<float>> alone = logits_of_first(tiny, options, {request}, cut);
    for (const i64 beside : {1, 15, 37}) {
      const std::vector<std::vector<float>> together =
          logits_of_first(tiny, options, {request, {prompt(beside, 2, tiny.config), 6}, {prompt(50, 3, tiny.config), 2}}, cut_in_batch);
      ASSERT_EQ(together.size(), alone.size());
      for (size_t i = 0; i < alone.size(); ++i)
        EXPECT_EQ(std::memcmp(together[i].data(), alone[i].data(), alone[i].size() * sizeof(float)), 0)
            << name << " beside " << beside << " answer " << i;
    }
    EXPECT_EQ(cut, 2);
    EXPECT_EQ(cut_in_batch, 6);
  }
}

TEST(engine, a_callback_may_add_requests_and_throw) {
  Tiny tiny("tiny-llama");
  EngineOptions options = options_for(32);
  options.batch_invariant = true;
  const Request request{prompt(5, 1, tiny.config), 3};
  const std::vector<i32> expected = answers(tiny, options, {request})[0];
  Engine engine(tiny.config, tiny.weights, options, tiny.device);
  engine.add(request);
  i64 added = 1, thrown = 0;
  const auto on_token = [&](i64 number, i32) {
    if (added < 40) engine.add(request), ++added;
    if (number % 3 == 0) ++thrown, throw std::runtime_error("of the callback");
  };
  for (bool more = true; more;) try {
      more = engine.step(on_token);
    } catch (const std::runtime_error&) {}
  EXPECT_GT(thrown, 10);
  for (i64 i = 0; i < added; ++i) EXPECT_EQ(engine.answer(i).tokens, expected) << i;
}

TEST(engine, the_check_sees_wrong_logits_of_deep_fp8_models_and_wrong_tokens) {
  Tiny deep("tiny-llama", [](ModelConfig& c) { c.fp8 = true, c.layers = 16, c.windows.assign(16, 0); });
  LogitsCheck check(deep.config, deep.weights, deep.device);
  std::memset(deep.weights.lm_head.data, 0, size_t(deep.weights.lm_head.numel() * 2));
  answers(deep, options_for(32), {{prompt(3, 1, deep.config), 2}}, &check);
  EXPECT_FALSE(check.right()) << check.worst() << ", bound " << check.bound();

  Tiny tiny("tiny-llama");
  for (const auto& [seed, top_k, wrong] : {std::tuple{5, 0, false}, {6, 0, true}, {5, 1, true}}) {
    LogitsCheck tokens(tiny.config, tiny.weights, tiny.device);
    Request drawn{prompt(3, 1, tiny.config), 8}, told = drawn;
    drawn.temperature = told.temperature = 2, drawn.seed = 5, told.seed = seed, told.top_k = top_k;
    Engine engine(tiny.config, tiny.weights, options_for(32), tiny.device);
    engine.add(drawn);
    while (engine.step()) tokens.add(engine, {told});
    EXPECT_EQ(tokens.wrong_tokens() > 0, wrong) << seed << " " << top_k;
    EXPECT_EQ(tokens.right(), !wrong);
  }
}

TEST(engine, seeds_reproduce_and_differ) {
  Tiny tiny("tiny-llama");
  Request request{prompt(5, 1, tiny.config), 12};
  request.temperature = 1.5f, request.seed = 3;
  const std::vector<i32> first = answers(tiny, options_for(32), {request})[0];
  EXPECT_EQ(answers(tiny, options_for(32), {request})[0], first);
  request.seed = 4;
  EXPECT_NE(answers(tiny, options_for(32), {request})[0], first);
}

TEST(engine, a_prompt_in_chunks_answers_as_in_one) {
  Tiny tiny("tiny-qwen3");
  std::vector<i32> expected;
  const Request request = sure_request(tiny, 40, 4, expected);
  for (const i64 chunk : {1, 7, 64}) {
    EngineOptions options = options_for(64);
    options.step_tokens = chunk;
    EXPECT_EQ(answers(tiny, options, {request})[0], expected) << chunk;
  }
}

TEST(engine, requests_wait_for_pages) {
  Tiny tiny("tiny-llama");
  const std::vector<Request> requests = {{prompt(20, 1, tiny.config), 6}, {prompt(18, 2, tiny.config), 6}, {prompt(3, 3, tiny.config), 6}};
  EngineOptions options = options_for(32);
  options.batch_invariant = true;
  const std::vector<std::vector<i32>> expected = answers(tiny, options, requests);
  const i64 page = tiny.config.layers * 2 * options.page_size * tiny.config.heads_kv * tiny.config.head_dim * 2;
  options.kv_bytes = 3 * page;  // the first two want two pages each, the third one
  EXPECT_EQ(answers(tiny, options, requests), expected);
  Engine engine(tiny.config, tiny.weights, options, tiny.device);
  for (const Request& r : requests) engine.add(r);
  ASSERT_TRUE(engine.step());
  EXPECT_EQ(engine.last_step().rows.size(), 1u) << "two requests have three pages";
}

TEST(engine, a_stop_token_ends_an_answer) {
  Tiny tiny("tiny-llama");
  const Request request{prompt(9, 1, tiny.config), 6};
  const std::vector<i32> all = answers(tiny, options_for(32), {request})[0];
  tiny.config.stop_tokens = {-5, all[2]};
  EngineOptions options = options_for(32);
  options.ignore_stop = false;
  Engine engine(tiny.config, tiny.weights, options, tiny.device);
  engine.add(request);
  while (engine.step()) continue;
  const size_t place = size_t(std::find(all.begin(), all.end(), all[2]) - all.begin());
  EXPECT_EQ(engine.answer(0).finish, Finish::stop);
  EXPECT_EQ(engine.answer(0).tokens, std::vector<i32>(all.begin(), all.begin() + i64(place) + 1));
}

TEST(engine, a_nan_among_the_weights_ends_an_answer) {
  Tiny tiny("tiny-llama");
  quern::store_value(tiny.weights.last_norm.data, DType::bf16, std::nan(""));
  Engine engine(tiny.config, tiny.weights, options_for(32), tiny.device);
  engine.add({prompt(3, 1, tiny.config), 4});
  while (engine.step()) continue;
  EXPECT_EQ(engine.answer(0).finish, Finish::invalid_logits);
  EXPECT_TRUE(engine.answer(0).tokens.empty());
}

/// The tensors of a model by their names, on the host, with numbers of their own.
struct Files {
  explicit Files(const ModelConfig& config, DType scales = DType::f32) {
    quern::Device& device = quern::device_from_name("emu");
    Memory memory(device);
    make_weights(config, memory, [&](const std::string& name, const TensorView& stored) {
      TensorView view = stored;
      if (name.ends_with("_scale_inv")) view.dtype = scales;
      std::vector<u8>& bytes = data[name];
      bytes.resize(size_t(view.numel() * quern::size_of(view.dtype)));
      const bool norm = name.ends_with("norm.weight");
      for (i64 i = 0; i < view.numel(); ++i) {
        const double x = std::sin(double(i) * 0.7 + double(name.size()) * 1.3 + double(data.size()));
        quern::store_value(bytes.data() + i * quern::size_of(view.dtype), view.dtype,
                           norm                                                                 ? 1 + 0.1 * x
                           : stored.dtype == DType::e4m3                                        ? 100 * x
                           : view.dtype == scales && config.fp8 && name.ends_with("_scale_inv") ? 0.001 + 0.0002 * x
                                                                                                : 0.1 * x);
      }
      view.data = bytes.data(), view.device = {};
      tensors[name] = view;
    });
  }
  std::map<std::string, std::vector<u8>> data;
  std::map<std::string, TensorView> tensors;
};

struct Folder {
  Folder() {
    path = testing::TempDir() + "quern-engine." + std::to_string(::getpid());
    std::filesystem::create_directories(path);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string path;
};

TEST(checkpoints, give_the_model_that_they_hold) {
  for (const bool fp8 : {false, true}) {
    ModelConfig config = parse_config(config_text("tiny-qwen2"), "tiny-qwen2");
    config.fp8 = fp8;
    Folder folder;
    Files files(config, fp8 ? DType::bf16 : DType::f32);  // some FP8 checkpoints have scales in bf16
    write_safetensors(folder.path + "/model.safetensors", files.tensors);
    Memory memory(quern::device_from_name("emu"));
    Checkpoint checkpoint(folder.path);
    const Weights weights = load_weights(config, checkpoint, memory);
    const Linear& qkv = weights.layers[1].qkv;
    ASSERT_EQ(qkv.parts.size(), fp8 ? 3u : 1u) << "heads of 32: no part ends with a block of 128";
    for (i64 row = 0; row < qkv.rows; ++row)
      for (i64 c = 0; c < qkv.k; ++c) {
        const LinearPart* part = &qkv.parts[0];
        for (const LinearPart& p : qkv.parts)
          if (p.first_row <= row) part = &p;
        const char* name = row < 96 ? "q_proj" : row < 128 ? "k_proj" : "v_proj";
        const i64 first = row < 96 ? 0 : row < 128 ? 96 : 128, size = quern::size_of(part->weight.dtype);
        const std::vector<u8>& expected = files.data["model.layers.1.self_attn." + std::string(name) + ".weight"];
        ASSERT_EQ(std::memcmp(static_cast<u8*>(part->weight.data) + ((row - part->first_row) * qkv.k + c) * size,
                              expected.data() + ((row - first) * qkv.k + c) * size, size_t(size)),
                  0)
            << row << ", " << c;
      }
    LogitsCheck check(config, weights, memory.device());
    Tiny tiny("tiny-qwen2", [&](ModelConfig& c) { c.fp8 = fp8; });
    tiny.weights = weights;
    answers(tiny, options_for(32), {{prompt(9, 1, config), 3}}, &check);
    EXPECT_TRUE(check.right()) << check.worst();
  }
}

TEST(checkpoints, that_do_not_fit_the_model_are_refused) {
  const ModelConfig config = parse_config(config_text("tiny-llama"), "tiny-llama");
  const auto load = [&](const std::function<void(Files&)>& change, bool cut = false) {
    Folder folder;
    Files files(config);
    change(files);
    const std::string path = folder.path + "/model.safetensors";
    write_safetensors(path, files.tensors);
    if (cut) std::filesystem::resize_file(path, std::filesystem::file_size(path) - 2);
    Memory memory(quern::device_from_name("emu"));
    return error_of([&] {
      Checkpoint checkpoint(folder.path);
      load_weights(config, checkpoint, memory);
    });
  };
  const std::string up = "model.layers.1.mlp.up_proj.weight";
  EXPECT_EQ(load([](Files&) {}), "no error");
  EXPECT_THAT(load([&](Files& f) { f.tensors.erase(up); }), HasSubstr(up));
  EXPECT_THAT(load([&](Files& f) { f.tensors[up].shape[0] -= 1; }), AllOf(HasSubstr(up), HasSubstr("[255, 128]"), HasSubstr("[256, 128]")));
  EXPECT_THAT(load([&](Files& f) { f.tensors[up].dtype = DType::e4m3; }), HasSubstr("`" + up + "` is e4m3, expected bf16"));
  EXPECT_THAT(load([&](Files& f) { f.tensors["model.layers.0.self_attn.q_proj.bias"] = f.tensors["model.norm.weight"]; }),
              HasSubstr("q_proj.bias` is in the files, expected only tensors"));
  EXPECT_THAT(load([](Files&) {}, true), HasSubstr("model.safetensors"));
}

TEST(engine, requests_that_cannot_run_are_refused) {
  Tiny tiny("tiny-llama");
  EngineOptions options = options_for(64);
  options.kv_bytes = 3 * tiny.config.layers * 2 * options.page_size * tiny.config.heads_kv * tiny.config.head_dim * 2;
  Engine engine(tiny.config, tiny.weights, options, tiny.device);
  const auto add = [&](const std::function<void(Request&)>& change) {
    Request r{{1, 2, 3}, 4};
    change(r);
    return error_of([&] { engine.add(r); });
  };
  EXPECT_THAT(add([](Request& r) { r.prompt = {}; }), HasSubstr("`prompt` is empty"));
  EXPECT_THAT(add([](Request& r) { r.prompt = {3, 512}; }), HasSubstr("has token 512, expected 0 to 511"));
  EXPECT_THAT(add([](Request& r) { r.prompt = {-1}; }), HasSubstr("has token -1"));
  EXPECT_THAT(add([](Request& r) { r.max_new = 0; }), HasSubstr("`max_new` is 0"));
  EXPECT_THAT(add([](Request& r) { r.max_new = 62; }), HasSubstr("3 + 62 tokens, expected at most 64"));
  EXPECT_THAT(add([](Request& r) { r.max_new = 1ll << 62; }), HasSubstr("expected at most 64"));
  EXPECT_THAT(add([](Request& r) { r.max_new = 60; }), HasSubstr("need 4 pages of the KV cache, expected at most its 3"));
  EXPECT_EQ(add([](Request& r) { r.max_new = 46; }), "no error") << "of 49 tokens 48 are stored, which are three pages";
  EXPECT_THAT(add([](Request& r) { r.temperature = -1; }), HasSubstr("`temperature` is -1"));
  EXPECT_THAT(add([](Request& r) { r.temperature = std::nanf(""); }), HasSubstr("`temperature` is nan"));
  EXPECT_THAT(add([](Request& r) { r.top_p = 1.5f; }), HasSubstr("`top_p` is 1.5"));
  EXPECT_THAT(add([](Request& r) { r.min_p = -0.5f; }), HasSubstr("`min_p` is -0.5"));
  EXPECT_THAT(add([](Request& r) { r.top_k = -1; }), HasSubstr("`top_k` is -1"));
  options.kv_bytes = 1;
  EXPECT_THAT(error_of([&] { Engine(tiny.config, tiny.weights, options, tiny.device); }), HasSubstr("at least one page"));
  options.page_size = 0;
  EXPECT_THAT(error_of([&] { Engine(tiny.config, tiny.weights, options, tiny.device); }),
              HasSubstr("`page_size` is 0, expected 1 to 1024"));
}

}  // namespace
}  // namespace engine
