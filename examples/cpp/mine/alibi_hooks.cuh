// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// ALiBi (Press et al., arXiv 2108.12409) and a block mask, as the attention kernels call them.
#pragma once
#include "quern/kit/kit.cuh"
#include "quern/ops/attention/hooks.cuh"

namespace quern::mine {

/// What a caller writes into PagedArgs::hook_params.
struct AlibiParams {
  i32 block;  // positions in a block of the mask
  i32 first;  // blocks at the start that every query sees
  i32 last;   // blocks at the end that it sees
};

struct AlibiHooks {
  /// The head's slope, tensors[0], for each position that the key lies behind the query.
  QN_DEVICE f32 logit(f32 x, const attention::HookContext& at) {
    return x - real_at(at.tensors[0], at.head_q) * f32(float(at.query_position - at.key_position));
  }
  QN_DEVICE bool visible(const attention::HookContext& at) {
    const AlibiParams& p = *reinterpret_cast<const AlibiParams*>(at.params);
    const i32 block = at.key_position / p.block, blocks = (at.seq_len + p.block - 1) / p.block;
    return block < p.first || block >= blocks - p.last;
  }
};

}  // namespace quern::mine
