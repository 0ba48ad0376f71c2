// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/base/tensor_view.h"

namespace quern {

/// Whether two tensors have an element in common. The answer is exact if both consist of runs of one pitch, or if one of them is a single
/// run. Of other pairs some are not found. Slices of one buffer without a common element, as q, k and v of a fused projection, are told
/// apart.
bool share_memory(const TensorView& a, const TensorView& b);

}  // namespace quern
