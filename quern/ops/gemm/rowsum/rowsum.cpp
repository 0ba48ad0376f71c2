// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/gemm/rowsum/rowsum.h"

namespace quern::gemm {

const jit::Kernel<ColumnSumsConfig, ColumnSumsParams> column_sums_kernel{"quern/ops/gemm/rowsum/column_sums.cuh", "rowsum_column_sums"};

}  // namespace quern::gemm
