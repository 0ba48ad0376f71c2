// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "quern/op/ref.h"
#include "quern/ops/attention/decode_paged.h"
#include "quern/ops/attention/hooks_spec.h"

namespace quern::attention {

/// Tokens of request b and the page of each of its table entries, from either form.
struct RequestPages {
  i64 length = 0;
  std::vector<i64> pages;
};
inline RequestPages request_pages(const DecodePagedArgs& a, i64 b) {
  const i64 page_size = a.k_cache.shape[1];
  RequestPages r;
  if (a.page_table.present()) {
    const Ref table(a.page_table), lens(a.seq_lens);
    r.length = std::clamp<i64>(lens.index(b), 0, table.dim(1) * page_size);
    for (i64 i = 0; i * page_size < r.length; ++i) r.pages.push_back(table.index(b, i));
  } else {
    const Ref indptr(a.page_indptr), indices(a.page_indices), last(a.last_page_len);
    const i64 begin = indptr.index(b), count = indptr.index(b + 1) - begin;
    if (count <= 0) return r;
    r.length = (count - 1) * page_size + last.index(b);
    if (a.max_seq_kv > 0) r.length = std::min(r.length, a.max_seq_kv);
    for (i64 i = 0; i * page_size < r.length; ++i) r.pages.push_back(indices.index(begin + i));
  }
  return r;
}

/// Factor of logits: in order-free numbers as the kernel is given it, rounded to f32 and, with a soft cap, divided by it.
template <class Real>
Real logit_factor(const DecodePagedArgs& a) {
  const double scale = a.sm_scale != 0 ? double(a.sm_scale) : 1 / std::sqrt(double(a.q.shape[2]));
  if constexpr (std::is_same_v<Real, double>) return a.soft_cap > 0 ? scale / double(a.soft_cap) : scale;
  const float rounded = float(scale);
  return a.soft_cap > 0 ? rounded / a.soft_cap : rounded;
}

/// Of a logit whose terms |scale q k| (natural units) sum to `size`, a bound of the kernel's error: 16 steps of the MMA with 2^-23 each, the
/// soft cap's tanh 2^-20.9, three products 2^-24 each.
constexpr double kLogitError = 0x1p-18;
/// Budget::of_magnitude of out: a probability is rounded before it multiplies v; 2^-13 for logits whose terms sum to at most 32.
inline double probability_error(DType dtype) { return unit_roundoff(dtype) + 0x1p-13; }

/// Attention in double, with the caller's own transform and mask of logits: what a variant's reference is made of.
/// `logit(x, at)` takes and returns a logit in natural units, `visible(at)` says whether a position is seen. They read hook tensors of the
/// Args, by Ref; `at` has none.
template <class Real = double, class Logit, class Visible>
void decode_paged_ref_with(const DecodePagedArgs& a, const DecodePagedArgs& magnitudes, const Logit& logit, const Visible& visible) {
  using std::exp, std::fabs, std::log2, std::tanh;
  const Ref<Real> q(a.q), k(a.k_cache), v(a.v_cache);
  const RefOut<Real> out(a.out), lse(a.out_lse), out_magnitude(magnitudes.out), lse_magnitude(magnitudes.out_lse);
  const i64 page_size = k.dim(1), group = q.dim(1) / std::max<i64>(1, k.dim(2)), dim = q.dim(2);
  const Real scale = logit_factor<Real>(a), minus_infinity = -std::numeric_limits<double>::infinity();
  std::vector<Real> query(static_cast<size_t>(dim)), row(query), sums(query), absolute(query), logits;
  std::vector<double> sizes;  // of each logit
  for (i64 b = 0; b < q.dim(0); ++b) {
    const RequestPages request = request_pages(a, b);
    const i64 length = request.length;
    const i64 first = a.window_left < 0 ? 0 : std::max<i64>(0, length - 1 - a.window_left);
    for (i64 h = 0; h < q.dim(1); ++h) {
      q.row({b, h}, query.data());
      logits.clear(), sizes.clear();
      Real most = a.sink.present() && length > 0 ? Ref<Real>(a.sink)(h) : minus_infinity;
      double largest = 0;
      const auto context = [&](i64 j) {
        return HookContext{.request = i32(b),
                           .query_token = i32(b),
                           .head_q = i32(h),
                           .head_kv = i32(h / group),
                           .query_position = i32(length) - 1,
                           .key_position = i32(j),
                           .seq_len = i32(length),
                           .params = a.hook_params,
                           .tensors = nullptr};
      };
      for (i64 j = first; j < length; ++j) {
        const HookContext at = context(j);
        if (!visible(at)) {
          logits.push_back(minus_infinity), sizes.push_back(0);
          continue;
        }
        k.row({request.pages[size_t(j / page_size)], j % page_size, h / group}, row.data());
        Real x = 0, terms = 0;
        for (i64 d = 0; d < dim; ++d) x += query[size_t(d)] * row[size_t(d)], terms += fabs(query[size_t(d)] * row[size_t(d)]);
        x *= scale;
        if constexpr (std::is_same_v<Real, double>) {
          double size = terms * fabs(scale);
          if (a.soft_cap > 0) {  // what tanh's slope leaves of an error of its argument, the argument being wrong itself, and tanh's own error
            const double flat = tanh(std::max(0.0, fabs(x) - kLogitError * size));
            size = double(a.soft_cap) * (size * (1 - flat * flat) + fabs(tanh(x)));
          }
          sizes.push_back(size);
          largest = std::max(largest, sizes.back());
        }
        if (a.soft_cap > 0) x = Real(a.soft_cap) * tanh(x);
        x = logit(x, at);
        logits.push_back(x);
        most = std::max(most, x);
      }
      Real sum = a.sink.present() && length > 0 ? exp(Ref<Real>(a.sink)(h) - most) : Real(0);
      std::fill(sums.begin(), sums.end(), Real(0));
      std::fill(absolute.begin(), absolute.end(), Real(0));
      for (i64 j = first; j < length; ++j) {
        if (!visible(context(j))) continue;
        const Real p = exp(logits[size_t(j - first)] - most);
        sum += p;
        v.row({request.pages[size_t(j / page_size)], j % page_size, h / group}, row.data());
        for (i64 d = 0; d < dim; ++d) sums[size_t(d)] += p * row[size_t(d)], absolute[size_t(d)] += fabs(p * row[size_t(d)]);
      }
      if constexpr (std::is_same_v<Real, double>) {  // where logits are large, their errors move probabilities from token to token
        for (i64 j = first; j < length && largest > 32; ++j) {
          const double p = exp(logits[size_t(j - first)] - most) / sum, moved = std::min(p * std::expm1(kLogitError * sizes[size_t(j - first)]), 1.0);
          if (!(moved > 0)) continue;
          v.row({request.pages[size_t(j / page_size)], j % page_size, h / group}, row.data());
          for (i64 d = 0; d < dim; ++d) absolute[size_t(d)] += moved * fabs(row[size_t(d)] - sums[size_t(d)] / sum) / probability_error(a.q.dtype) * sum;
        }
      }
      for (i64 d = 0; d < dim; ++d) {
        out.set(sum == 0 ? Real(0) : sums[size_t(d)] / sum, b, h, d);
        out_magnitude.set(sum == 0 ? Real(0) : absolute[size_t(d)] / sum, b, h, d);
      }
      lse.set(sum == 0 ? minus_infinity : in_log2_units(most) + log2(sum), b, h);
      if constexpr (std::is_same_v<Real, double>) lse_magnitude.set(in_log2_units(largest), b, h);
    }
  }
}

template <class Real = double>
void decode_paged_ref(const DecodePagedArgs& a, const DecodePagedArgs& magnitudes) {
  decode_paged_ref_with<Real>(a, magnitudes, [](Real x, const HookContext&) { return x; }, [](const HookContext&) { return true; });
}

}  // namespace quern::attention
