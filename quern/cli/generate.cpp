// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// quern generate: a language model from a folder, or with random weights, by the engine of examples/engine. Token ids in and out.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <random>

#include "examples/engine/check.h"
#include "examples/engine/write_checkpoint.h"
#include "quern/base/fs.h"
#include "quern/bench/ceiling.h"
#include "quern/cli/commands.h"

namespace quern::cli {

using Json = nlohmann::ordered_json;

[[noreturn]] static void fail(const std::string& what, const std::string& got, const std::string& expected) {
  throw Error(ErrorKind::value, "generate", what, got, expected);
}

/// "1,2,3", or "@FILE" with the same, or with spaces and ends of lines, in a file: a word of the command is at most 128 KB long.
static std::vector<i32> ids_of(std::string text) {
  if (!text.empty() && text[0] == '@') {
    const std::string path = text.substr(1);
    const std::optional<std::string> file = read_file(path);
    if (!file) fail("ids", "name the file '" + path + "', which cannot be read", "a file of token ids");
    text.clear();
    for (const char c : *file) {
      const bool space = c == ' ' || c == '\n' || c == '\r' || c == '\t';
      if (!space) text += c;
      else if (!text.empty() && text.back() != ',') text += ',';
    }
    if (!text.empty() && text.back() == ',') text.pop_back();
  }
  std::vector<i32> ids;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (word.empty() || word.size() > 9 || word.find_first_not_of("0123456789") != std::string::npos)
      fail("ids", "has `" + word + "`", "token ids with commas: 1,2,3");
    ids.push_back(std::stoi(word));
    at = end + 1;
  }
  return ids;
}

static std::vector<engine::Request> requests_of(const GenerateOptions& o, const engine::ModelConfig& config) {
  if (o.temperature == 0 && (o.top_k != 0 || o.top_p != 1 || o.min_p != 0))
    fail("temperature", "is 0 beside top-k, top-p or min-p", "more than 0: at 0 the largest logit is taken, whatever they say");
  std::vector<engine::Request> all;
  engine::Request request;
  request.max_new = o.max_new, request.temperature = o.temperature, request.top_k = o.top_k, request.top_p = o.top_p,
  request.min_p = o.min_p;
  for (const std::string& ids : o.ids) {
    request.prompt = ids_of(ids);
    all.push_back(request);
  }
  std::mt19937_64 random(o.seed);
  for (const long long length : o.random_prompts) {
    if (length >= config.max_positions)
      fail("random-prompts", "has " + std::to_string(length),
           "less than the model's " + std::to_string(config.max_positions) + " positions");
    request.prompt.clear();
    for (long long i = 0; i < length; ++i) request.prompt.push_back(i32(random() % u64(config.vocab)));
    all.push_back(request);
  }
  for (size_t i = 0; i < all.size(); ++i) all[i].seed = i64(o.seed + i);  // the same prompt twice gives two answers
  if (all.empty()) fail("ids", "are not there", "a prompt: --ids 1,2,3 or --random-prompts 16,5");
  return all;
}

static engine::ModelConfig config_of(const GenerateOptions& o) {
  if (o.random.empty()) return engine::read_config(o.folder);
  const std::optional<std::string> text = read_file(o.random);
  if (!text) fail("random", "is '" + o.random + "', which cannot be read", "a config.json");
  return engine::parse_config(*text, o.random);
}

static const char* name(engine::Finish finish) {
  switch (finish) {
    case engine::Finish::running: return "running";
    case engine::Finish::length: return "length";
    case engine::Finish::stop: return "stop";
    case engine::Finish::invalid_logits: return "logits with a NaN";
  }
  return "?";
}

/// Steps of one kind: their tokens and time.
struct Timing {
  i64 steps = 0, tokens = 0, keys = 0;
  double us = 0;
  void add(const engine::StepReport& step) { ++steps, tokens += step.tokens, keys += step.keys, us += step.us; }
  double rate() const { return us > 0 ? double(tokens) / us * 1e6 : 0; }
};

