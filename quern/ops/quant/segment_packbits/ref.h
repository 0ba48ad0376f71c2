// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <algorithm>

#include "quern/op/ref.h"
#include "quern/ops/quant/segment_packbits.h"

namespace quern::quant {

inline void segment_packbits_ref(const SegmentPackbitsArgs& a, const SegmentPackbitsArgs&) {
  const Ref x(a.x), indptr(a.indptr);
  const RefOut out(a.out), out_indptr(a.out_indptr);
  std::vector<int> bytes(size_t(out.dim(0)), 0);
  i64 next = 0;  // byte
  out_indptr.set(0, 0);
  for (i64 s = 0; s + 1 < indptr.dim(0); ++s) {
    const i64 begin = std::clamp<i64>(indptr.index(s), 0, x.dim(0)), end = std::clamp<i64>(indptr.index(s + 1), 0, x.dim(0));
    const i64 first = next;
    for (i64 i = begin; i < end; ++i) {
      const i64 byte = first + (i - begin) / 8, place = (i - begin) % 8;
      if (byte < out.dim(0) && x.index(i) != 0) bytes[size_t(byte)] |= 1 << (a.bit_order == BitOrder::big ? 7 - place : place);
      next = byte + 1;
    }
    out_indptr.set(double(next), s + 1);
  }
  for (i64 b = 0; b < out.dim(0); ++b) out.set(bytes[size_t(b)], b);
}

}  // namespace quern::quant
