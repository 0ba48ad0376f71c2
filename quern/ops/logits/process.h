// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"
#include "quern/ops/logits/past_mask_spec.h"

namespace quern::logits {

struct ProcessArgs {
  TensorView out;          ///< [rows, vocab] like logits, which it may be itself
  TensorView logits;       ///< [rows, vocab] f32, f16 or bf16
  TensorView bitmask;      ///< optional [masks, mask_words] i32: bit j of word w is token 32 w + j, 1 allowed (xgrammar's form)
  TensorView mask_rows;    ///< optional [rows] i32: the row of bitmask of each row, negative: none; absent: its own
  TensorView bias;         ///< optional [bias_rows, vocab] f32: a row each, or one for all
  TensorView bias_ids;     ///< optional [rows, biased] i32, in the place of bias: tokens; those outside the vocabulary are padding
  TensorView bias_values;  ///< [rows, biased] f32, beside bias_ids; of several values for a token the last one counts
  TensorView counts;       ///< optional [slots, vocab] i32: how often each token stands in the output so far
  TensorView prompt_bits;  ///< optional [slots, ceil(vocab / 32)] i32: bits as of bitmask, 1 for tokens of the prompt
  TensorView slots;        ///< optional [rows] i32: the row of counts and prompt_bits of each row, negative: none; absent: its own
  TensorView
      prompt_tokens;  ///< optional [rows, prompt_length] i32 or i64, in the place of prompt_bits; tokens outside the vocabulary are padding
  TensorView output_tokens;               ///< optional [rows, output_length] i32 or i64, in the place of counts
  TensorView repetition_penalties;        ///< optional [rows] f32, in the place of repetition_penalty
  TensorView frequency_penalties;         ///< optional [rows] f32, in the place of frequency_penalty
  TensorView presence_penalties;          ///< optional [rows] f32, in the place of presence_penalty
  float soft_cap = 0.0f;                  ///< logits become soft_cap * tanh(logit / soft_cap), from 1e-30 to 1e30; 0: they do not
  float repetition_penalty = 1.0f;        ///< r > 0
  float frequency_penalty = 0.0f;         ///< a
  float presence_penalty = 0.0f;          ///< b
  PastMask past_mask = PastMask::masked;  ///< what becomes of columns from 32 mask_words on, in rows that have a mask
};

/// Logits between the model and the sampler, in one read and one write. In this order, for each logit l of a token that stands c times in
/// the output:
///   soft cap     l = soft_cap * tanh(l / soft_cap)
///   bitmask      l = -inf where the bit is 0
///   bias         l = l + bias
///   repetition   l = l > 0 ? l / r : l * r     where c > 0 or the token is in the prompt
///   frequency    l = l - a * c                 where c > 0
///   presence     l = l - b                     where c > 0
/// as vLLM has it. Each step is f32 and rounded once (a * c is not rounded on its own; the soft cap has a relative error below 2^-20.6),
/// and the result is rounded to the dtype of logits. A logit of -inf stays -inf in every step. NaN stays NaN unless it is masked. Without
/// soft_cap every device gives the same bits. A row becomes NaN where its repetition penalty in a tensor is not above 0 and finite, or
/// another penalty in a tensor is not finite. A row of mask_rows or slots beyond bitmask, counts or prompt_bits has none; checked emulated
/// devices report it. Counts below 0 are 0. Throws Error.
QN_API void process(const ProcessArgs& args, const RunOptions& options = {});

}  // namespace quern::logits
