// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// A row of a norm's results, as the output has them: rounded, or FP8 of the kind that the call asks for.
#pragma once
#include <vector>

#include "quern/op/fp8_output.h"
#include "quern/op/ref.h"

namespace quern::norm {

template <class Real, class Args>
void norm_output_ref(const std::vector<Real>& y, const std::vector<Real>& terms, i64 t, const Args& a, const Args& magnitudes) {
  const RefOut<Real> out(a.out), out_magnitude(magnitudes.out), token_scales(a.token_scales), token_magnitudes(magnitudes.token_scales);
  const i64 columns = i64(y.size());
  if (a.scales.present()) return fp8_output_ref(y, terms, t, a, magnitudes);
  if (a.token_scales.present())
    return fp8_span_ref(y, terms, t, 0, columns, a, magnitudes,
                        [&](Real scale, Real size) { token_scales.set(scale, t), token_magnitudes.set(size, t); });
  Real factor = 1;
  if (a.static_scale.present()) factor = Real(1) / Ref<Real>(a.static_scale)(0);
  for (i64 h = 0; h < columns; ++h) {
    out.set(y[size_t(h)] * factor, t, h);
    out_magnitude.set(terms[size_t(h)] * factor, t, h);
  }
}

}  // namespace quern::norm
