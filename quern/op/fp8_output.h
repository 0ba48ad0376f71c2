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

/// The least largest magnitude of what shares a scale: scales and their reciprocals are then normal numbers.
template <class Args>
Rejection amax_floor_fits(const Problem& p) {
  const float least = p.attr(&Args::amax_floor);
  return least >= 1e-30f && least <= 1e30f ? Rejection{} : Rejection{"amax_floor", least, "a number from 1e-30 to 1e30", 0};
}

/// The attribute amax_floor, for Schema::with.
template <class Args>
Schema<Args>& state_amax_floor(Schema<Args>& schema) {
  return schema.attr("amax_floor", &Args::amax_floor)
      .meaning("least largest magnitude of what shares a computed scale, from 1e-30 to 1e30; engines take 1e-10")
      .require(amax_floor_fits<Args>);
}
/// The tensor scales of groups. Its budget is the op's to state, with `within`.
template <class Args>
Schema<Args>& state_group_scales(Schema<Args>& schema, const char* dims) {
  return schema.out("scales", &Args::scales, dims, {DType::f32})
      .optional()
      .meaning("of an out that is e4m3, as quant.per_token_group makes them; else absent")
      .column_major(16);
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

/// Elements begin .. end of a row, which share a scale: y into out, its absolute terms into the magnitudes. set(scale, magnitude) writes
/// the scale.
template <class Real, class Args, class Set>
void fp8_span_ref(const std::vector<Real>& y, const std::vector<Real>& terms, i64 t, i64 begin, i64 end, const Args& a,
                  const Args& magnitudes, const Set& set) {
  using std::abs;
  const RefOut<Real> out(a.out), out_magnitude(magnitudes.out);
  Real amax = Real(double(a.amax_floor)), most = amax;
  for (i64 j = begin; j < end; ++j) {
    if (most < terms[size_t(j)]) most = terms[size_t(j)];
    const Real magnitude = abs(y[size_t(j)]);
    if (amax == amax && (magnitude != magnitude || amax < magnitude)) amax = magnitude;
  }
  const Real scale = amax / Real(448.0);
  set(scale, most / Real(448.0));
  for (i64 j = begin; j < end; ++j) {
    out.set(y[size_t(j)] * (Real(1) / scale), t, j);
    // The element's own error, and that of the scale, which may be one of larger terms
    out_magnitude.set((terms[size_t(j)] + abs(y[size_t(j)]) * (most / amax)) / scale, t, j);
  }
}

/// Row t of the reference: y into out and scales, its absolute terms into their magnitudes.
template <class Real, class Args>
void fp8_output_ref(const std::vector<Real>& y, const std::vector<Real>& terms, i64 t, const Args& a, const Args& magnitudes) {
  const RefOut<Real> scales(a.scales), scales_magnitude(magnitudes.scales);
  const i64 columns = i64(y.size());
  for (i64 begin = 0; begin < columns; begin += 128)
    fp8_span_ref(y, terms, t, begin, std::min<i64>(begin + 128, columns), a, magnitudes,
                 [&](Real scale, Real magnitude) { scales.set(scale, t, begin / 128), scales_magnitude.set(magnitude, t, begin / 128); });
}

}  // namespace quern
