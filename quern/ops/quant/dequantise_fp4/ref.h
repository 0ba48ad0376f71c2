// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <cmath>

#include "quern/op/rounding_ref.h"
#include "quern/ops/quant/dequantise_fp4.h"

namespace quern::quant {

inline void dequantise_fp4_ref(const DequantiseFp4Args& a, const DequantiseFp4Args&, const DequantiseFp4Args& given) {
  const double values[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  const Ref x(a.x), scales(a.scales), global(a.global_scale);
  const RefOut out(a.out);
  const double factor = global.present() ? global(0) : 1;
  for (i64 i = 0; i < out.dim(0); ++i)
    for (i64 j = 0; j < out.dim(1); ++j) {
      const i64 byte = x.index(i, j / 2), four = j % 2 == 0 ? byte % 16 : byte / 16;
      double scale = scales(i, j / a.group_size);
      if (a.scales.dtype == DType::u8) scale = scale == 255 ? NAN : std::ldexp(1.0, int(scale) - 127);
      const double value = (four < 8 ? 1 : -1) * values[four % 8];
      out.set(rounded_to(rounded(rounded(value * scale) * factor), given.out.dtype), i, j);
    }
}

}  // namespace quern::quant
