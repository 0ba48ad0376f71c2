// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/abi.h"

namespace quern::logits {

/// What becomes of columns behind the last word of a bitmask: tokens that the model's vocabulary has and the mask's has not.
enum class PastMask : i32 { masked, left };

}  // namespace quern::logits
