// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/jit/spec.h"
#include "quern/op/run.h"
#include "quern/ops/attention/hooks.h"

namespace quern::attention {

struct DecodePagedArgs {
  TensorView out;            ///< [batch, heads_q, head_dim] like q
  TensorView out_lse;        ///< optional [batch, heads_q] f32: log2 of the sum of exp of all logits, the sink included
  TensorView q;              ///< [batch, heads_q, head_dim] f16 or bf16
  TensorView k_cache;        ///< [pages, page_size, heads_kv, head_dim] like q; HND or K and V in one tensor are strides
  TensorView v_cache;        ///< [pages, page_size, heads_kv, head_dim] like q
  TensorView page_table;     ///< dense form: [batch, max_pages] i32
  TensorView seq_lens;       ///< dense form: [batch] i32, at most max_pages * page_size each
  TensorView page_indptr;    ///< CSR form: [batch + 1] i32, ascending
  TensorView page_indices;   ///< CSR form: [page_indices] i32
  TensorView last_page_len;  ///< CSR form: [batch] i32 in [1, page_size]; not read for a request without pages
  TensorView sink;           ///< optional [heads_q] f32: a logit in natural units that joins the denominator
  float sm_scale = 0;        ///< factor of logits, from -1e6 to 1e6; 0: 1 / sqrt(head_dim)
  i32 window_left = -1;      ///< token j is visible iff seq_len - 1 - j <= window_left; -1: all
  float soft_cap = 0;        ///< logit = soft_cap * tanh(logit / soft_cap), before the hooks, from 1e-6 to 1e6; 0: none
  i64 max_seq_kv = 0;        ///< CSR form: the longest request; 0: page_indices * page_size. Longer ones break the contract and are cut off. 0 in the dense form
  const jit::Hooks* hooks = nullptr;                ///< hooks_of(text), or an object that lives as long as the process
  alignas(8) u8 hook_params[kHookParamBytes] = {};  ///< handed to the hooks
  TensorView hook_tensors[kHookTensors];            ///< handed to the hooks: f32, f16, bf16, i32, i64 or u8, 1 to 4 dims, any strides
};

/// Attention of one query token a request over a paged KV cache:
///   out[b, h] = sum_j p[j] v[j, h / g],  p = softmax_j(sm_scale * q[b, h] . k[j, h / g]),  g = heads_q / heads_kv.
/// Exactly one form of page table: dense (page_table, seq_lens) or CSR (page_indptr, page_indices, last_page_len); a request
/// of CSR has (pages - 1) * page_size + last_page_len tokens, or none without pages. A request of no tokens gets out 0 and
/// lse -inf. A length beyond what the table can name (dense: max_pages * page_size, CSR: max_seq_kv, where that is given) is cut to that. Entries of the
/// table beyond a request's tokens are never read. Other contents that break these rules have no defined result. Checked emulated devices report
/// both, a length that is cut and contents without a result. Contents of the index tensors are read on the
/// device only: a captured graph may be replayed with other lengths and pages, with the bits that an eager call would give.
/// Flash-decoding with split KV (Dao et al., 2023) and online softmax (Milakov and Gimelshein, arXiv 1805.02867).
/// Throws Error.
QN_API void decode_paged(const DecodePagedArgs& args, const RunOptions& options = {});

}  // namespace quern::attention
