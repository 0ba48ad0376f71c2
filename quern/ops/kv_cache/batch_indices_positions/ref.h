// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/ref.h"
#include "quern/ops/kv_cache/batch_indices_positions.h"

namespace quern::kv_cache {

/// Request by request, where the kernel goes token by token.
inline void batch_indices_positions_ref(const BatchIndicesPositionsArgs& a, const BatchIndicesPositionsArgs&) {
  const Ref indptr(a.indptr), seq_lens(a.seq_lens);
  const RefOut batch_indices(a.batch_indices), positions(a.positions);
  const i64 tokens = batch_indices.dim(0);
  for (i64 t = 0; t < tokens; ++t) batch_indices.set(-1, t), positions.set(0, t);
  for (i64 b = 0; b < seq_lens.dim(0); ++b) {
    const i64 begin = indptr.index(b), end = indptr.index(b + 1);
    for (i64 t = begin; t < end && t < tokens; ++t)
      if (t >= 0) batch_indices.set(double(b), t), positions.set(double(seq_lens.index(b) - end + t), t);
  }
}

}  // namespace quern::kv_cache
