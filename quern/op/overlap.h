// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/base/tensor_view.h"

namespace quern {

/// Whether two tensors have an element in common. Of two that are all runs of one pitch, or of which one is a single run, the answer is
/// exact; of others some pass that do. Slices of one buffer that have no element in common, as q, k and v of a fused projection, pass.
bool share_memory(const TensorView& a, const TensorView& b);

}  // namespace quern
