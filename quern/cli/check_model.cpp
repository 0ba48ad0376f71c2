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

static void print_json(const testing::ModelRunReport& r) {
  const nlohmann::ordered_json j = {{"calls", r.calls},         {"compared", r.compared}, {"compiled", r.compiled},
                                    {"from_cache", r.from_disk}, {"failures", r.failures}, {"left_out", r.left_out}};
  std::puts(j.dump(2).c_str());
}

int check_model(const CheckModelOptions& options) {
  Model model = load_model(options.model);
  for (const std::string& word : options.limits) set_limit(model, word);
  Device& device = device_from_name(options.device);
  if (options.frozen) jit::freeze();
  Progress progress(options.calls);
  const testing::ModelRunReport r =
      testing::run_model(model, {.calls = options.calls, .seed = options.seed, .device = &device}, [&](const testing::ModelDraw& draw) { progress.step(draw.call->does); });
  if (options.json) {
    print_json(r);
  } else {
    for (const std::string& failure : r.failures) progress.line("FAILED " + failure);
    for (const auto& [call, example] : r.left_out) progress.line(fmt::format("left out as too large for this device: {} ({})", call, example));
    progress.line(fmt::format("{} calls of {} on {}{}: {} kernels compiled, {} from the cache, {} failures; {} calls compared with their references", r.calls,
                              model.name, device.info().name, options.frozen ? ", frozen" : "", r.compiled, r.from_disk, r.failures.size(), r.compared));
  }
  return r.failures.empty() && r.calls > 0 ? kRight : kWrong;
}

}  // namespace quern::cli
