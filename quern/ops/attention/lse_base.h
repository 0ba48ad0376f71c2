// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/abi.h"

namespace quern::attention {

/// What a log-sum-exp is a logarithm to: 2, as FlashInfer has it, or e, as FlashAttention, vLLM and SGLang do.
enum class LseBase : i32 { two, e };

}  // namespace quern::attention
