// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/schema.h"
#include "quern/ops/attention/decode_paged.h"

namespace quern::attention {

constexpr i64 kMostTokens = i64(1) << 30;  ///< of a request: positions and their sums with a tile fit an i32

/// Lengths that both forms may have, and pages of the cache for each token that the query sees.
Breach decode_paged_contract(const DecodePagedArgs& args, const Problem& problem);

}  // namespace quern::attention
