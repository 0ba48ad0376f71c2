// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// How long a call takes on its device: by kernel records (CUPTI), by events where CUPTI is missing, by the wall clock
// on an emulated device.
#pragma once
#include <functional>
#include <vector>

#include "quern/bench/gpu_timer.h"

namespace quern::bench {

struct TimingOptions {
  bool cold = true;                   ///< the L2 is replaced before each run
  double budget_ms = 200;             ///< of the timed runs together
  int min_runs = 15, max_runs = 200;  ///< an emulated device is content with 3
  Stream stream;                      ///< on which the calls work
  bool events = false;                ///< by events even where CUPTI is: while it records, kernels overlap less
};

/// Times of the runs of one call; quantiles lie between the two nearest runs.
struct Timing {
  double median_us = 0, p10_us = 0, p20_us = 0, p80_us = 0, p90_us = 0, min_us = 0;
  int runs = 0;
  const char* timer = "";  ///< "CUPTI activity", "CUDA events", "wall clock"
};

/// A call that is timed in parts, so that several can take turns: a GPU at its power limit needs milliseconds to find its
/// clocks, and gives others to whoever comes first. `call(run)`, run counting up from 0, puts work on options.stream.
class QN_API CallTimer {
 public:
  /// Runs the call some times.
  CallTimer(Device& device, std::function<void(int run)> call, const TimingOptions& options = {});
  /// The runs that the budget affords.
  int affordable() const { return affordable_; }
  /// Times so many more.
  void run(int runs);
  Timing timing() const;

 private:
  Device& device_;
  std::function<void(int)> call_;
  TimingOptions options_;
  int affordable_ = 0, done_ = 0;
  const char* timer_;
  std::vector<double> us_;
};

/// Times `call`, which puts work on options.stream and is run some times before: from the first kernel's start to the
/// last one's end (with events from the stream's reaching the call to its end, about 4 us more).
Timing time_call(Device& device, const std::function<void()>& call, const TimingOptions& options = {});
/// The same for a call that takes turns among buffers: `run` counts up from 0.
Timing time_call(Device& device, const std::function<void(int run)>& call, const TimingOptions& options = {});

/// The timer of the device that benchmarks use by default: the first GPU's, else the wall clock.
const char* timer_name();
const char* timer_name(Device& device);

/// Median and quantiles.
Timing timing_of(std::vector<double> us, const char* timer);
/// A quantile of ascending values, interpolated.
double quantile(const std::vector<double>& ascending, double q);

/// Microseconds of each of `runs` calls among kernel records in order of start. With a cold L2 every call lies between
/// two flushes; otherwise all calls have the same number of kernels. Throws Error{device} when the records are not so.
std::vector<double> call_spans(const std::vector<KernelRecord>& records, int runs, bool cold);

}  // namespace quern::bench
