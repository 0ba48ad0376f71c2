// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/abi.h"

namespace quern::sampling {

/// What top-p sees: the tokens that top-k keeps, with their sum as the whole (as FlashInfer and vLLM do by default), or all of them; then
/// both tests are of one distribution.
enum class FilterOrder : i32 { top_k_first, joint };

/// What top-k and top-p keep of equal values at their end: as many as they count, of the lowest ids, or all of them (as FlashInfer's
/// filters do).
enum class FilterTies : i32 { lowest_ids, all };

}  // namespace quern::sampling
