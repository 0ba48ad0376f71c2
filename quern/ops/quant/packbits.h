// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"
#include "quern/ops/quant/bit_order_spec.h"

namespace quern::quant {

struct PackbitsArgs {
  TensorView out;  ///< [ceil(bits / 8)] u8
  TensorView x;    ///< [bits] u8: bools, or any bytes
  BitOrder bit_order = BitOrder::big;
};

/// Eight elements become a byte: element i is bit 7 - i % 8 (big) or i % 8 (little) of out[i / 8], 1 where x[i] is not 0.
/// Bits of the last byte that no element has are 0. The bits of NumPy's packbits. Throws Error.
QN_API void packbits(const PackbitsArgs& args, const RunOptions& options = {});

}  // namespace quern::quant
