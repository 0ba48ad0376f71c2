// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What all variants of gemm.scaled read from a call.
#pragma once
#include "quern/bricks/gemm/scales_spec.h"
#include "quern/op/schema.h"
#include "quern/ops/gemm/scaled.h"

namespace quern::gemm {

/// Of an operand with `rows` rows.
Scales scales_of(const TensorView& view, i64 rows);

}  // namespace quern::gemm