int generate(const GenerateOptions& options) {
  if (options.folder.empty() == options.random.empty())
    fail("model", options.folder.empty() ? "is not named" : "is named twice", "a folder, or --random CONFIG.json");
  const Devices devices(options.on);
  if (devices.list().size() != 1) fail("device", "is " + std::to_string(devices.list().size()) + " devices", "one");
  Device& device = *devices.list()[0].device;
  const engine::ModelConfig config = config_of(options);
  const std::vector<engine::Request> requests = requests_of(options, config);

  if (!options.logits.empty()) engine::write_safetensors(options.logits, {});  // told before the work where the file cannot be written
  if (options.kv_memory > 0 && options.kv_memory < 1e-9)
    fail("kv-memory", "is " + std::to_string(options.kv_memory), "at least one byte, in GB");

  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  engine::Memory memory(device);
  engine::Weights weights;
  if (options.random.empty()) {
    engine::Checkpoint checkpoint(options.folder);
    weights = engine::load_weights(config, checkpoint, memory);
  } else {
    weights = engine::random_weights(config, options.weights_seed, memory);
  }
  const double load_s = std::chrono::duration<double>(Clock::now() - begin).count();

  engine::EngineOptions of_engine;
  of_engine.step_tokens = options.step_tokens, of_engine.page_size = options.page_size, of_engine.kv_bytes = i64(options.kv_memory * 1e9);
  of_engine.max_batch = options.max_batch > 0 ? options.max_batch : std::min<i64>(64, i64(requests.size()));
  of_engine.ignore_stop = options.ignore_eos, of_engine.batch_invariant = options.batch_invariant, of_engine.graphs = !options.no_graphs;
  for (const engine::Request& r : requests)
    of_engine.max_length = std::max(of_engine.max_length, i64(r.prompt.size()) + std::max<i64>(r.max_new, 1));
  if (of_engine.max_length > config.max_positions)
    fail("prompt and max-new", "are " + std::to_string(of_engine.max_length) + " tokens",
         "at most the model's " + std::to_string(config.max_positions));
  engine::Engine engine(config, weights, of_engine, device);
  for (const engine::Request& r : requests) engine.add(r);
  std::unique_ptr<engine::LogitsCheck> check;
  if (options.check) check = std::make_unique<engine::LogitsCheck>(config, weights, device);

  if (!options.json)
    fmt::print("{}, {} layers, {:.3g} GB of weights in {:.1f} s, {} pages of {} tokens, on {} ({}{})\n", config.type, config.layers,
               double(memory.bytes()) / 1e9, load_s, engine.pages(), options.page_size, device.info().name, device.info().arch.name(),
               device.info().emulated ? ", emulated on this CPU" : "");
  Timing prefill, decode, capture;
  const bool one = requests.size() == 1 && !options.json;
  const auto on_token = [&](i64 request, i32 token) {
    if (options.stream && options.json) fmt::print("{}\n", Json{{"request", request}, {"token", token}}.dump());
    else if (one) fmt::print("{} ", token);
    else if (options.stream) fmt::print("request {}: {}\n", request, token);
    std::fflush(stdout);
  };
  std::vector<std::vector<float>> logits(requests.size());
  while (engine.step(on_token)) {
    const engine::StepReport& step = engine.last_step();
    (step.captured ? capture : step.decoded == step.tokens ? decode : prefill).add(step);
    if (check) check->add(engine, requests);
    for (size_t i = 0; !options.logits.empty() && i < step.rows.size(); ++i) {
      if (!step.rows[i].sampled) continue;
      const std::vector<float> row = engine.logits(i64(i));
      std::vector<float>& rows = logits[size_t(step.rows[i].request)];
      rows.insert(rows.end(), row.begin(), row.end());
    }
  }
  if (one) fmt::print("\n");
  const auto write_logits = [&] {
    if (options.logits.empty()) return;
    std::map<std::string, TensorView> tensors;
    for (size_t i = 0; i < logits.size(); ++i)
      tensors["request." + std::to_string(i)] = {logits[i].data(), DType::f32, {i64(logits[i].size()) / config.vocab, config.vocab}};
    engine::write_safetensors(options.logits, tensors);
  };

  const double kv_token_bytes = double(2 * config.heads_kv * config.head_dim * size_of(config.dtype));  // of a layer
  double floor_us = 0;                                                                                  // of all steps that decode
  if (options.floor && !device.info().emulated)
    floor_us = (double(decode.steps) * double(weights.step_bytes) + double(decode.keys) * kv_token_bytes) /
               bench::measure_ceilings(device).read_bytes_per_us;
  bool right = !check || check->right();
  Json answers = Json::array();
  for (size_t i = 0; i < requests.size(); ++i) {
    const engine::Answer& answer = engine.answer(i64(i));
    right &= answer.finish != engine::Finish::invalid_logits;
    answers.push_back({{"prompt", requests[i].prompt}, {"tokens", answer.tokens}, {"finish", name(answer.finish)}});
    if (!options.json && !one) fmt::print("request {}: {}\n", i, fmt::join(answer.tokens, " "));
    if (!options.json && answer.finish != engine::Finish::length) fmt::print("request {} ended by {}\n", i, name(answer.finish));
  }
  if (options.json) {
    const auto timing = [](const Timing& t) {
      return Json{{"steps", t.steps}, {"tokens", t.tokens}, {"us", t.us}, {"tokens_per_s", t.rate()}};
    };
    Json out{{"model", config.type},
             {"device", device.info().name},
             {"emulated", bool(device.info().emulated)},
             {"weight_bytes", memory.bytes()},
             {"step_weight_bytes", weights.step_bytes},
             {"kv_bytes", engine.kv_bytes()},
             {"requests", answers},
             {"prefill", timing(prefill)},
             {"decode", timing(decode)},
             {"capture", timing(capture)}};
    if (floor_us > 0) out["decode"]["floor_us"] = floor_us;
    if (check)
      out["check"] = {{"ok", check->right()},
                      {"rows", check->rows()},
                      {"error", std::isfinite(check->worst()) ? Json(check->worst()) : Json("infinite")},
                      {"bound", check->bound()},
                      {"same_largest", check->same_largest()},
                      {"wrong_tokens", check->wrong_tokens()}};
    std::puts(out.dump(options.stream ? -1 : 2).c_str());
  } else {
    for (const auto& [what, t] : {std::pair("steps with prompts", prefill), std::pair("steps that capture a graph", capture),
                                  std::pair("steps that decode", decode)})
      if (t.steps > 0) fmt::print("{} {}: {} tokens in {:.4g} s, {:.4g} tokens a second\n", t.steps, what, t.tokens, t.us / 1e6, t.rate());
    if (floor_us > 0)
      fmt::print("a step that decodes: {:.1f} us, {:.3f} of the time in which its weights and cache are read\n",
                 decode.us / double(decode.steps), decode.us / floor_us);
    if (check)
      fmt::print(
          "logits of {} rows: relative error {:.2e} against the model in double, bound {:.2e}; {} tokens are not what the logits give; the largest is the same in {}: {}\n",
          check->rows(), check->worst(), check->bound(), check->wrong_tokens(), check->same_largest(), check->right() ? "right" : "WRONG");
  }
  write_logits();
  return right ? kRight : kWrong;
}

}  // namespace quern::cli
