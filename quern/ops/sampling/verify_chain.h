// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::sampling {

struct VerifyChainArgs {
  TensorView out;           ///< [batch, drafts + 1] i32: the drafts that were accepted, the token drawn behind them, then -1
  TensorView accepted;      ///< optional [batch] i32: increased by how many drafts pass the test, each on its own
  TensorView emitted;       ///< optional [batch] i32: increased by how many drafts were emitted
  TensorView valid;         ///< optional [batch] u8: 1, or 0 where no token could be drawn; it is 0 in out then
  TensorView target_probs;  ///< [batch, drafts + 1, vocab] f32, f16 or bf16: q, the model's probabilities at each place
  TensorView draft_ids;     ///< [batch, drafts] i32: the chain; negative: it ends before
  TensorView
      draft_probs;  ///< optional [batch, drafts, vocab] like target_probs: p, what the drafts were drawn from; absent: drafts are certain
  TensorView target_logits;  ///< in the place of target_probs, the same shape and dtypes: q = softmax(target_logits / temperature)
  TensorView draft_logits;   ///< optional, in the place of draft_probs beside target_logits: p = softmax(draft_logits / temperature)
  TensorView temperatures;   ///< optional [batch] f32, in the place of temperature
  TensorView seeds;          ///< optional [batch] i64, in the place of seed
  TensorView offsets;        ///< optional [batch] i64, in the place of offset
  float temperature = 1.0f;  ///< logits are divided by it; below 1e-5 the probability is 1 at the largest logit, the first of equal ones
  i64 seed = 0;              ///< 64 bits, the key of Philox
  i64 offset = 0;            ///< 64 bits of its counter; place i of the chain has offset + i
};

/// Which drafts of each request stand, and the token behind them (speculative sampling of a chain): the tokens are distributed as if each
/// were drawn from q. Draft i is accepted where u * p[id] < q[id], u = 64 random bits / 2^64, compared as exact integers: so p = 0 is
/// accepted if q > 0, and q = 0 never. At the first that is not, a token is drawn from max(0, q - p), each difference rounded once to f32;
/// from q where all of these are 0. Behind a chain that was accepted as a whole, or that ended early, a token is drawn from q: the one that
/// sampling.sample draws from these probs with the offset of that place. Draws are as of sampling.sample (docs/sampling.md), so the tokens
/// depend on the request, its seed and its offset alone. Random numbers of place i: counter (offset + i, row, stream), stream 1 for the
/// test, 2 for the draw from max(0, q - p), 0 for one from q; row is the request, or 0 where seeds are a tensor. Without draft_probs a
/// draft has p = 1 (drafts of n-grams, or greedy ones). Of logits q and p are f32 numbers, those that sampling.softmax gives: the tokens
/// are those of sampling.softmax and then verify_chain of its results. A request is not valid where p or q of a draft in the chain, or a
/// row that is drawn from, has a NaN, a number below 0 or, in p, an infinity, and where q is 0 throughout. accepted and emitted are added
/// to. Throws Error.
QN_API void verify_chain(const VerifyChainArgs& args, const RunOptions& options = {});

}  // namespace quern::sampling
