// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Rows of a request: probabilities, or logits of which an element's probability is its share (filters/shares.cuh).
#pragma once
#include "quern/ops/sampling/filters/shares.cuh"
#include "quern/ops/sampling/verify_chain/spec.h"

namespace quern::sampling {

template <VerifyChainConfig C> constexpr bool kOfLogits = C.layout.kind == RowKind::logits;

/// A row of the target or of the drafts.
template <VerifyChainConfig C> struct ChainRow {
  const dtype_t<C.layout.row.dtype>* data;
  RowShares<C.layout> shares;  ///< of logits
};

/// The probability of an element whose value is x.
template <VerifyChainConfig C> QN_DEVICE f32 prob_of(const ChainRow<C>& row, i64 index, f32 x) {
  if constexpr (kOfLogits<C>) return share_at(row.shares, index, x);
  else return x;
}
template <VerifyChainConfig C> QN_DEVICE f32 prob_at(const ChainRow<C>& row, i64 index) {
  f32 x[1];
  load_f32<dtype_t<C.layout.row.dtype>, 1>(row.data + index, x);
  return prob_of(row, index, x[0]);
}

QN_DEVICE f32 temperature_of(const VerifyChainParams& p, i64 request) {
  return p.temperatures ? ptx::ld_global<f32>(p.temperatures + request) : f32(p.temperature);
}

/// Values of the row of the target, or of the drafts, at a place.
template <VerifyChainConfig C> QN_DEVICE const dtype_t<C.layout.row.dtype>* row_data(const VerifyChainParams& p, i64 request, bool of_draft,
                                                                                     i64 place) {
  using T = dtype_t<C.layout.row.dtype>;
  return of_draft ? static_cast<const T*>(p.draft) + request * p.draft_stride + place * p.draft_place_stride
                  : static_cast<const T*>(p.target) + request * p.target_stride + place * p.target_place_stride;
}
template <VerifyChainConfig C> QN_DEVICE ChainRow<C> chain_row(const VerifyChainParams& p, i64 request, bool of_draft, i64 place) {
  ChainRow<C> row{row_data<C>(p, request, of_draft, place), {}};
  if constexpr (kOfLogits<C>) {
    const i64 at = request * chain_rows(p.drafts, C.certain != 0) + (of_draft ? p.drafts + 1 : 0) + place;
    row.shares = load_shares<C.layout>(p.shares + at, temperature_of(p, request));
  }
  return row;
}

}  // namespace quern::sampling
