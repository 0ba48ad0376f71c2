// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/testing/fuzz.h"

#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "quern/cli/commands.h"
#include "quern/cli/progress.h"
#include "quern/cli/table.h"

namespace quern::cli {

static void print(const testing::FuzzReport& report) {
  for (const testing::FuzzFailure& f : report.failures) fmt::print("WRONG {}\n  {}\n", f.what, f.repro);
  Table outcomes({"outcome", "calls"}), breaks({"broken on purpose", "calls"});
  for (const auto& [what, n] : report.outcomes) outcomes.add({what, std::to_string(n)});
  for (const auto& [what, n] : report.breaks) breaks.add({what, std::to_string(n)});
  fmt::print("{}\n{}{} calls, {} wrong\n", outcomes.text(), breaks.text(), report.calls, report.failures.size());
}

int fuzz(const FuzzCommandOptions& options) {
  DeviceOptions on = options.on;
  if (on.device.empty()) on.device = "emu";
  const Devices devices(on);
  testing::FuzzOptions how;
  how.calls = options.calls;
  how.seed = options.seed;
  how.ops = ops_named(options.op);
  how.device = devices.list()[0].device;
  how.words = devices.list()[0].words + (options.op.empty() ? "" : " --op " + options.op);
  testing::FuzzReport report;
  {
    Progress progress(options.calls);
    report = testing::fuzz(how, [&](i64) { progress.step(); });
  }
  if (options.json) {
    nlohmann::ordered_json j = {{"calls", report.calls}, {"outcomes", report.outcomes}, {"breaks", report.breaks}};
    j["failures"] = nlohmann::ordered_json::array();
    for (const testing::FuzzFailure& f : report.failures) j["failures"].push_back({{"what", f.what}, {"repro", f.repro}});
    std::puts(j.dump(2).c_str());
  } else {
    print(report);
  }
  return report.failures.empty() ? kRight : kWrong;
}

}  // namespace quern::cli
