// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What ops with an FP8 output share: `out` is e4m3 and `scales` has a scale for each row and 128 columns, as
// quant.per_token_group makes them of the op's unrounded result.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "quern/op/ref.h"
#include "quern/op/schema.h"

namespace quern {

/// An out that is e4m3 comes with scales, and no other does.
template <class Args>
Rejection scales_belong_to_fp8(const Problem& p) {
  const i32 scales = p.tensor(&Args::scales).present, fp8 = p.dtype(&Args::out) == DType::e4m3;
  if (scales == fp8) return {};
  if (fp8) return {"scales", "absent", "a tensor: `out` is e4m3"};
  return {"scales", "given", "none: `out` is not e4m3"};
}

/// Heeds the word fp8 of the cases.
inline void derive_fp8_output(Case& which) {
  if (which["fp8"] == 0) return;
  which["out.dtype"] = int(DType::e4m3);
  which["out.in_place"] = 0;
  which["scales.present"] = 1;
  if (which["fp8"] != 1) return;
  const i64 tokens = i64(which["tokens"]);
  which["scales.transposed"] = 1;
  which["scales.pad"] = double(round_up<i64>(tokens, 4) - tokens);
}

/// Row t of the reference: y into out and scales, its absolute terms into their magnitudes.
template <class Real, class Args>
void fp8_output_ref(const std::vector<Real>& y, const std::vector<Real>& terms, i64 t, const Args& a, const Args& magnitudes) {
  using std::abs;
  const RefOut<Real> out(a.out), scales(a.scales), out_magnitude(magnitudes.out), scales_magnitude(magnitudes.scales);
  const i64 columns = i64(y.size());
  for (i64 begin = 0; begin < columns; begin += 128) {
    const i64 end = std::min<i64>(begin + 128, columns);
    Real amax = Real(double(1e-4f)), most = amax;
    for (i64 j = begin; j < end; ++j) {
      if (most < terms[size_t(j)]) most = terms[size_t(j)];
      const Real magnitude = abs(y[size_t(j)]);
      if (amax == amax && (magnitude != magnitude || amax < magnitude)) amax = magnitude;
    }
    const Real scale = amax / Real(448.0);
    scales.set(scale, t, begin / 128);
    scales_magnitude.set(most / Real(448.0), t, begin / 128);
    for (i64 j = begin; j < end; ++j) {
      out.set(y[size_t(j)] * (Real(1) / scale), t, j);
      out_magnitude.set(terms[size_t(j)] / scale, t, j);
    }
  }
}

}  // namespace quern
