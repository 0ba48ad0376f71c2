// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::mine {

struct ScaleRowsArgs {
  TensorView out;     ///< [tokens, hidden]
  TensorView x;       ///< [tokens, hidden] f32, f16 or bf16
  TensorView factor;  ///< [tokens] f32
};

/// out[t, h] = x[t, h] * factor[t], in f32, rounded once. Rows may be strided. Throws Error.
QN_API void scale_rows(const ScaleRowsArgs& args, const RunOptions& options = {});

}  // namespace quern::mine
