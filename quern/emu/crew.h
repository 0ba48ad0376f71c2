// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <functional>

namespace quern::emu {

/// Runs `work` on the calling thread and, as far as threads are free, on up to count - 1 others; returns when every
/// started one has returned. The work must be divisible: whoever comes takes the next piece.
void run_crew(int count, const std::function<void()>& work);

}  // namespace quern::emu
