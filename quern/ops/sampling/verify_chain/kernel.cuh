// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out = drafts while u * p[id] < q[id], then a token drawn from max(0, q - p), or from q behind the last draft, then -1
// A block takes a request at a time. Each thread walks over the chain, which is two numbers a draft; then the block reads one row twice:
// for its largest value, and to draw. Of logits q and p are what softmax makes of them; the launch before has found what that takes
// (shares.cuh).
#pragma once
#include "quern/bricks/random/philox.cuh"
#include "quern/ops/sampling/verify_chain/rows.cuh"

namespace quern::sampling {

/// bits / 2^64 * p < q of probabilities, exactly.
QN_DEVICE bool accepts(u64 bits, f32 p, f32 q) {
  const Weight of_p = weight_of_prob(p), of_q = weight_of_prob(q);
  if (of_q.mantissa == 0) return false;
  const U128 left = product(bits, u64(of_p.mantissa));  // below 2^88
  const int by = of_q.exponent - of_p.exponent + 64;
  if (by >= 96) return true;
  if (by >= 0) return left < shifted_left({of_q.mantissa, 0}, by);
  return left < shifted_right_up({of_q.mantissa, 0}, -by);
}

QN_DEVICE bool is_q(f32 q) { return q >= f32(0.f); }
QN_DEVICE bool is_p(f32 p) { return p >= f32(0.f) && is_finite(p); }

/// What became of a chain.
struct Chain {
  i64 emitted;   ///< drafts that stand: the place of the token that is drawn
  i64 accepted;  ///< drafts that pass the test, also behind the first that does not
  i32 rejected;  ///< the draft at that place; -1: none was rejected
  bool valid;
};

/// A request's drafts and random numbers.
struct Request {
  i64 index;
  const i32* ids;
  u64 seed, offset;
  u32 row;
};

template <VerifyChainConfig C> QN_DEVICE Chain chain_of(const VerifyChainParams& p, const Request& r) {
  Chain c{0, 0, -1, true};
  bool stands = true;
  for (i64 i = 0; i < p.drafts; ++i) {
    const i64 id = ptx::ld_global<i32>(r.ids + i);
    if (id < 0 || id >= p.vocab) break;
    const f32 of_q = prob_at(chain_row<C>(p, r.index, false, i), id);
    f32 of_p = f32(1.f);
    if constexpr (C.certain == 0) of_p = prob_at(chain_row<C>(p, r.index, true, i), id);
    if (!is_q(of_q) || !is_p(of_p)) {
      c.valid = !stands;
      break;
    }
    const bool passes = accepts(random_bits(r.seed, r.offset + u64(i), r.row, RandomStream::accept), of_p, of_q);
    c.accepted += passes;
    if (!stands) continue;
    if (passes) ++c.emitted;
    else stands = false, c.rejected = i32(id);
  }
  return c;
}

/// The largest probability of a row; NaN: there is none, or one that is no probability.
template <VerifyChainConfig C> QN_DEVICE f32 largest_prob(Team<C.layout.row>& team, const ChainRow<C>& q, i32 vocab) {
  if constexpr (kOfLogits<C>) {
    return largest_share(q.shares);
  } else {
    const RowFacts facts = facts_of<C.layout>(team, row_of(team, q.data, vocab));
    return value_of_key(facts.valid ? facts.key : 0);
  }
}

/// A token drawn from q; -1: there is none.
template <VerifyChainConfig C> QN_DEVICE i64 draw_target(Team<C.layout.row>& team, const ChainRow<C>& q, i32 vocab, u64 bits) {
  const f32 largest = largest_prob(team, q, vocab);
  if (is_nan(largest)) return -1;
  const i32 top = weight_of_prob(largest).exponent;
  return find_in_row(
             team, row_of(team, q.data, vocab), [&](i32 index, f32 x) { return mass_of(weight_of_prob(prob_of(q, index, x)), top); },
             [&](U128 total) { return scaled_by_bits(bits, total); })
      .index;
}

/// A token drawn from max(0, q - p).
template <VerifyChainConfig C> QN_DEVICE i64 draw_residual(Team<C.layout.row>& team, const ChainRow<C>& q, const ChainRow<C>& p, i32 vocab,
                                                           i32 rejected, u64 bits) {
  constexpr u64 kBad = ~u64(0);
  const Row<C.layout.row> row = row_of(team, q.data, vocab);
  const auto p_at = [&](i32 index) {
    if constexpr (C.certain != 0) return f32(index == rejected ? 1.f : 0.f);
    else return prob_at(p, index);
  };
  const auto residual = [](f32 q, f32 p) {
    const f32 more = ptx::fma(p, f32(-1.f), q);
    return more > f32(0.f) ? more : f32(0.f);
  };
  u64 best = 0;
  each_element(row, [&](i32 index, f32 x) {
    const f32 of_q = prob_of(q, index, x), of_p = p_at(index);
    best = max_of(best, !is_q(of_q) || !is_p(of_p) ? kBad : u64(ptx::bits_of(residual(of_q, of_p))));
  });
  best = team_max(team, best);
  if (best == kBad) return -1;
  if (best == 0) return draw_target(team, q, vocab, bits);
  const i32 top = weight_of_prob(ptx::f32_of_bits(u32(best))).exponent;
  return find_in_row(
             team, row, [&](i32 index, f32 x) { return mass_of(weight_of_prob(residual(prob_of(q, index, x), p_at(index))), top); },
             [&](U128 total) { return scaled_by_bits(bits, total); })
      .index;
}

template <VerifyChainConfig C> QN_DEVICE void verify_request(Team<C.layout.row>& team, const VerifyChainParams& p, i64 request) {
  const Request r{request, p.ids + request * p.ids_stride, u64(p.seeds ? ptx::ld_global<i64>(p.seeds + request) : p.seed),
                  u64(p.offsets ? ptx::ld_global<i64>(p.offsets + request) : p.offset), p.seeds ? 0 : u32(request)};
  const Chain c = chain_of<C>(p, r);
  i64 token = -1;
  if (c.valid) {
    const u64 bits = random_bits(r.seed, r.offset + u64(c.emitted), r.row, c.rejected < 0 ? RandomStream::sample : RandomStream::residual);
    const ChainRow<C> q = chain_row<C>(p, request, false, c.emitted);
    if (c.rejected < 0) token = draw_target(team, q, i32(p.vocab), bits);
    else if constexpr (C.certain != 0) token = draw_residual(team, q, {}, i32(p.vocab), c.rejected, bits);
    else token = draw_residual(team, q, chain_row<C>(p, request, true, c.emitted), i32(p.vocab), c.rejected, bits);
  }
  for (i64 i = threadIdx.x; i <= p.drafts; i += C.threads)
    p.out[request * p.out_stride + i] = i < c.emitted ? ptx::ld_global<i32>(r.ids + i) : i > c.emitted ? -1 : token < 0 ? 0 : i32(token);
  if (threadIdx.x != 0) return;
  if (p.valid) p.valid[request] = token >= 0;
  if (p.accepted) p.accepted[request] += i32(c.accepted);
  if (p.emitted) p.emitted[request] += i32(c.emitted);
}

template <VerifyChainConfig C> QN_DEVICE void verify_chain_row(const VerifyChainParams& p) {
  QN_SMEM(smem);
  Team<C.layout.row> team = team_of<C.layout.row>(smem);
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  for (i64 request = blockIdx.x; request < p.batch; request += gridDim.x) {
    verify_request<C>(team, p, request);
    ptx::sync_block();
  }
}

}  // namespace quern::sampling
