// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/device/tensor_map.h"

#include <cstdio>

namespace quern {

std::string tensor_map_text(const TensorMapSpec& s) {
  const auto list = [](const auto* values, int count) {
    std::string text = "[";
    for (int i = 0; i < count; ++i) text += (i ? ", " : "") + std::to_string(values[i]);
    return text + "]";
  };
  char base[32];
  std::snprintf(base, sizeof base, "%p", s.base);
  return std::string(name(s.dtype)) + " at " + base + ", shape " + list(s.shape, s.rank) + ", strides " + list(s.stride_bytes, s.rank - 1) +
         " B, box " + list(s.box, s.rank) + ", swizzle " + std::to_string(s.swizzle == Swizzle::none ? 0 : 16 << int(s.swizzle)) + " B, " +
         std::to_string(s.fetched) + " B fetched for a miss";
}

// CUDA only says "invalid argument"; these are its rules, in the order in which they are usually broken.
const char* tensor_map_problem(const TensorMapSpec& s) {
  if (reinterpret_cast<size_t>(s.base) % 16) return "the base address is not a multiple of 16";
  for (int d = 0; d < s.rank - 1; ++d)
    if (s.stride_bytes[d] % 16 || s.stride_bytes[d] >= i64(1) << 40) return "a stride is not a multiple of 16 bytes";
  for (int d = 0; d < s.rank; ++d) {
    if (s.shape[d] < 1 || s.shape[d] > i64(1) << 32) return "an extent is outside 1 .. 2^32";
    if (s.box[d] < 1 || s.box[d] > 256) return "a box extent is outside 1 .. 256";
  }
  const int inner = s.box[0] * size_of(s.dtype);
  if (inner % 16) return "the box's inner extent is not a multiple of 16 bytes";
  if (s.swizzle != Swizzle::none && inner > 16 << int(s.swizzle)) return "the box's inner extent exceeds the swizzle";
  return nullptr;
}

}  // namespace quern
