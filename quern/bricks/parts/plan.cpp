// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/bricks/parts/plan.h"

namespace quern::parts {

const jit::Kernel<SumPartsConfig, SumPartsParams> sum_parts_kernel{"quern/bricks/parts/sum_parts.cuh", "sum_parts"};

}  // namespace quern::parts
