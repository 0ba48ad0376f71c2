// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <cmath>
#include <limits>
#include <vector>

#include "quern/op/ref.h"
#include "quern/ops/attention/merge_states.h"

namespace quern::attention {

/// One part of a row: its lse and where its v is.
struct StatePart {
  double lse;
  i64 index;  ///< -1: v_other
};

inline void merge_states_ref(const MergeStatesArgs& a, const MergeStatesArgs& magnitudes) {
  const Ref v(a.v), lse(a.lse), v_other(a.v_other), lse_other(a.lse_other), mask(a.mask);
  const RefOut out(a.out), out_lse(a.out_lse), magnitude(magnitudes.out);
  const double log_of_base = a.lse_base == LseBase::e ? 1 : std::log(2.0);
  for (i64 t = 0; t < out.dim(0); ++t) {
    if (mask.present() && mask.index(t) == 0) continue;
    for (i64 h = 0; h < out.dim(1); ++h) {
      std::vector<StatePart> parts;
      for (i64 i = 0; i < v.dim(0); ++i)
        if (!std::isinf(lse(i, t, h))) parts.push_back({lse(i, t, h), i});
      if (v_other.present() && !std::isinf(lse_other(t, h))) parts.push_back({lse_other(t, h), -1});
      double most = -std::numeric_limits<double>::infinity(), total = 0;
      for (const StatePart& part : parts) most = std::fmax(most, part.lse);
      if (!std::isfinite(most)) most = 0;
      for (const StatePart& part : parts) total += std::exp((part.lse - most) * log_of_base);
      for (i64 d = 0; d < out.dim(2); ++d) {
        double sum = 0, size = 0;
        for (const StatePart& part : parts) {
          const double weight = std::exp((part.lse - most) * log_of_base),
                       value = part.index < 0 ? v_other(t, h, d) : v(part.index, t, h, d);
          sum += weight * value, size += std::fabs(weight * value);
        }
        out.set(parts.empty() ? 0 : sum / total, t, h, d);
        magnitude.set(parts.empty() ? 0 : size / total, t, h, d);
      }
      out_lse.set(parts.empty() ? -std::numeric_limits<double>::infinity() : most + std::log(total) / log_of_base, t, h);
    }
  }
}

}  // namespace quern::attention
