// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/jit/spec.h"
#include "quern/op/run.h"
#include "quern/ops/attention/hooks.h"
#include "quern/ops/attention/lse_base.h"

namespace quern::attention {

struct RaggedArgs {
  TensorView out;          ///< [tokens, heads_q, head_dim_v] like q; bf16 or f16 where q is FP8
  TensorView out_lse;      ///< optional [tokens, heads_q] f32, any strides: log of the sum of exp of all logits, the sink included
  TensorView q;            ///< [tokens, heads_q, head_dim] bf16, f16, e4m3 or e5m2
  TensorView k;            ///< [tokens_kv, heads_kv, head_dim] like q; e4m3 or e5m2 beside a q of 16 bits
  TensorView v;            ///< [tokens_kv, heads_kv, head_dim_v] like k
  TensorView q_indptr;     ///< [batch + 1] i32, ascending: query tokens of request b are q_indptr[b] .. q_indptr[b + 1] - 1
  TensorView kv_indptr;    ///< [batch + 1] i32, ascending: the same of keys
  TensorView mask;         ///< optional [mask_bytes] u8: bits, 1 is visible; bit i * len + j of a request is query token i and key j
  TensorView mask_indptr;  ///< [batch + 1] i32, with mask: the first byte of each request
  TensorView
      sink;  ///< optional [heads_q] f32, bf16 or f16: a logit in natural units, neither scaled nor capped, that joins the denominator
  TensorView q_scale;                 ///< optional [tokens, heads_q] f32, any strides, 0 too: a logit's factor
  TensorView k_scale;                 ///< optional [batch, heads_kv] f32, any strides, 0 too: a logit's factor
  TensorView v_scale;                 ///< optional [batch, heads_kv] f32, any strides, 0 too: factor of the result
  float sm_scale = 0;                 ///< factor of logits, from -1e6 to 1e6; 0: 1 / sqrt(head_dim)
  bool causal = false;                ///< a query sees keys up to its own position
  i32 window_left = -1;               ///< a query at position p sees key j only if p - j <= window_left; -1: no bound
  i32 window_right = -1;              ///< and only if j - p <= window_right; -1: no bound
  float soft_cap = 0;                 ///< logit = soft_cap * tanh(logit / soft_cap), before the hooks, from 1e-6 to 1e6; 0: none
  float out_scale = 1;                ///< factor of the result
  LseBase lse_base = LseBase::two;    ///< what out_lse is a logarithm to
  i64 max_seq_q = 0;                  ///< most query tokens of a request: chooses the plan and never the result; 0: unknown
  const jit::Hooks* hooks = nullptr;  ///< hooks_of(text), or an object that lives as long as the process
  alignas(8) u8 hook_params[kHookParamBytes] = {};  ///< handed to the hooks
  TensorView hook_tensors[kHookTensors];            ///< handed to the hooks: f32, f16, bf16, i32, i64 or u8, 1 to 4 dims, any strides
};

/// Attention of requests of any number of query tokens over keys that lie one after the other:
///   out[t, h] = v_scale * out_scale * sum_j p[j] v[j, h / g],  p = softmax_j(x[j]),  g = heads_q / heads_kv,
///   x[j] = hook(cap * tanh(sm_scale * q_scale * k_scale * q[t, h] . k[j, h / g] / cap)).
/// Query token i of n of a request of `len` keys has position p = len - n + i, causal or not. It sees key j where causality, the windows,
/// the mask's bit and a hook's `visible` all allow it. A query that sees nothing gets out 0 and lse -inf, with a sink the sink's. Tokens of
/// q outside of [q_indptr[0], q_indptr[batch]) are neither read nor written. A NaN that a query sees is in its out and out_lse. FP8 is
/// exact: scale * stored value. Contents of index tensors are read on the device only, so one captured graph serves every batch of these
/// shapes; checked emulated devices report those that break the rules above. Every row is summed in an order of its own request's sizes
/// alone. FlashAttention-2 (Dao, arXiv 2307.08691) and online softmax (Milakov and Gimelshein, arXiv 1805.02867). Throws Error.
QN_API void ragged(const RaggedArgs& args, const RunOptions& options = {});

}  // namespace quern::attention
