// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/activation/activate_row/activate_row.h"

namespace quern::activation {

const jit::Kernel<ActivateRowConfig, ActivateRowParams> activate_row_kernel{"quern/ops/activation/activate_row/kernel.cuh",
                                                                            "activate_row_chunk"};
const jit::Kernel<ActivateRowGroupsConfig, ActivateRowGroupsParams> activate_row_groups_kernel{
    "quern/ops/activation/activate_row/groups.cuh", "activate_row_groups"};

}  // namespace quern::activation
