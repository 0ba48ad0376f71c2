// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/abi.h"

namespace quern {

/// The last word of Philox's counter: what a random number is for. Part of the contract of docs/sampling.md: append, never renumber.
enum class RandomStream : i32 { sample, accept, residual, draft };

}  // namespace quern
