// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/ops/attention/ragged.h"
#include "quern/ops/attention/ref.h"

namespace quern::attention {

/// Request b of a ragged call.
inline RefRequest ragged_request(const RaggedArgs& a, i64 b) {
  const Ref<> q(a.q_indptr), kv(a.kv_indptr);
  const i64 begin = q.index(b), length = kv.index(b + 1) - kv.index(b);
  return {begin, q.index(b + 1) - begin, length, length};
}

/// For Schema::token.
inline bool keep_ragged_token(RaggedArgs& a, i64 t, std::vector<i32>& indices) {
  if (a.q_indptr.shape[0] < 2) return false;
  const i64 b = request_of_token(a.q_indptr, t), first = Ref<>(a.kv_indptr).index(b);
  const i64 length = keep_query(a, t, b, ragged_request(a, b), indices);
  if (length < 0) return false;
  indices.push_back(i32(first)), indices.push_back(i32(first + length));
  a.q_indptr = view_of(indices, 0, 2, a.q_indptr), a.kv_indptr = view_of(indices, 2, 2, a.kv_indptr);
  return true;
}

/// With the caller's own transform and mask of logits: what a variant's reference is made of.
template <class Real = double, class Logit, class Visible>
void ragged_ref_with(const RaggedArgs& a, const RaggedArgs& magnitudes, const Logit& logit, const Visible& visible) {
  const Ref<Real> k(a.k), v(a.v);
  const Ref<> kv(a.kv_indptr);
  attend_ref<Real>(
      a, magnitudes, a.q_indptr.shape[0] - 1, k.dim(1), v.dim(2), [&](i64 b) { return ragged_request(a, b); },
      [&](i64 b, i64 j, i64 head, Real* to) { k.row({kv.index(b) + j, head}, to); },
      [&](i64 b, i64 j, i64 head, Real* to) { v.row({kv.index(b) + j, head}, to); }, logit, visible);
}

template <class Real = double> void ragged_ref(const RaggedArgs& a, const RaggedArgs& magnitudes) {
  ragged_ref_with<Real>(a, magnitudes, [](Real x, const HookContext&) { return x; }, [](const HookContext&) { return true; });
}

}  // namespace quern::attention
