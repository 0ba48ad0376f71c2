// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// quern run --replay: a recorded call once more.
#include "quern/testing/replay.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "quern/cli/commands.h"

namespace quern::cli {

namespace {

std::string verdict(const testing::Comparison& c) {
  return c.ok ? fmt::format("right ({:.3g} of its bound)", c.error) : "WRONG: " + c.message;
}

void print(const testing::TracedCall& call, const testing::ReplayResult& result, const std::string& on) {
  fmt::print("{} from {} on {}\n{}\n", call.op->id, call.folder, on, result.kernels);
  if (result.kernels != call.kernels) fmt::print("recorded with {}\n", call.kernels);
  if (!result.has_reference) fmt::print("the recorded call failed ({}); this one came to an end\n", call.error);
  else if (!result.has_recorded) fmt::print("the record has no outputs; bits not compared\n");
  else if (!result.planned_alike) fmt::print("planned differently; bits not compared\n");
  if (result.compared() == 0) fmt::print("nothing was compared\n");
  for (const testing::ReplayedOutput& o : result.outputs) {
    if (o.has_bits)
      fmt::print("{}: {}\n", o.name,
                 o.different ? fmt::format("{} elements DIFFER from the record; {}", o.different, o.first) : "the recorded bits");
    fmt::print("{}: against the reference {}{}\n", o.name, verdict(o.replayed),
               result.has_recorded ? "; as recorded " + verdict(o.recorded) : "");
  }
}

using Json = nlohmann::ordered_json;

Json to_json(const testing::Comparison& c) {
  return {{"ok", c.ok}, {"error", std::isfinite(c.error) ? Json(c.error) : Json("infinite")}, {"message", c.message}};
}

Json to_json(const testing::TracedCall& call, const testing::ReplayResult& result, const std::string& on) {
  Json outputs = Json::array();
  for (const testing::ReplayedOutput& o : result.outputs)
    outputs.push_back({{"name", o.name},
                       {"different", o.has_bits ? Json(o.different) : Json()},
                       {"replayed", to_json(o.replayed)},
                       {"recorded", result.has_recorded ? to_json(o.recorded) : Json()}});
  return {{"op", call.op->id},
          {"folder", call.folder},
          {"device", on},
          {"kernels", result.kernels},
          {"recorded_kernels", call.kernels},
          {"ok", result.verdict() == testing::ReplayResult::Verdict::right},
          {"compared", result.compared()},
          {"planned_alike", result.planned_alike},
          {"recorded_error", call.error},
          {"outputs", outputs}};
}

}  // namespace

int replay(const RunCommandOptions& options) {
  const testing::TracedCall call = testing::read_traced_call(options.replay, options.trust_hooks);
  DeviceOptions on = options.on;
  if (on.device.empty()) on.device = call.emulated ? "emu:" + call.arch.name() : "cuda";
  using Verdict = testing::ReplayResult::Verdict;
  bool wrong = false, not_compared = false;
  Json results = Json::array();
  const Devices devices(on);
  for (const testing::CheckDevice& device : devices.list()) {
    const testing::ReplayResult result = testing::replay(call, *device.device);
    if (!options.json) print(call, result, device.words);
    results.push_back(to_json(call, result, device.words));
    wrong |= result.verdict() == Verdict::wrong;
    not_compared |= result.verdict() == Verdict::not_compared;
  }
  if (options.json) std::puts(results.dump(2).c_str());
  return wrong ? kWrong : not_compared ? kNotCompared : kRight;
}

}  // namespace quern::cli
