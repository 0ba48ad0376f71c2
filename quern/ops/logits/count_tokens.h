// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::logits {

struct CountTokensArgs {
  TensorView counts;       ///< [slots, vocab] i32, or absent: what logits.process reads
  TensorView prompt_bits;  ///< [slots, ceil(vocab / 32)] i32, or absent: bit j of word w is token 32 w + j
  TensorView ids;          ///< [tokens] i32 or i64: negative ones are passed over
  TensorView slots;        ///< [tokens] i32: the row of counts and prompt_bits of each token; negative: it is passed over
};

/// counts[slots[i], ids[i]] += 1, and bit ids[i] of prompt_bits[slots[i]] becomes 1, for each token i: of the two what is given. After a
/// prefill give prompt_bits and the prompts' tokens, after each step counts and the tokens that were drawn. Several tokens of one slot, and
/// one token several times, all count: additions are atomic, so the result does not depend on their order. Counts are not cut at 2^31 - 1.
/// Tokens and slots beyond the tensors are passed over; checked emulated devices report them. Whoever gives a slot to another request sets
/// its rows to 0. Throws Error.
QN_API void count_tokens(const CountTokensArgs& args, const RunOptions& options = {});

}  // namespace quern::logits
