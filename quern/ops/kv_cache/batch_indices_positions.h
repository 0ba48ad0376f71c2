// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::kv_cache {

struct BatchIndicesPositionsArgs {
  TensorView batch_indices;  ///< [nnz] i32 or i64
  TensorView positions;      ///< [nnz] of the same dtype
  TensorView indptr;         ///< [batch + 1] i32 or i64, ascending: request b has the tokens from indptr[b] to indptr[b + 1]
  TensorView seq_lens;       ///< [batch] i32 or i64: tokens of each request in the cache, those of this step included
  i64 nnz = 0;               ///< tokens: the elements of batch_indices and positions, as FlashInfer names their number
};

/// For token t of request b: batch_indices[t] = b, positions[t] = seq_lens[b] - (indptr[b + 1] - t). Tokens of no request, as a captured
/// graph pads its batch with, get batch_indices -1 and positions 0: append_paged skips them. Nothing leaves the device. Throws Error.
QN_API void batch_indices_positions(const BatchIndicesPositionsArgs& args, const RunOptions& options = {});

}  // namespace quern::kv_cache
