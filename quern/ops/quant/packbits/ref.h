// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/ref.h"
#include "quern/ops/quant/packbits.h"

namespace quern::quant {

inline void packbits_ref(const PackbitsArgs& a, const PackbitsArgs&) {
  const Ref x(a.x);
  const RefOut out(a.out);
  for (i64 byte = 0; byte < out.dim(0); ++byte) {
    double value = 0;
    for (i64 i = 0; i < 8 && 8 * byte + i < x.dim(0); ++i)
      if (x.index(8 * byte + i) != 0) value += double(1 << (a.bit_order == BitOrder::big ? 7 - i : i));
    out.set(value, byte);
  }
}

}  // namespace quern::quant
