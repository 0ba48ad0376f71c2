// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/activation/activate_row_backward/activate_row_backward.h"

namespace quern::activation {

const jit::Kernel<ActivateRowBackwardConfig, ActivateRowBackwardParams> activate_row_backward_kernel{
    "quern/ops/activation/activate_row_backward/kernel.cuh", "activate_row_backward_chunk"};

}  // namespace quern::activation
