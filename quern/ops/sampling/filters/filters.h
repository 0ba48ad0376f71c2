// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The host's part of temperature and filters, for ops whose Args have their members by these names.
#pragma once
#include <cmath>
#include <string>

#include "quern/bricks/select/plan.h"
#include "quern/ops/sampling/filters/spec.h"

namespace quern::sampling {

inline const float* floats(const TensorView& v) { return static_cast<const float*>(v.data); }

/// Elements of an access of an output of `bytes` an element whose rows allow `vector`: full accesses or single elements.
inline i32 store_width(const RowLayout& layout, i32 vector, i32 bytes) {
  const i32 full = min_of<i32>(16 / bytes, layout.vector);
  return layout.vector > 1 && vector * bytes == 16 ? full : 1;
}
template <class Args> Rejection temperature_fits(const Problem& p) {
  const float t = p.attr(&Args::temperature);
  if (!(t >= 0) || std::isinf(t)) return {"temperature", t, "a finite number, 0 or more"};
  if (p.tensor(&Args::temperatures).present && t != 1) return {"temperature", t, "1 beside temperatures, which hold those of the rows"};
  return {};
}
template <class Args> Rejection vocab_fits(const Problem& p) {
  static const Axis vocab = axis_of("vocab");
  if (p[vocab] < 1 || p[vocab] > kLongestRow) return {"vocab", p[vocab], "1 to {}", kLongestRow};
  return {};
}
/// Finite numbers, and none beside its tensor.
template <class Args> Rejection filters_fit(const Problem& p) {
  const float top_p = p.attr(&Args::top_p), min_p = p.attr(&Args::min_p);
  if (!std::isfinite(top_p)) return {"top_p", top_p, "a finite number"};
  if (!std::isfinite(min_p)) return {"min_p", min_p, "a finite number"};
  if (p.tensor(&Args::top_ks).present && p.attr(&Args::top_k) != 0)
    return {"top_k", p.attr(&Args::top_k), "0 beside top_ks, which hold those of the rows"};
  if (p.tensor(&Args::top_ps).present && top_p != 1) return {"top_p", top_p, "1 beside top_ps, which hold those of the rows"};
  if (p.tensor(&Args::min_ps).present && min_p != 0) return {"min_p", min_p, "0 beside min_ps, which hold those of the rows"};
  return {};
}
/// One of logits and probs; probabilities have no temperature.
template <class Args> Rejection logits_or_probs(const Problem& p) {
  const bool logits = p.tensor(&Args::logits).present, probs = p.tensor(&Args::probs).present;
  if (!logits && !probs) return {"logits", "absent", "logits, or probs"};
  if (logits && probs) return {"probs", "given", "none beside logits"};
  if (logits) return {};
  if (p.tensor(&Args::temperatures).present) return {"temperatures", "given", "none beside probs"};
  if (p.attr(&Args::temperature) != 1) return {"temperature", p.attr(&Args::temperature), "1 beside probs"};
  return {};
}

/// No number beside its tensor.
template <class Args> Rejection seeds_fit(const Problem& p) {
  if (p.tensor(&Args::seeds).present && p.attr(&Args::seed) != 0)
    return {"seed", p.attr(&Args::seed), "0 beside seeds, which hold those of the rows"};
  if (p.tensor(&Args::offsets).present && p.attr(&Args::offset) != 0)
    return {"offset", p.attr(&Args::offset), "0 beside offsets, which hold those of the rows"};
  return {};
}

/// Parts of the schemas, for Schema::with: parameters of rows, and numbers.
template <class A> Schema<A>& state_filter_tensors(Schema<A>& schema) {
  constexpr bool kDraws = requires(const A& a) { a.seeds; };
  const char* const rows = kDraws ? "logits_rows" : "rows";
  const std::string bad = kDraws ? "the row is not valid" : "the row becomes NaN";
  return schema.in("top_ks", &A::top_ks, rows, {DType::i32})
      .optional()
      .values(generated())
      .contents(each_within("-2147483648", "2147483647"))
      .meaning("in the place of top_k")
      .in("top_ps", &A::top_ps, rows, {DType::f32})
      .optional()
      .values(generated())
      .meaning("in the place of top_p; NaN: " + bad)
      .in("min_ps", &A::min_ps, rows, {DType::f32})
      .optional()
      .values(generated())
      .meaning("in the place of min_p; NaN: " + bad);
}
template <class A> Schema<A>& state_filter_numbers(Schema<A>& schema) {
  return schema.attr("top_k", &A::top_k)
      .meaning("so many of the largest survive, equal ones by `ties`; below 1 and from vocab on: all")
      .attr("top_p", &A::top_p)
      .meaning("the fewest of the largest survive that hold this part of the mass; from 1 on: all; up to 0: the first")
      .attr("min_p", &A::min_p)
      .meaning("tokens survive whose mass is at least this part of the largest one; up to 0: all");
}
template <class A> Schema<A>& state_filter_order(Schema<A>& schema) {
  return schema.attr("order", &A::order)
      .words({"top_k_first", "joint"})
      .meaning("what top-p sees: the tokens that top-k keeps, or all")
      .attr("min_p_first", &A::min_p_first)
      .meaning("min_p acts before top_k and top_p, not after them")
      .attr("ties", &A::ties)
      .words({"lowest_ids", "all"})
      .meaning("what top_k and top_p keep of equal values at their end: as many as they count, or all");
}

template <class Args> FilterParams filter_params(const Args& a) {
  FilterParams f{};
  f.temperature = 1;
  if constexpr (requires { a.temperatures; }) f.temperatures = floats(a.temperatures), f.temperature = a.temperature;
  f.top_ks = static_cast<const i32*>(a.top_ks.data), f.top_ps = floats(a.top_ps), f.min_ps = floats(a.min_ps);
  f.top_p = a.top_p, f.min_p = a.min_p, f.top_k = a.top_k;
  f.order = a.order, f.min_p_first = a.min_p_first, f.ties = a.ties;
  return f;
}

}  // namespace quern::sampling
