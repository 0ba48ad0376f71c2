// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/bench/host_time.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "quern/bench/stream.h"
#include "quern/bench/time_call.h"
#include "quern/jit/kernel_table.h"
#include "quern/op/call_memory.h"

namespace quern::bench {

namespace {

/// A launch with its parameters made, ready to be repeated.
struct BareLaunch {
  Function function;
  LaunchConfig config;
  u32 bytes;
  alignas(64) char params[kMaxParamsBytes];
};

std::vector<BareLaunch> bare_launches(const Op& op, const void* args, const RunOptions& options, Device& device) {
  const Problem problem = bind(op, args, options);
  const Plan plan = make_plan(op, problem, device.info());
  const CallMemory memory(op, args, plan, options, device);
  std::vector<BareLaunch> launches(static_cast<size_t>(plan.count));
  for (i32 i = 0; i < plan.count; ++i) {
    const Launch& l = plan.launches[i];
    BareLaunch& bare = launches[size_t(i)];
    bare.function = jit::get(l.spec, device, options.stream);
    bare.config = l.config;
    bare.bytes = l.spec.kernel->params_bytes;
    l.params(bare.params, args, problem, l, memory.regions(), device);
  }
  return launches;
}

/// Microseconds of each of `calls` calls, which the device works off before the next batch.
template <class F>
double batch_us(Device& device, const RunOptions& options, int calls, const F& f) {
  device.synchronize(options.stream);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) f();
  const double us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
  return us / calls;
}

}  // namespace

HostTime host_time(const Op& op, const void* args, RunOptions options, Device& device, double device_us, int batches) {
  // A queue of launches is about 1000 long; past it the host would wait for the device. A batch takes 20 ms at most.
  constexpr double kQueued = 300, kBatchUs = 20'000;
  options.device = &device;
  const Problem problem = bind(op, args, options);
  if (problem.empty) return {};
  const Plan plan = make_plan(op, problem, device.info());
  const DeviceMemory workspace(device, size_t(plan.workspace) + 256, "workspace");
  options.workspace = {workspace.data(), plan.workspace};
  const std::vector<BareLaunch> launches = bare_launches(op, args, options, device);
  const auto call = [&] { run(op, args, options); };
  const auto launch = [&] {
    for (const BareLaunch& l : launches) device.launch(l.function, l.config, l.params, l.bytes, options.stream);
  };
  call();
  const int calls = int(std::clamp(kBatchUs / max_of(device_us, 1.0), 1.0, kQueued / plan.count));
  std::vector<double> call_us, launch_us;
  for (int b = 0; b < (device.info().emulated ? std::min(3, batches) : batches); ++b) {
    call_us.push_back(batch_us(device, options, calls, call));
    launch_us.push_back(batch_us(device, options, calls, launch));
  }
  device.synchronize(options.stream);
  return {timing_of(call_us, "").median_us, timing_of(launch_us, "").median_us};
}

}  // namespace quern::bench
