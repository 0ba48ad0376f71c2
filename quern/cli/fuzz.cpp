// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/testing/fuzz.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "quern/cli/commands.h"
#include "quern/cli/progress.h"
#include "quern/cli/table.h"

namespace quern::cli {

/// What to write when a call kills the process: its repro command.
static char g_last_words[512];

static void say_last_words(int) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, g_last_words, std::strlen(g_last_words));
  _exit(kWrong);
}

static void set_last_words(const std::string& repro) {
  std::snprintf(g_last_words, sizeof g_last_words, "\nWRONG the process was killed by this call:\n  %s\n", repro.c_str());
}

static void catch_signals() {
  static char stack[1 << 16];  // the call's own may be what overflowed
  const stack_t alternative = {stack, 0, sizeof stack};
  sigaltstack(&alternative, nullptr);
  struct sigaction action = {};
  action.sa_handler = say_last_words;
  action.sa_flags = SA_ONSTACK;
  for (const int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigaction(s, &action, nullptr);
}

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
    const auto announce = [&](i64 done) { set_last_words(testing::fuzz_repro(how, how.seed + u64(done))); };
    announce(0);
    catch_signals();
    report = testing::fuzz(how, [&](i64 done) {
      progress.step();
      announce(done);
    });
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
