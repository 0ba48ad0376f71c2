// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <string>

#include "quern/op/ref.h"
#include "quern/op/schema.h"
#include "quern/ops/gemm/k_grouped.h"

namespace quern::gemm {

/// Each bound between groups is k or a multiple of the alignment: of another one columns would be left out.
inline Breach k_grouped_contract(const KGroupedArgs& a, const Problem& p) {
  const bool sizes = a.k_sizes.present(), scaled = a.scales_a.present();
  const i64 k = p[Axis::k], alignment = max_of(a.alignment, 1), unit = scaled ? round_up<i64>(alignment, 128) : alignment;
  const std::string rule = "a multiple of " + std::to_string(unit) +
                           (scaled ? ", by alignment=" + std::to_string(alignment) + " and the 128 columns of a scale" : ", the alignment");
  const Ref<> given(sizes ? a.k_sizes : a.k_indptr);
  i64 sum = 0;
  for (i64 g = 0; g < given.dim(0); ++g) {
    const i64 value = given.index(g), bound = sizes ? sum + value : value;
    const char* const name = sizes ? "k_sizes" : "k_indptr";
    if (bound > k)
      return {name,
              {g},
              value,
              "at most " + std::to_string(k - sum) + ", as the groups before have " + std::to_string(sum) + " of k=" + std::to_string(k) +
                  " columns"};
    if (bound < k && bound % unit) return {name, {g}, value, rule + (sizes ? ", or the rest of k=" : ", or k=") + std::to_string(k)};
    sum = bound;
  }
  return {};
}

}  // namespace quern::gemm
