// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/device/device.h"
#include "quern/jit/spec.h"

namespace quern::jit {

/// The loaded kernel of a spec on a device. A hit takes no lock and allocates nothing; a miss builds (disk cache, else
/// compile) and loads. Error{frozen} when that would be needed while the stream is capturing,
/// or a compile after freeze().
Function get(const KernelSpec& spec, Device& device, Stream stream);

/// How many kernels this process has compiled and how many it took from the disk cache so far.
struct Counters {
  i64 compiled = 0, from_disk = 0;
};
Counters counters();

}  // namespace quern::jit
