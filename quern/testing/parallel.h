// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <cstddef>
#include <functional>

#include "quern/kit/abi.h"

namespace quern::testing {

/// Calls f(begin, end) for pieces of [0, count) on all CPUs, on this thread alone below two pieces of `least`. An
/// exception of f is thrown again here. What f does must not depend on the pieces.
void in_parallel(i64 count, i64 least, const std::function<void(i64 begin, i64 end)>& f);

/// memset and memcpy by all CPUs: fresh pages cost a fault each, 0.25 us a page on one CPU.
void parallel_fill(void* to, int byte, size_t bytes);
void parallel_copy(void* to, const void* from, size_t bytes);

}  // namespace quern::testing
