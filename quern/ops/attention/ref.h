// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Attention by its definition, in plain loops: the references of attention.ragged and attention.paged.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "quern/op/contents.h"
#include "quern/op/ref.h"
#include "quern/ops/attention/hooks_spec.h"
#include "quern/ops/attention/lse_base.h"

namespace quern::attention {

/// Most keys of a request: positions and their differences stay far from the ends of i32.
constexpr i64 kMostKeys = i64(1) << 30;

/// A request: its query tokens are q_begin .. q_begin + q_len - 1 of q; positions follow from `length`, and keys from `end` on are not
/// read.
struct RefRequest {
  i64 q_begin = 0, q_len = 0, length = 0, end = 0;
};

/// Keys that query token i of a request sees, [first, last], as causality and windows say.
struct RefSpan {
  i64 first, last;
};
template <class A> RefSpan ref_span(const A& a, const RefRequest& r, i64 i) {
  const i64 position = r.length - r.q_len + i;
  RefSpan span{0, r.end - 1};
  if (a.window_left >= 0) span.first = std::max<i64>(0, position - a.window_left);
  if (a.window_right >= 0) span.last = std::min(span.last, position + a.window_right);
  if (a.causal) span.last = std::min(span.last, position);
  return span;
}

/// Request b's bits lie in the mask.
template <class A> Breach mask_breach(const A& a, i64 b, const RefRequest& r) {
  if (!a.mask.present()) return {};
  const i64 begin = Ref<>(a.mask_indptr).index(b), bytes = ceil_div<i64>(r.q_len * r.length, 8), room = a.mask.shape[0];
  if (begin + bytes <= room) return {};
  return {"mask_indptr",
          {b},
          begin,
          "at most " + std::to_string(room - bytes) + ": request " + std::to_string(b) + " needs " + std::to_string(bytes) +
              " bytes, for " + std::to_string(r.q_len) + " x " + std::to_string(r.length) + " bits, and mask has " + std::to_string(room)};
}

/// Visible pairs of a query token and a key of a request, as lengths and windows say.
template <class A> double visible_pairs(const A& a, const RefRequest& r) {
  double pairs = 0;
  for (i64 i = 0; i < r.q_len; ++i) {
    const RefSpan span = ref_span(a, r, i);
    pairs += double(std::max<i64>(0, span.last - span.first + 1));
  }
  return pairs;
}

/// For Schema::token. Restricts q, out and scales to token t of request b, whose keys become the first `length`; `length` -1: its outputs
/// cannot be had alone. What says where the request's keys are is left to the op.
template <class A> i64 keep_query(A& a, i64 t, i64 b, const RefRequest& r, std::vector<i32>& indices) {
  if (a.mask.present() || a.hooks || (!a.causal && (a.window_left >= 0 || a.window_right >= 0))) return -1;
  for (TensorView A::* m : {&A::q, &A::out, &A::out_lse, &A::q_scale})
    if ((a.*m).present()) a.*m = (a.*m).slice(0, t, t + 1);
  for (TensorView A::* m : {&A::k_scale, &A::v_scale})
    if ((a.*m).present()) a.*m = (a.*m).slice(0, b, b + 1);
  const bool ours = t >= r.q_begin && t < r.q_begin + r.q_len;
  indices = {0, ours};
  const i64 position = r.length - r.q_len + t - r.q_begin;
  return a.causal ? std::max<i64>(0, position + 1) : r.length;
}
/// A view of `count` of these indices.
inline TensorView view_of(std::vector<i32>& indices, i64 first, i64 count, const TensorView& like) {
  TensorView view = like;
  view.data = indices.data() + first, view.dtype = DType::i32, view.rank = 1, view.shape[0] = count, view.strides[0] = 1;
  return view;
}
/// The last request that begins at token t or before.
inline i64 request_of_token(const TensorView& q_indptr, i64 t) {
  i64 b = 0;
  while (b + 2 < q_indptr.shape[0] && Ref<>(q_indptr).index(b + 1) <= t) ++b;
  return b;
}

/// Whether the packed mask lets query token i of request b see key j.
template <class A> bool ref_bit(const A& a, i64 b, const RefRequest& r, i64 i, i64 j) {
  if (!a.mask.present()) return true;
  const i64 bit = i * r.length + j, byte = Ref<>(a.mask_indptr).index(b) + bit / 8;
  return byte >= 0 && byte < a.mask.shape[0] && (Ref<>(a.mask).index(byte) >> (bit % 8) & 1) != 0;
}

/// Factor of logits, without the tensors of scales: in order-free numbers as the kernel is given it, rounded to f32 and, with a soft cap,
/// divided by it.
template <class Real, class A> Real ref_logit_factor(const A& a) {
  const double scale = a.sm_scale != 0 ? double(a.sm_scale) : 1 / std::sqrt(double(a.q.shape[2]));
  if constexpr (std::is_same_v<Real, double>) return a.soft_cap > 0 ? scale / double(a.soft_cap) : scale;
  const float rounded = float(scale);
  return a.soft_cap > 0 ? rounded / a.soft_cap : rounded;
}

/// Of a logit whose terms |scale q k| (natural units) sum to `size`, a bound of the kernels' error: head_dim / 16 <= 16 steps of the MMA
/// with 2^-23 each, the soft cap's tanh 2^-20.9, at most eight products 2^-24 each (scale, q's, k's and v's scales, log2(e), the cap, a
/// hook's).
constexpr double kLogitError = 0x1p-18;
/// The same of head_dim 512, of 32 steps. The reference's magnitudes of out_lse are in units of kLogitError.
constexpr double kWideLogitError = 0x1p-17;
/// Budget::of_magnitude of out: a probability is rounded before it multiplies v; 2^-13 for logits whose terms sum to at most 32.
inline double ref_probability_error(DType q) { return unit_roundoff(q == DType::bf16 ? q : DType::f16) + 0x1p-13; }

/// Attention of the requests that request_of(b) tells, 0 <= b < batch. key(b, j, head, to) and value(b, j, head, to) read rows; `logit(x,
/// at)` takes and returns a logit in natural units, `visible(at)` says whether a key is seen: a hook's meaning. `at` has no tensors: they
/// read those of the Args.
template <class Real, class A, class RequestOf, class Key, class Value, class Logit, class Visible>
void attend_ref(const A& a, const A& magnitudes, i64 batch, i64 heads_kv, i64 value_dim, const RequestOf& request_of, const Key& key,
                const Value& value, const Logit& logit, const Visible& visible) {
  using std::exp, std::fabs, std::log, std::log2, std::tanh;
  const Ref<Real> q(a.q), q_scale(a.q_scale), k_scale(a.k_scale), v_scale(a.v_scale);
  const RefOut<Real> out(a.out), lse(a.out_lse), out_magnitude(magnitudes.out), lse_magnitude(magnitudes.out_lse);
  const i64 heads = q.dim(1), group = heads / std::max<i64>(1, heads_kv), dim = q.dim(2);
  const double logit_error = dim > 256 ? kWideLogitError : kLogitError, probability_error = ref_probability_error(a.q.dtype);
  const Real factor = ref_logit_factor<Real>(a), minus_infinity = -std::numeric_limits<double>::infinity();
  std::vector<Real> query(static_cast<size_t>(dim)), row(query), sums(static_cast<size_t>(value_dim)), absolute(sums), values(sums), logits;
  std::vector<double> sizes;  // of each logit
  std::vector<i64> seen;
  for (i64 b = 0; b < batch; ++b) {
    const RefRequest request = request_of(b);
    for (i64 i = 0; i < request.q_len; ++i) {
      const i64 t = request.q_begin + i;
      const RefSpan span = ref_span(a, request, i);
      for (i64 h = 0; h < heads; ++h) {
        const i64 head_kv = h / group;
        const Real scale = factor * (q_scale.present() ? q_scale(t, h) : Real(1)) * (k_scale.present() ? k_scale(b, head_kv) : Real(1));
        const Real by = Real(double(a.out_scale)) * (v_scale.present() ? v_scale(b, head_kv) : Real(1));
        q.row({t, h}, query.data());
        logits.clear(), sizes.clear(), seen.clear();
        Real most = a.sink.present() ? Ref<Real>(a.sink)(h) : minus_infinity;
        double largest = 0;
        for (i64 j = span.first; j <= span.last; ++j) {
          const HookContext at{.request = i32(b),
                               .query_token = i32(t),
                               .head_q = i32(h),
                               .head_kv = i32(head_kv),
                               .query_position = i32(request.length - request.q_len + i),
                               .key_position = i32(j),
                               .seq_len = i32(request.length),
                               .params = a.hook_params,
                               .tensors = nullptr,
                               .query_index = i32(i),
                               .query_len = i32(request.q_len)};
          if (!ref_bit(a, b, request, i, j) || !visible(at)) continue;
          key(b, j, head_kv, row.data());
          Real x = 0, terms = 0;
          for (i64 d = 0; d < dim; ++d) x += query[size_t(d)] * row[size_t(d)], terms += fabs(query[size_t(d)] * row[size_t(d)]);
          x *= scale;
          if constexpr (std::is_same_v<Real, double>) {
            double size = terms * fabs(scale);
            if (a.soft_cap >
                0) {  // what tanh's slope leaves of an error of its argument, the argument being wrong itself, and tanh's own error
              const double flat = tanh(std::max(0.0, fabs(x) - logit_error * size));
              size = double(a.soft_cap) * (size * (1 - flat * flat) + fabs(tanh(x)));
            }
            sizes.push_back(size);
            largest = std::max(largest, size);
          }
          if (a.soft_cap > 0) x = Real(double(a.soft_cap)) * tanh(x);
          x = logit(x, at);
          logits.push_back(x), seen.push_back(j);
          most = std::max(most, x);
        }
        bool sinks = a.sink.present();
        if constexpr (std::is_same_v<Real, double>) sinks = sinks && most != minus_infinity;  // a sink of -inf alone is none
        const Real sink = sinks ? exp(Ref<Real>(a.sink)(h) - most) : Real(0);
        Real sum = sink;
        std::fill(sums.begin(), sums.end(), Real(0));
        std::fill(absolute.begin(), absolute.end(), Real(0));
        for (size_t s = 0; s < seen.size(); ++s) {
          const Real p = exp(logits[s] - most);
          sum += p;
          value(b, seen[s], head_kv, values.data());
          for (size_t d = 0; d < values.size(); ++d) sums[d] += p * values[d], absolute[d] += fabs(p * values[d]);
        }
        if constexpr (std::is_same_v<Real, double>) {  // where logits are large, their errors move probabilities from key to key
          for (size_t s = 0; s < seen.size() && largest > 32; ++s) {
            const double p = exp(logits[s] - most) / sum, moved = std::min(p * std::expm1(logit_error * sizes[s]), 1.0);
            if (!(moved > 0)) continue;
            value(b, seen[s], head_kv, values.data());
            for (size_t d = 0; d < values.size(); ++d) absolute[d] += moved * fabs(values[d] - sums[d] / sum) / probability_error * sum;
          }
        }
        const bool none = seen.empty();
        for (i64 d = 0; d < value_dim; ++d) {
          out.set(none ? Real(0) : sums[size_t(d)] / sum * by, t, h, d);
          out_magnitude.set(none ? Real(0) : absolute[size_t(d)] / sum * fabs(by), t, h, d);
        }
        const bool nothing = none && !sinks, natural = a.lse_base == LseBase::e;
        if constexpr (std::is_same_v<Real, double>) {
          lse.set(nothing ? minus_infinity : natural ? most + log(sum) : in_log2_units(most) + log2(sum), t, h);
          lse_magnitude.set((natural ? largest : in_log2_units(largest)) * (logit_error / kLogitError), t, h);
        } else {
          const Real in_log2 = in_log2_units(most) + log2(sum);
          lse.set(nothing ? minus_infinity : natural ? in_log2 * Real(0.69314718055994531f) : in_log2, t, h);
        }
      }
    }
  }
}

}  // namespace quern::attention
