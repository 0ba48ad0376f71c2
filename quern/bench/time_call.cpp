// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/bench/time_call.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "quern/base/error.h"
#include "quern/base/log.h"
#include "quern/bench/stream.h"

namespace quern::bench {

namespace {

constexpr const char* kWallClock = "wall clock";
constexpr const char* kEvents = "CUDA events";
using Call = std::function<void(int)>;

double now_us() { return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void run_once(Device& device, const Call& call, const TimingOptions& o, int run) {
  if (o.cold) flush_l2(device, o.stream);
  call(run);
}

/// Runs until 30 ms have passed (clocks rise, caches of the host fill), at least 3 times after the first, which may
/// compile. Returns microseconds a run by the wall clock.
double warm_up(Device& device, const Call& call, const TimingOptions& o) {
  run_once(device, call, o, 0);
  device.synchronize(o.stream);
  const bool emulated = device.info().emulated;
  const double start = now_us();
  int runs = 0;
  while (runs < (emulated ? 1 : 3) || (!emulated && runs < 3000 && now_us() - start < 30'000)) {
    run_once(device, call, o, runs++);
    if (runs % 8 == 0) device.synchronize(o.stream);
  }
  device.synchronize(o.stream);
  return (now_us() - start) / runs;
}

int runs_within(const TimingOptions& o, double us, bool emulated) {
  const double affordable = 1000 * o.budget_ms / std::max(us, 0.01);
  const int least = emulated ? std::min(o.min_runs, 3) : o.min_runs;
  return std::max(1, int(std::clamp(affordable, double(least), double(std::max(least, o.max_runs)))));
}

std::vector<double> by_wall_clock(Device& device, const Call& call, const TimingOptions& o, int first, int runs) {
  std::vector<double> us;
  for (int i = 0; i < runs; ++i) {
    const double start = now_us();
    call(first + i);
    device.synchronize(o.stream);
    us.push_back(now_us() - start);
  }
  return us;
}

std::vector<double> by_events(Device& device, const Call& call, const TimingOptions& o, int first, int runs) {
  std::vector<Event> events;
  for (int i = 0; i < 2 * runs; ++i) events.push_back(device.create_event());
  for (int i = 0; i < runs; ++i) {
    if (o.cold) flush_l2(device, o.stream);
    device.record(events[size_t(2 * i)], o.stream);
    call(first + i);
    device.record(events[size_t(2 * i + 1)], o.stream);
  }
  std::vector<double> us;
  for (int i = 0; i < runs; ++i) us.push_back(device.elapsed_us(events[size_t(2 * i)], events[size_t(2 * i + 1)]));
  for (const Event event : events) device.destroy(event);
  return us;
}

std::vector<double> by_records(Device& device, const Call& call, const TimingOptions& o, int first, int runs) {
  KernelTimer timer(device, o.stream);
  timer.start();
  for (int i = 0; i < runs; ++i) run_once(device, call, o, first + i);
  return call_spans(timer.stop(), runs, o.cold);
}

bool is_flush(const KernelRecord& record) { return record.name.rfind(kFlushSymbol, 0) == 0; }

[[noreturn]] void fail_records(size_t records, int runs, const char* why) {
  throw Error(ErrorKind::device, "CUPTI saw " + std::to_string(records) + " kernels in " + std::to_string(runs) + " calls: " + why);
}

}  // namespace

std::vector<double> call_spans(const std::vector<KernelRecord>& records, int runs, bool cold) {
  std::vector<std::vector<const KernelRecord*>> calls;
  std::vector<const KernelRecord*> kernels;
  for (const KernelRecord& r : records) {
    if (cold && is_flush(r)) calls.emplace_back();
    else if (!cold) kernels.push_back(&r);
    else if (!calls.empty()) calls.back().push_back(&r);
    else fail_records(records.size(), runs, "one ran before the first flush of the L2");
  }
  if (!cold) {
    if (kernels.size() % size_t(runs)) fail_records(records.size(), runs, "the calls differ");
    const size_t each = kernels.size() / size_t(runs);
    for (size_t i = 0; each && i < kernels.size(); i += each)
      calls.emplace_back(kernels.begin() + ptrdiff_t(i), kernels.begin() + ptrdiff_t(i + each));
  }
  if (calls.size() != size_t(runs)) fail_records(records.size(), runs, "not one flush of the L2 for each");
  std::vector<double> us;
  for (const auto& call : calls) {
    if (call.empty()) fail_records(records.size(), runs, "one launched none");
    u64 end = 0;
    for (const KernelRecord* r : call) end = std::max(end, r->end_ns);
    us.push_back(double(end - call.front()->start_ns) / 1000);
  }
  return us;
}

double quantile(const std::vector<double>& ascending, double q) {
  if (ascending.empty()) return 0;
  const double at = q * double(ascending.size() - 1);
  const size_t below = size_t(at), above = std::min(below + 1, ascending.size() - 1);
  return ascending[below] + (at - double(below)) * (ascending[above] - ascending[below]);
}

Timing timing_of(std::vector<double> us, const char* timer) {
  std::sort(us.begin(), us.end());
  return {.median_us = quantile(us, 0.5),
          .p10_us = quantile(us, 0.1),
          .p20_us = quantile(us, 0.2),
          .p80_us = quantile(us, 0.8),
          .p90_us = quantile(us, 0.9),
          .min_us = us.empty() ? 0 : us.front(),
          .runs = int(us.size()),
          .timer = timer};
}

const char* timer_name() { return cuda_device_count() > 0 ? KernelTimer::name() : kWallClock; }
const char* timer_name(Device& device) { return device.info().emulated ? kWallClock : KernelTimer::name(); }

CallTimer::CallTimer(Device& device, std::function<void(int run)> call, const TimingOptions& options)
    : device_(device),
      call_(std::move(call)),
      options_(options),
      timer_(options.events && !device.info().emulated ? kEvents : timer_name(device)) {
  affordable_ = runs_within(options_, warm_up(device_, call_, options_), device.info().emulated);
  if (!device.info().emulated && timer_ != kEvents && !cupti_available()) timer_ = kEvents;
}

void CallTimer::run(int runs) {
  std::vector<double> us;
  const int first = done_;
  done_ += runs;
  if (device_.info().emulated) {
    us = by_wall_clock(device_, call_, options_, first, runs);
  } else if (timer_ != kEvents) {
    try {
      us = by_records(device_, call_, options_, first, runs);
    } catch (const Error& e) {  // records dropped or not understood: a figure by another timer, named so, is better than none
      log(LogLevel::warning, std::string(e.what()) + "; timed by events instead");
      timer_ = kEvents;
      us_.clear();
      runs = done_;
    }
  }
  if (timer_ == kEvents) us = by_events(device_, call_, options_, first, runs);
  us_.insert(us_.end(), us.begin(), us.end());
}

Timing CallTimer::timing() const { return timing_of(us_, timer_); }

Timing time_call(Device& device, const Call& call, const TimingOptions& options) {
  CallTimer timer(device, call, options);
  timer.run(timer.affordable());
  return timer.timing();
}

Timing time_call(Device& device, const std::function<void()>& call, const TimingOptions& options) {
  return time_call(device, Call([&call](int) { call(); }), options);
}

}  // namespace quern::bench
