// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// quern warm: the kernels that a model can need, listed and compiled before they are.
#include "quern/op/warm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "quern/cli/as_json.h"
#include "quern/cli/commands.h"
#include "quern/cli/progress.h"
#include "quern/testing/warm_trace.h"

namespace quern::cli {

namespace {

using State = WarmKernel::State;

const char* name(State state) {
  switch (state) {
    case State::listed: return "listed";
    case State::cached: return "cached";
    case State::compiled: return "compiled";
    default: return "failed";
  }
}

struct Counts {
  int of[4] = {}, unaligned = 0;
  double bytes = 0, compile_ms = 0;
  int operator[](State state) const { return of[int(state)]; }
};

Counts count(const WarmReport& report) {
  Counts c;
  for (const WarmKernel& k : report.kernels) {
    ++c.of[int(k.state)];
    c.unaligned += !k.aligned;
    c.bytes += double(k.image_bytes);
    if (k.state == State::compiled) c.compile_ms += k.compile_ms;
  }
  return c;
}

std::string line_of(const WarmKernel& k) {
  if (k.state == State::failed) return fmt::format("FAILED {} {}", k.kernel, k.arch);
  const std::string time = k.state == State::compiled ? fmt::format(" in {:.2f} s", k.compile_ms / 1000) : "";
  return fmt::format("{}{} {} {}", name(k.state), time, k.kernel, k.arch);
}

nlohmann::ordered_json to_json(const WarmReport& report) {
  nlohmann::ordered_json j;
  j["kernels"] = nlohmann::ordered_json::array();
  for (const WarmKernel& k : report.kernels) {
    nlohmann::ordered_json x = {
        {"kernel", k.kernel}, {"arch", k.arch}, {"state", name(k.state)}, {"calls", k.calls}, {"aligned", k.aligned}};
    if (k.state == State::failed) x["error"] = k.error;
    else if (k.state != State::listed) x["compile_ms"] = k.compile_ms, x["image_bytes"] = k.image_bytes;
    j["kernels"].push_back(std::move(x));
  }
  j["skipped"] = nlohmann::ordered_json::array();
  for (const WarmSkipped& s : report.skipped)
    j["skipped"].push_back({{"call", s.call},
                            {"op", s.op},
                            {"arch", s.arch},
                            {"with", s.with},
                            {"refused", s.refused},
                            {"partly", s.partly},
                            {"reason", s.reason}});
  j["plans"] = report.plans;
  j["list_seconds"] = report.list_seconds;
  j["build_seconds"] = report.build_seconds;
  return j;
}

/// Adds the devices that are named.
void complete(WarmOptions& what, const std::vector<std::string>& archs, const std::string& device) {
  for (const std::string& arch : archs) what.devices.push_back(device_info_of(Arch::parse(arch)));
  if (!device.empty()) what.devices.push_back(device_from_name(device).info());
}

/// Calls without kernels, ops that quern lacks in one line.
void print_skipped(const WarmReport& report) {
  std::string missing;
  for (const WarmSkipped& s : report.skipped) {
    const bool lacks = s.reason == "not in quern yet";
    if (lacks && missing.find(s.op) == std::string::npos) missing += (missing.empty() ? "" : ", ") + s.op;
    if (!lacks)
      fmt::print("{} {}{} ({}, {}): {}\n", s.partly ? "refused for some sizes:" : "skipped", s.call,
                 s.with.empty() ? "" : " with " + s.with, s.op, s.arch, s.reason);
  }
  if (!missing.empty()) fmt::print("not in quern yet: {}\n", missing);
}

void print_summary(const WarmOptions& options, const WarmReport& report) {
  print_skipped(report);
  const Counts c = count(report);
  fmt::print("{} kernels, listed by {} plans in {:.1f} s", report.kernels.size(), report.plans, report.list_seconds);
  if (c.unaligned)
    fmt::print("; {} of them only for operands that are less than 16-byte aligned (alignment=16 leaves these out)", c.unaligned);
  std::puts("");
  if (options.list_only) return;
  fmt::print("{} compiled, {} cached, {} failed in {:.1f} s", c[State::compiled], c[State::cached], c[State::failed], report.build_seconds);
  if (c[State::compiled]) fmt::print(" ({:.1f} s of compiling)", c.compile_ms / 1000);
  fmt::print("; {:.0f} KB\n", c.bytes / 1024);
}

}  // namespace

std::string warm_json(WarmOptions what, const std::vector<std::string>& archs, const std::string& device, const std::string& trace,
                      const WarmProgress& progress) {
  complete(what, archs, device);
  if (!trace.empty()) what.calls = testing::warm_calls(trace);
  return to_json(quern::warm(what, progress)).dump(2);
}

int warm(const WarmCommandOptions& options) {
  WarmOptions what = options.what;
  complete(what, options.archs, options.device);
  if (!options.trace.empty()) what.calls = testing::warm_calls(options.trace, options.trust_hooks);
  std::unique_ptr<Progress> progress;
  std::string last_error;  // a missing compiler fails all alike
  const WarmReport report = quern::warm(what, [&](const WarmKernel& k, size_t done, size_t all, double seconds_left) {
    if (options.json) return;
    if (!progress) progress = std::make_unique<Progress>(i64(all));
    progress->step(k.kernel, seconds_left);
    if (k.state != State::failed && progress->terminal()) return;
    progress->line(fmt::format("[{}/{}] {}{}", done, all, line_of(k),
                               k.error.empty()         ? ""
                               : k.error == last_error ? ": the same"
                                                       : ": " + k.error));
    last_error = k.error;
  });
  progress.reset();
  if (options.json) {
    std::puts(to_json(report).dump(2).c_str());
  } else {
    for (const WarmKernel& k : report.kernels)
      if (what.list_only) fmt::print("{} {}{}\n", k.kernel, k.arch, k.aligned ? "" : "  (less aligned operands)");
    print_summary(what, report);
  }
  if (count(report)[State::failed]) return kEnvironment;
  const bool refused = std::any_of(report.skipped.begin(), report.skipped.end(), [](const WarmSkipped& s) { return s.refused; });
  return refused ? kBadInput : kRight;
}

}  // namespace quern::cli
