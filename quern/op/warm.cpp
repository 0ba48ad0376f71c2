// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/op/warm.h"

#include <chrono>

#include "quern/base/error.h"
#include "quern/jit/build_many.h"
#include "quern/op/reach.h"
#include "quern/op/schema.h"

namespace quern {

namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Estimates what is left from the compiles so far; what comes from the cache takes no time.
class Clock {
 public:
  explicit Clock(size_t all) : all_(all) {}
  double left(size_t done) const { return done ? seconds_since(begin_) / double(done) * double(all_ - done) : 0; }
  double seconds() const { return seconds_since(begin_); }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  size_t all_;
};

/// Kernels of single calls join those of the model.
void add_calls(const std::vector<WarmCall>& calls, const DeviceInfo& device, Reach& reached) {
  for (const WarmCall& call : calls) {
    ReachedCall& into = reached.calls.emplace_back();
    into.does = call.name, into.op = call.problem.op->id;
    try {
      const Plan plan = call.problem.empty ? Plan{} : make_plan(*call.problem.op, call.problem, device);
      into.plans = 1;
      for (i32 i = 0; i < plan.count; ++i) {
        ReachedKernel& k = reached.kernels[reached.add(plan.launches[i].spec)];
        k.aligned = true;  // needed as it is, whatever its alignment
        if (k.calls.empty() || k.calls.back() != call.name) k.calls.push_back(call.name);
      }
      if (plan.count == 0) into.skipped = call.problem.empty ? "its outputs are empty" : "it launches no kernel";
    } catch (const Error& e) { into.skipped = e.what(), into.refused = 1; }
  }
}

/// Adds what is reached on one device, each kernel with its job.
void add_reached(const Reach& reached, const DeviceInfo& device, WarmReport& report, std::vector<jit::BuildJob>& jobs) {
  const jit::Target target{device.arch, device.emulated != 0, false, ""};
  for (const ReachedKernel& k : reached.kernels) {
    report.kernels.push_back({jit::print(k.spec), target.name(), k.calls, k.aligned});
    jobs.push_back({k.spec, target});
  }
  for (const ReachedCall& c : reached.calls) {
    report.plans += c.plans;
    if (!c.skipped.empty()) report.skipped.push_back({c.does, c.op, target.name(), c.skipped, c.refused > 0, ""});
    if (!c.partly.empty()) report.skipped.push_back({c.does, c.op, target.name(), c.partly, false, "", true});
    for (const ReachedNone& n : c.none) report.skipped.push_back({c.does, c.op, target.name(), n.why, n.refused, n.with});
  }
}

void build_all(const std::vector<jit::BuildJob>& jobs, int processes, WarmReport& report, const WarmProgress& progress) {
  const Clock clock(jobs.size());
  size_t done = 0;
  jit::build_many(jobs, processes, [&](size_t i, const jit::BuildOutcome& o) {
    WarmKernel& k = report.kernels[i];
    k.state = !o.error.empty() ? WarmKernel::State::failed : o.from_cache ? WarmKernel::State::cached : WarmKernel::State::compiled;
    k.compile_ms = o.compile_ms;
    k.image_bytes = o.image_bytes;
    k.error = o.error;
    ++done;
    if (progress) progress(k, done, jobs.size(), clock.left(done));
  });
  report.build_seconds = clock.seconds();
}

}  // namespace

WarmReport warm(const WarmOptions& options, const WarmProgress& progress) {
  WarmReport report;
  std::vector<DeviceInfo> devices = options.devices;
  if (devices.empty()) devices.push_back(device_from_name("").info());
  const auto begin = std::chrono::steady_clock::now();
  std::vector<jit::BuildJob> jobs;
  if (options.model.empty() && options.calls.empty())
    throw Error(ErrorKind::value, "", "model", "is missing", "a model file or recorded calls");
  if (options.model.empty() && !options.limits.empty())
    throw Error(ErrorKind::value, "", options.limits[0], "limits a model", "a model file");
  Model model;
  if (!options.model.empty()) model = load_model(options.model);
  for (const std::string& word : options.limits) set_limit(model, word);
  for (const DeviceInfo& device : devices) {
    Reach reached = reach(model, device);
    add_calls(options.calls, device, reached);
    add_reached(reached, device, report, jobs);
  }
  report.list_seconds = seconds_since(begin);
  if (options.processes < 0)
    throw Error(ErrorKind::value, "", "processes", "is " + std::to_string(options.processes), "0 (one a CPU) or more");
  if (!options.list_only) build_all(jobs, options.processes, report, progress);
  return report;
}

}  // namespace quern
