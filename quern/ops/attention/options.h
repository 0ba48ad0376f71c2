// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What the schemas of attention.ragged and attention.paged state alike.
#pragma once
#include "quern/op/schema.h"

namespace quern::attention {

/// The packed mask, the sink and the scales.
template <class A> Schema<A>& state_masks_and_scales(Schema<A>& schema) {
  return schema.in("mask", &A::mask, "mask_bytes", {DType::u8})
      .optional()
      .values(generated())
      .contents(each_within("0", "255"))
      .meaning("bits, little-endian in a byte, 1 is visible; bit i * len + j of a request is query token i and key j")
      .in("mask_indptr", &A::mask_indptr, "batch+1", {DType::i32})
      .optional()
      .values(generated())
      .contents(each_within("0", "mask_bytes").ascending())
      .meaning("the first byte of each request in mask")
      .in("sink", &A::sink, "heads_q", {DType::f32, DType::bf16, DType::f16})
      .optional()
      .meaning("a logit in natural units that joins the denominator")
      .in("q_scale", &A::q_scale, "tokens heads_q", {DType::f32})
      .optional()
      .strided()
      .values(generated())
      .meaning("a logit's factor; strides of 0 make one of many")
      .in("k_scale", &A::k_scale, "batch heads_kv", {DType::f32})
      .optional()
      .strided()
      .values(generated())
      .meaning("a logit's factor")
      .in("v_scale", &A::v_scale, "batch heads_kv", {DType::f32})
      .optional()
      .strided()
      .values(generated())
      .meaning("the result's factor");
}

/// Attributes that say what is seen and how it is scaled, and the hint of query tokens.
template <class A> Schema<A>& state_attributes(Schema<A>& schema) {
  return schema.attr("sm_scale", &A::sm_scale)
      .meaning("factor of logits, from -1e6 to 1e6; 0: 1 / sqrt(head_dim)")
      .attr("causal", &A::causal)
      .meaning("a query sees keys up to its own position; the last query token stands at the last key")
      .attr("window_left", &A::window_left)
      .meaning("keys before a query's own position that it sees; -1: all")
      .attr("window_right", &A::window_right)
      .meaning("keys behind it that it sees; -1: all. Beside causal, which hides them: -1 or 0")
      .attr("soft_cap", &A::soft_cap)
      .meaning("logit = soft_cap * tanh(logit / soft_cap), from 1e-6 to 1e6; 0: none")
      .attr("out_scale", &A::out_scale)
      .meaning("factor of the result, from -1e6 to 1e6")
      .attr("lse_base", &A::lse_base)
      .words({"two", "e"})
      .meaning("what out_lse is a logarithm to")
      .attr("max_seq_q", &A::max_seq_q)
      .meaning("most query tokens of a request; 0: unknown")
      .hint();
}

}  // namespace quern::attention
