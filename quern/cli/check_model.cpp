// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// quern check --model: random calls within a model file's limits, frozen if wanted: the test of a warm-up.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "quern/cli/commands.h"
#include "quern/cli/progress.h"
#include "quern/jit/freeze.h"
#include "quern/testing/model_run.h"

namespace quern::cli {

namespace {

nlohmann::ordered_json to_json(const testing::ModelRunReport& r, const std::string& on) {
  return {{"device", on},              {"calls", r.calls},         {"compared", r.compared}, {"compiled", r.compiled},
          {"from_cache", r.from_disk}, {"failures", r.failures}, {"left_out", r.left_out}};
}

void print(const testing::ModelRunReport& r, const Model& model, const testing::CheckDevice& on, bool frozen, Progress& progress) {
  for (const std::string& failure : r.failures) progress.line("FAILED " + failure);
  for (const auto& [call, example] : r.left_out) progress.line(fmt::format("left out as too large for this device: {} ({})", call, example));
  progress.line(fmt::format("{} calls of {} on {} ({}){}: {} kernels compiled, {} from the cache, {} failures; {} calls compared with their references", r.calls, model.name,
                            on.device->info().name, on.words, frozen ? ", frozen" : "", r.compiled, r.from_disk, r.failures.size(), r.compared));
}

}  // namespace

int check_model(const CheckModelOptions& options) {
  Model model = load_model(options.model);
  for (const std::string& word : options.limits) set_limit(model, word);
  const Devices devices(options.on);
  if (options.frozen) jit::freeze();
  Progress progress(options.calls * i64(devices.list().size()));
  auto results = nlohmann::ordered_json::array();
  bool right = true;
  for (const testing::CheckDevice& on : devices.list()) {
    const testing::ModelRunReport r =
        testing::run_model(model, {.calls = options.calls, .seed = options.seed, .on = on}, [&](const testing::ModelDraw& draw) { progress.step(draw.call->does); });
    if (options.json) results.push_back(to_json(r, on.words));
    else print(r, model, on, options.frozen, progress);
    right &= r.failures.empty() && r.calls > 0;
  }
  if (options.json) std::puts(results.dump(2).c_str());
  return right ? kRight : kWrong;
}

}  // namespace quern::cli
