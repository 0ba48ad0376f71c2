// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::elementwise {

struct GatherRowsArgs {
  TensorView out;     ///< [tokens, hidden] like table
  TensorView table;   ///< [rows, hidden] f32, f16 or bf16; with scale 1 also e4m3 or e5m2
  TensorView ids;     ///< [tokens] i32 or i64: a row of the table, or negative: zeros
  float scale = 1.f;  ///< what the rows are multiplied by, in f32; 1: rows are copied bit by bit
};

/// out[t] = table[ids[t]] * scale, or zeros where ids[t] is negative: embeddings (Gemma scales them), the last token of each request,
/// tokens sorted by expert. An id beyond the table gives zeros too; checked emulated devices report it. Rows may be strided. Throws Error.
QN_API void gather_rows(const GatherRowsArgs& args, const RunOptions& options = {});

}  // namespace quern::elementwise
