// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out = drafts while u * p[id] < q[id], then a token drawn from max(0, q - p), or from q behind the last draft, then -1
// A block takes a request at a time. Each thread walks over the chain, which is two numbers a draft; then the block reads one row twice: for its largest
// value, and to draw.
#pragma once
#include "quern/bricks/random/philox.cuh"
#include "quern/ops/sampling/filters/survivors.cuh"
#include "quern/ops/sampling/verify_chain/spec.h"

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

/// One element of a row.
template <VerifyChainConfig C> QN_DEVICE f32 prob_at(const void* row, i64 index) {
  using T = dtype_t<C.layout.row.dtype>;
  f32 x[1];
  load_f32<T, 1>(static_cast<const T*>(row) + index, x);
  return x[0];
}

/// What became of a chain.
struct Chain {
  i64 emitted;    ///< drafts that stand: the place of the token that is drawn
  i64 accepted;   ///< drafts that pass the test, also behind the first that does not
  i32 rejected;   ///< the draft at that place; -1: none was rejected
  bool valid;
};

/// A request's rows and random numbers.
template <VerifyChainConfig C> struct Request {
  using T = dtype_t<C.layout.row.dtype>;
  const T* target;   ///< [drafts + 1, vocab]
  const T* draft;    ///< [drafts, vocab]
  const i32* ids;
  u64 seed, offset;
  u32 row;
};

template <VerifyChainConfig C> QN_DEVICE Chain chain_of(const VerifyChainParams& p, const Request<C>& r) {
  Chain c{0, 0, -1, true};
  bool stands = true;
  for (i64 i = 0; i < p.drafts; ++i) {
    const i64 id = ptx::ld_global<i32>(r.ids + i);
    if (id < 0 || id >= p.vocab) break;
    const f32 of_q = prob_at<C>(r.target + i * p.target_place_stride, id);
    f32 of_p = f32(1.f);
    if constexpr (C.certain == 0) of_p = prob_at<C>(r.draft + i * p.draft_place_stride, id);
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

/// A token drawn from q; -1: there is none.
template <VerifyChainConfig C> QN_DEVICE i64 draw_target(const SelectMemory& m, const Row<C.layout.row>& q, u64 bits) {
  const RowFacts facts = facts_of<C.layout>(m, q);
  if (!facts.valid) return -1;
  const Weights<C.layout> weights = weights_of<C.layout>(f32(1.f), facts.key);
  return find_in_row(m, q, [&](i32, f32 x) { return mass_of(weights, x); }, [&](U128 total) { return scaled_by_bits(bits, total); }).index;
}

/// A token drawn from max(0, q - p).
template <VerifyChainConfig C> QN_DEVICE i64 draw_residual(const SelectMemory& m, const Row<C.layout.row>& q, const void* p, i32 rejected, u64 bits) {
  constexpr u64 kBad = ~u64(0);
  const auto p_at = [&](i32 index) {
    if constexpr (C.certain != 0) return f32(index == rejected ? 1.f : 0.f);
    else return prob_at<C>(p, index);
  };
  const auto residual = [](f32 q, f32 p) {
    const f32 more = ptx::fma(p, f32(-1.f), q);
    return more > f32(0.f) ? more : f32(0.f);
  };
  u64 best = 0;
  each_element<Instructions::many>(q, [&](i32 index, f32 x) {
    const f32 y = p_at(index);
    best = max_of(best, !is_q(x) || !is_p(y) ? kBad : u64(ptx::bits_of(residual(x, y))));
  });
  best = block_max<C.layout.row.threads>(m, best);
  if (best == kBad) return -1;
  if (best == 0) return draw_target<C>(m, q, bits);
  const i32 top = weight_of_prob(ptx::f32_of_bits(u32(best))).exponent;
  return find_in_row(m, q, [&](i32 index, f32 x) { return mass_of(weight_of_prob(residual(x, p_at(index))), top); },
                     [&](U128 total) { return scaled_by_bits(bits, total); }).index;
}

template <VerifyChainConfig C> QN_DEVICE void verify_request(const SelectMemory& m, const VerifyChainParams& p, i64 request) {
  using T = dtype_t<C.layout.row.dtype>;
  const Request<C> r{static_cast<const T*>(p.target) + request * p.target_stride,
                     C.certain != 0 ? nullptr : static_cast<const T*>(p.draft) + request * p.draft_stride,
                     p.ids + request * p.ids_stride,
                     u64(p.seeds ? ptx::ld_global<i64>(p.seeds + request) : p.seed),
                     u64(p.offsets ? ptx::ld_global<i64>(p.offsets + request) : p.offset),
                     p.seeds ? 0 : u32(request)};
  const Chain c = chain_of<C>(p, r);
  const Row<C.layout.row> q{r.target + c.emitted * p.target_place_stride, i32(p.vocab)};
  i64 token = -1;
  if (c.valid) {
    const u64 bits = random_bits(r.seed, r.offset + u64(c.emitted), r.row, c.rejected < 0 ? RandomStream::sample : RandomStream::residual);
    if (c.rejected < 0) token = draw_target<C>(m, q, bits);
    else token = draw_residual<C>(m, q, C.certain != 0 ? nullptr : r.draft + c.emitted * p.draft_place_stride, c.rejected, bits);
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
  const SelectMemory m = select_memory(smem);
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  for (i64 request = blockIdx.x; request < p.batch; request += gridDim.x) verify_request<C>(m, p, request);
}

}  // namespace quern::sampling
