// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"
#include "quern/ops/quant/bit_order_spec.h"

namespace quern::quant {

struct SegmentPackbitsArgs {
  TensorView out;         ///< [ceil(bits / 8) + segments] u8: room for any segments of that count
  TensorView out_indptr;  ///< [segments + 1] like indptr: segment s is the bytes from out_indptr[s] to out_indptr[s + 1]
  TensorView x;           ///< [bits] u8: bools, or any bytes
  TensorView indptr;      ///< [segments + 1] i32 or i64, ascending: segment s is the elements from indptr[s] to indptr[s + 1]
  BitOrder bit_order = BitOrder::big;
};

/// Each segment is packed as packbits does it and starts at a byte of its own:
///   out_indptr[0] = 0, out_indptr[s + 1] = out_indptr[s] + ceil((indptr[s + 1] - indptr[s]) / 8)
///   out[out_indptr[s] + i / 8] has x[indptr[s] + i] != 0 as its bit 7 - i % 8 (big) or i % 8 (little)
/// Bytes of out behind the last segment are 0. The host reads no segment: `out` is as long as segments of that count can need. At most 2^34
/// elements. Elements outside of x are none: an indptr beyond it counts as its end, one below 0 as 0, and a segment that ends before it
/// begins is empty. Throws Error.
QN_API void segment_packbits(const SegmentPackbitsArgs& args, const RunOptions& options = {});

}  // namespace quern::quant
