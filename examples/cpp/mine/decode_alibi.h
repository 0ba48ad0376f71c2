// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/ops/attention/paged.h"

namespace quern::mine {

/// What goes into PagedArgs::hook_params; alibi_hooks.cuh reads it.
struct Alibi {
  i32 block = 64;  ///< positions in a block of the mask, at least 1
  i32 first = 1;   ///< blocks at the start that every query sees
  i32 last = 4;    ///< blocks at the end that it sees
};

/// attention.paged whose logits lose slopes[h] * (query_position - key_position), over the first and the last blocks of
/// positions only. `hook_params` holds an Alibi, `hook_tensors[0]` the slopes, [heads_q] f32. Throws Error.
QN_API void decode_alibi(const attention::PagedArgs& args, const RunOptions& options = {});

}  // namespace quern::mine
