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

using Verdict = testing::CheckResult::Verdict;

/// How many calls did not end right, by verdict.
struct Failed {
  i64 of[testing::CheckResult::kVerdicts] = {};
  void add(const testing::ModelRunReport& r) {
    for (const testing::ModelFailure& f : r.failures) ++of[int(f.verdict)];
  }
  /// "1 wrong, 3 frozen"; or "0 failures".
  std::string text() const {
    std::string said;
    for (int v = 0; v < testing::CheckResult::kVerdicts; ++v)
      if (of[v]) said += fmt::format("{}{} {}", said.empty() ? "" : ", ", of[v], name(Verdict(v)));
    return said.empty() ? "0 failures" : said;
  }
  /// As of `check`: a wrong result outweighs a call that cannot run, that one a kernel that is not in the cache.
  int exit_code() const {
    if (of[int(Verdict::wrong)]) return kWrong;
    if (of[int(Verdict::refused)] || of[int(Verdict::unsupported)]) return kBadInput;
    return of[int(Verdict::frozen)] ? kEnvironment : kRight;
  }
};

nlohmann::ordered_json to_json(const testing::ModelRunReport& r, const std::string& on) {
  auto failures = nlohmann::ordered_json::array();
  for (const testing::ModelFailure& f : r.failures) failures.push_back({{"verdict", name(f.verdict)}, {"text", f.text}});
  return {{"device", on},         {"calls", r.calls},      {"compared", r.compared}, {"compiled", r.compiled}, {"from_cache", r.from_disk},
          {"failures", failures}, {"left_out", r.left_out}};
}

void print(const testing::ModelRunReport& r, const Model& model, const testing::CheckDevice& on, bool frozen, Progress& progress) {
  Failed failed;
  failed.add(r);
  for (const testing::ModelFailure& f : r.failures) progress.line(upper(name(f.verdict)) + " " + f.text);
  for (const auto& [call, example] : r.left_out)
    progress.line(fmt::format("left out as too large for this device: {} ({})", call, example));
  progress.line(fmt::format(
      "{} calls of {} on {} ({}){}: {} kernels compiled, {} from the cache, {}; {} calls compared with their references", r.calls,
      model.name, on.device->info().name, on.words, frozen ? ", frozen" : "", r.compiled, r.from_disk, failed.text(), r.compared));
}

}  // namespace

int check_model(const CheckModelOptions& options) {
  Model model = load_model(options.model);
  for (const std::string& word : options.limits) set_limit(model, word);
  const Devices devices(options.on);
  if (options.frozen) jit::freeze();
  Progress progress(options.calls * i64(devices.list().size()));
  auto results = nlohmann::ordered_json::array();
  bool called = true;
  Failed failed;
  for (const testing::CheckDevice& on : devices.list()) {
    const testing::ModelRunReport r = testing::run_model(model, {.calls = options.calls, .seed = options.seed, .on = on},
                                                         [&](const testing::ModelDraw& draw) { progress.step(draw.call->does); });
    if (options.json) results.push_back(to_json(r, on.words));
    else print(r, model, on, options.frozen, progress);
    failed.add(r);
    called &= r.calls > 0;
  }
  if (options.json) std::puts(results.dump(2).c_str());
  return called || failed.exit_code() != kRight ? failed.exit_code() : kWrong;
}

}  // namespace quern::cli
