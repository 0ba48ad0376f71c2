// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// shares[row] = what the probability of an element of a row of logits depends on, but for the logit
// A block takes a row at a time and reads it twice. Rows behind the end of a chain are left out: no one reads what they have.
#pragma once
#include "quern/ops/sampling/verify_chain/rows.cuh"

namespace quern::sampling {

/// Whether the chain of a request comes to this place: the drafts before it are tokens.
QN_DEVICE bool chain_reaches(const VerifyChainParams& p, i64 request, i64 place) {
  for (i64 i = 0; i < place; ++i) {
    const i64 id = ptx::ld_global<i32>(p.ids + request * p.ids_stride + i);
    if (id < 0 || id >= p.vocab) return false;
  }
  return true;
}

template <VerifyChainConfig C> QN_DEVICE void verify_chain_shares(const VerifyChainParams& p) {
  QN_SMEM(smem);
  Team<C.layout.row> team = team_of<C.layout.row>(smem);
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  const i64 rows = chain_rows(p.drafts, C.certain != 0);
  for (i64 at = blockIdx.x; at < p.batch * rows; at += gridDim.x) {
    const i64 request = at / rows, row = at - request * rows;
    const bool of_draft = row > p.drafts;
    const i64 place = of_draft ? row - p.drafts - 1 : row;
    // A draft's row is read where the draft itself is a token
    if (!chain_reaches(p, request, of_draft ? place + 1 : place)) continue;
    const auto shares =
        shares_of<C.layout>(team, row_of(team, row_data<C>(p, request, of_draft, place), p.vocab), temperature_of(p, request));
    if (threadIdx.x == 0) store_shares(p.shares + at, shares);
    ptx::sync_block();
  }
}

}  // namespace quern::sampling
