// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The engine as a program of its own: engine FOLDER 1,2,3 [MAX_NEW] prints the tokens behind a prompt. A FOLDER that ends with .json is a
// config.json of a model that gets random weights. `quern generate` has more options.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "engine.h"
#include "quern/base/error.h"

static engine::i64 number_of(const std::string& word) {
  if (word.empty() || word.size() > 9 || word.find_first_not_of("0123456789") != std::string::npos)
    throw quern::Error(quern::ErrorKind::value, "engine", "arguments", "have `" + word + "`", "whole numbers, as in 1,2,3 16");
  return std::atoll(word.c_str());
}

int main(int argc, char** argv) try {
  if (argc < 3) {
    std::fprintf(stderr, "usage: engine FOLDER|CONFIG.json IDS [MAX_NEW], as in engine model 1,2,3 16\n");
    return 2;
  }
  const std::string model = argv[1];
  engine::Request request;
  std::stringstream ids(argv[2]);
  for (std::string id; std::getline(ids, id, ',');) request.prompt.push_back(engine::i32(number_of(id)));
  if (argc > 3) request.max_new = number_of(argv[3]);

  quern::Device& device = quern::device_from_name();
  engine::Memory memory(device);
  engine::ModelConfig config;
  engine::Weights weights;
  if (model.ends_with(".json")) {
    std::ifstream file(model);
    std::stringstream text;
    if (!file || !(text << file.rdbuf()))
      throw quern::Error(quern::ErrorKind::value, "engine", "model", "is " + model + ", which cannot be read", "a config.json");
    config = engine::parse_config(text.str(), model);
    weights = engine::random_weights(config, 1, memory);
  } else {
    config = engine::read_config(model);
    engine::Checkpoint checkpoint(model);
    weights = engine::load_weights(config, checkpoint, memory);
  }
  engine::Engine engine(config, weights, {.max_batch = 1, .max_length = engine::i64(request.prompt.size()) + request.max_new}, device);
  engine.add(request);
  const auto print = [](engine::i64, engine::i32 token) { std::printf("%d ", token), std::fflush(stdout); };
  while (engine.step(print)) continue;
  std::printf("\n");
  return engine.answer(0).finish == engine::Finish::invalid_logits;
} catch (const quern::Error& e) {
  std::fprintf(stderr, "%s error: %s\n", quern::name(e.kind()), e.what());
  return 1;
}
