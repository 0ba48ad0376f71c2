// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/elementwise/map_row/map_row.h"

namespace quern::elementwise {

const jit::Kernel<MapRowConfig, MapRowParams> map_row_kernel{"quern/ops/elementwise/map_row/kernel.cuh", "map_row_chunk"};

}  // namespace quern::elementwise
