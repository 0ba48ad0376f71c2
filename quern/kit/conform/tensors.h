// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// For tests: where the bytes of a tensor's boxes lie, by plain indexing.
#pragma once
#include "quern/device/device.h"

namespace quern::conform {

/// A tensor in a buffer: extents innermost first; rows of dimension d + 1 are `pad` bytes further apart than they
/// need be.
struct Tensor {
  DType type;
  int rank;
  int shape[5];
  int box[5];
  int pad;
  i64 stride(int d) const {
    i64 bytes = size_of(type);
    for (int i = 0; i < d; ++i) bytes = (bytes * shape[i] + 15) / 16 * 16 + pad;
    return bytes;
  }
  i64 bytes() const { return stride(rank); }
  int box_elements() const {
    int n = 1;
    for (int d = 0; d < rank; ++d) n *= box[d];
    return n;
  }
  /// Byte of the element `index` of a box at `at`, or -1 where that lies outside.
  i64 byte_of(int index, const int* at) const {
    i64 byte = 0;
    for (int d = 0; d < rank; ++d) {
      const int i = at[d] + index % box[d];
      index /= box[d];
      if (i < 0 || i >= shape[d]) return -1;
      byte += i * stride(d);
    }
    return byte;
  }
  /// The same for a store, which ends rows at multiples of 16 bytes.
  i64 stored_byte_of(int index, const int* at) const {
    Tensor wider = *this;
    while (wider.shape[0] * size_of(type) % 16 != 0) ++wider.shape[0];
    return wider.byte_of(index, at);
  }
  TensorMapSpec spec(const void* base, Swizzle swizzle) const {
    TensorMapSpec s{};
    s.dtype = type;
    s.rank = rank;
    s.base = const_cast<void*>(base);
    s.swizzle = swizzle;
    for (int d = 0; d < rank; ++d) {
      s.shape[d] = shape[d];
      s.box[d] = box[d];
      if (d > 0) s.stride_bytes[d - 1] = stride(d);
    }
    return s;
  }
};

/// By the definition: within lines of 128 bytes, the 16-byte chunk c of row r of `width` bytes lies in place of c ^
/// (r's line modulo the number of chunks in the width). None: in place.
inline int swizzled_place(Swizzle swizzle, int byte) {
  if (swizzle == Swizzle::none) return byte;
  const int width = 16 << int(swizzle), chunks = width / 16;
  const int line = byte / 128, chunk = byte % width / 16;
  return byte / width * width + (chunk ^ (line % chunks)) * 16 + byte % 16;
}

}  // namespace quern::conform
