// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"
#include "quern/ops/attention/lse_base.h"

namespace quern::attention {

struct MergeStatesArgs {
  TensorView out;        ///< [tokens, heads_q, head_dim]; may be v_other
  TensorView out_lse;    ///< optional [tokens, heads_q] f32; may be lse_other
  TensorView v;          ///< [parts, tokens, heads_q, head_dim] f32, f16 or bf16: out of attention over each part of the keys
  TensorView lse;        ///< [parts, tokens, heads_q] f32: its log-sum-exp; -inf and inf: the part is empty, and its v is not read
  TensorView v_other;    ///< optional [tokens, heads_q, head_dim]: one part more, as the result of an earlier merge
  TensorView lse_other;  ///< [tokens, heads_q] f32, given with v_other
  TensorView mask;       ///< optional [tokens] u8: 0 leaves the token's out and out_lse as they are
  LseBase lse_base = LseBase::two;  ///< of lse, lse_other and out_lse
};

/// Attention over all keys from that over parts of them:
///     out = sum_i w_i v_i / sum_i w_i, w_i = base^(lse_i - max lse), out_lse = max lse + log_base(sum_i w_i)
/// in f32, parts in ascending order and v_other last. All parts empty: out is 0 and out_lse -inf. A NaN in a part's lse, or in the v of a
/// part that is not empty, stays NaN. Strides of all but head_dim are free. With it attention over a shared prefix is attention over the
/// prefix, attention over the rest, and a merge; any number of levels. Throws Error.
QN_API void merge_states(const MergeStatesArgs& args, const RunOptions& options = {});

}  // namespace quern::attention
