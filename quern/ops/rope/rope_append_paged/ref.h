// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <vector>

#include "quern/op/rounding_ref.h"
#include "quern/ops/rope/rope_append_paged.h"
#include "quern/ops/rope/rotate/angles_ref.h"

namespace quern::rope {

/// Where a token is appended; page -1: nowhere.
struct AppendRef {
  i64 page = -1, offset = 0;
};

inline AppendRef append_ref(const RopeAppendPagedArgs& a, i64 token) {
  const i64 page_size = a.k_cache.shape[1];
  AppendRef to;
  if (a.slot_mapping.present()) {
    const i64 slot = Ref(a.slot_mapping).index(token);
    if (slot >= 0) to = {slot / page_size, slot % page_size};
  } else {
    const i64 request = Ref(a.batch_indices).index(token), position = Ref(a.positions).index(token);
    if (request < 0 || position < 0) return {};
    if (a.page_table.present()) {
      if (request >= a.page_table.shape[0] || position / page_size >= a.page_table.shape[1]) return {};
      to = {Ref(a.page_table).index(request, position / page_size), position % page_size};
    } else {
      const Ref indptr(a.page_indptr);
      if (request + 1 >= indptr.dim(0)) return {};
      const i64 at = indptr.index(request) + position / page_size;
      if (at < 0 || at >= a.page_indices.shape[0] || at >= indptr.index(request + 1)) return {};
      to = {Ref(a.page_indices).index(at), position % page_size};
    }
  }
  return to.page < a.k_cache.shape[0] ? to : AppendRef{};
}

/// A head after its norm and its rotation, and what errors are measured by, in units of 2^-19: a norm is off by 2^-19 and four roundings
/// (1.25), computed sines and cosines by 2^-19 (1), given ones by two roundings (2^-4).
struct HeadRef {
  std::vector<double> value, size;
};
inline HeadRef head_ref(const RopeAppendPagedArgs& a, const TensorView& from, const TensorView& weight, i64 t, i64 h) {
  HeadRef head{Ref(from).row({t, h}), {}};
  const size_t head_dim = head.value.size();
  double norm_units = 0;
  if (weight.present()) {
    norm_units = 1.25;
    double squares = 0;
    for (const double x : head.value) squares += x * x;
    for (size_t d = 0; d < head_dim; ++d)
      head.value[d] *= (Ref(weight)(i64(d)) + double(a.weight_bias)) / std::sqrt(squares / double(head_dim) + double(a.eps));
  }
  for (const double x : head.value) head.size.push_back(norm_units * std::abs(x));
  const double units = norm_units + (a.cos.present() ? 0x1p-4 : 1);
  each_pair_ref(a, t, i64(head_dim), [&](i64 first, i64 second, const RotationRef& r) {
    const double u = head.value[size_t(first)], v = head.value[size_t(second)];
    head.value[size_t(first)] = u * r.cosine - v * r.sine;
    head.value[size_t(second)] = v * r.cosine + u * r.sine;
    head.size[size_t(first)] = units * (std::abs(u) * r.cosine_size + std::abs(v) * r.sine_size);
    head.size[size_t(second)] = units * (std::abs(v) * r.cosine_size + std::abs(u) * r.sine_size);
  });
  return head;
}

inline void rope_append_paged_ref(const RopeAppendPagedArgs& a, const RopeAppendPagedArgs& magnitudes, const RopeAppendPagedArgs& given) {
  const RefOut q_out(a.q_out), k_cache(a.k_cache), v_cache(a.v_cache), q_size(magnitudes.q_out), k_size(magnitudes.k_cache);
  const Ref v(a.v), k_scale(a.k_scale), v_scale(a.v_scale);
  const bool copied = given.k.dtype == given.k_cache.dtype;
  const auto scale_of = [](const Ref<>& scale, i64 h) { return scale.present() ? scale(scale.dim(0) == 1 ? 0 : h) : 1.0; };
  for (i64 t = 0; t < a.q.shape[0]; ++t) {
    for (i64 h = 0; h < a.q.shape[1]; ++h) {
      const HeadRef head = head_ref(a, a.q, a.q_weight, t, h);
      for (i64 d = 0; d < a.q.shape[2]; ++d) q_out.set(head.value[size_t(d)], t, h, d), q_size.set(head.size[size_t(d)], t, h, d);
    }
    const AppendRef to = append_ref(a, t);
    if (to.page < 0) continue;
    for (i64 h = 0; h < v.dim(1); ++h) {
      const HeadRef head = head_ref(a, a.k, a.k_weight, t, h);
      for (i64 d = 0; d < v.dim(2); ++d) {
        k_cache.set(head.value[size_t(d)] / scale_of(k_scale, h), to.page, to.offset, h, d);
        k_size.set(head.size[size_t(d)] / scale_of(k_scale, h), to.page, to.offset, h, d);
        v_cache.set(copied ? v(t, h, d) : rounded_to(rounded(v(t, h, d) / scale_of(v_scale, h)), given.v_cache.dtype), to.page, to.offset,
                    h, d);
      }
    }
  }
}

}  // namespace quern::rope
