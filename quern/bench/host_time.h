// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What a call costs on the host beside the launch itself.
#pragma once
#include "quern/op/schema.h"

namespace quern::bench {

struct HostTime {
  double call_us = 0;    ///< of a whole call: bind, plan, lookup, parameters, launch
  double launch_us = 0;  ///< of launching the same kernels with the same parameters, nothing else
  double own_us() const { return call_us - launch_us; }
};

constexpr int kHostBatches = 31;

/// Medians over batches of calls that are queued without waiting, calls and bare launches in turn. `args` lie on the
/// device; the workspace is allocated beforehand. `device_us` is how long the device works on a call.
QN_API HostTime host_time(const Op& op, const void* args, RunOptions options, Device& device, double device_us, int batches = kHostBatches);

}  // namespace quern::bench
