// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "quern/ops/sampling/filters/filter_ref.h"
#include "quern/ops/sampling/verify_chain.h"

namespace quern::sampling {

/// bits / 2^64 * p < q, by bringing both to one exponent.
inline bool accepts_ref(u64 bits, double p, double q) {
  const WeightRef a = prob_weight_ref(p), b = prob_weight_ref(q);
  u128 left = u128(bits) * a.m, right = b.m;
  if (right == 0 || left == 0) return right != 0;
  i64 more = b.e - a.e + 64;  // left < right * 2^more
  for (; more > 0 && right >> 127 == 0; --more) right <<= 1;
  for (; more < 0 && left >> 127 == 0; ++more) left <<= 1;
  return more > 0 || (more == 0 && left < right);
}

/// A token drawn from a row of numbers in proportion to probabilities; -1: there is none.
inline i64 draw_ref(const std::vector<double>& row, u64 bits) {
  std::vector<WeightRef> weights;
  i64 top = std::numeric_limits<i64>::min();
  for (const double x : row) {
    if (!(x >= 0)) return -1;
    weights.push_back(prob_weight_ref(x));
    if (x > 0) top = std::max(top, weights.back().e);
  }
  u128 total = 0, sum = 0;
  for (const WeightRef& w : weights) total += mass_ref(w, top);
  if (total == 0) return -1;
  const u128 wanted = scaled_ref(bits, total);
  for (size_t i = 0; i < weights.size(); ++i)
    if ((sum += mass_ref(weights[i], top)) > wanted) return i64(i);
  return -1;
}

/// Probabilities of a request at a place: given, or the softmax of logits.
inline std::vector<double> chain_probs_ref(const VerifyChainArgs& a, const TensorView& probs, const TensorView& logits, i64 request,
                                           i64 place) {
  if (probs.present()) return Ref(probs).row({request, place});
  return shares_ref(survivors_ref(Ref(logits).row({request, place}),
                                  {.temperature = a.temperatures.present() ? float(Ref(a.temperatures)(request)) : a.temperature}));
}

inline void verify_chain_ref(const VerifyChainArgs& a, const VerifyChainArgs&) {
  const Ref<> target(a.target_probs.present() ? a.target_probs : a.target_logits), ids(a.draft_ids);
  const bool certain = !a.draft_probs.present() && !a.draft_logits.present();
  const auto target_row = [&](i64 b, i64 i) { return chain_probs_ref(a, a.target_probs, a.target_logits, b, i); };
  const auto draft_row = [&](i64 b, i64 i) {
    if (!certain) return chain_probs_ref(a, a.draft_probs, a.draft_logits, b, i);
    std::vector<double> p(size_t(target.dim(2)), 0.0);
    p[size_t(ids.index(b, i))] = 1;
    return p;
  };
  const RefOut<> out(a.out), accepted(a.accepted), emitted(a.emitted), valid(a.valid);
  const i64 drafts = target.dim(1) - 1, vocab = target.dim(2);
  const auto is_draft = [&](i64 id) { return id >= 0 && id < vocab; };
  const auto is_p = [](double x) { return x >= 0 && std::isfinite(x); };
  for (i64 b = 0; b < target.dim(0); ++b) {
    const u64 seed = u64(a.seeds.present() ? Ref(a.seeds).index(b) : a.seed),
              offset = u64(a.offsets.present() ? Ref(a.offsets).index(b) : a.offset);
    const u32 row = a.seeds.present() ? 0 : u32(b);
    // What each draft of the chain is, on its own: 1 passes, 0 does not, -1 cannot be judged
    std::vector<int> passes;
    for (i64 i = 0; i < drafts && is_draft(ids.index(b, i)); ++i) {
      const i64 id = ids.index(b, i);
      const double p = draft_row(b, i)[size_t(id)], q = target_row(b, i)[size_t(id)];
      passes.push_back(!is_p(p) || !(q >= 0) ? -1 : accepts_ref(random_ref(seed, offset + u64(i), row, 1), p, q));
    }
    const i64 stand = std::find_if(passes.begin(), passes.end(), [](int x) { return x != 1; }) - passes.begin();
    const bool whole = stand == i64(passes.size()), judged = whole || passes[size_t(stand)] == 0;
    i64 token = -1;
    const std::vector<double> q = target_row(b, stand);
    if (whole) {
      token = draw_ref(q, random_ref(seed, offset + u64(stand), row, 0));
    } else if (judged) {
      const std::vector<double> p = draft_row(b, stand);
      std::vector<double> rest(q.size());
      for (size_t v = 0; v < q.size(); ++v)
        rest[v] =
            !is_p(p[v]) || !(q[v] >= 0) ? std::numeric_limits<double>::quiet_NaN() : double(std::max(0.0f, float(q[v]) - float(p[v])));
      const bool nothing = std::all_of(rest.begin(), rest.end(), [](double x) { return x == 0; });
      token = draw_ref(nothing ? q : rest, random_ref(seed, offset + u64(stand), row, 2));
    }
    for (i64 i = 0; i <= drafts; ++i)
      out.set(i < stand ? double(ids.index(b, i)) : i > stand ? -1.0 : double(std::max<i64>(token, 0)), b, i);
    valid.set(token >= 0, b);
    if (emitted.present()) emitted.set(emitted.get(b) + double(stand), b);
    const i64 end = std::find(passes.begin(), passes.end(), -1) - passes.begin();
    if (accepted.present()) accepted.set(accepted.get(b) + double(std::count(passes.begin(), passes.begin() + end, 1)), b);
  }
}

}  // namespace quern::sampling
