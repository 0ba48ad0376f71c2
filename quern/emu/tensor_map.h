// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/device/device.h"

namespace quern::emu {

/// What the 128 opaque bytes of a tensor map hold on the emulated device: the specification itself.
struct EncodedTensorMap {
  static constexpr u64 kMagic = 0x70616d2d6e657571;
  u64 magic;
  u64 base;
  i64 shape[5];
  i64 stride_bytes[4];
  i32 box[5];
  i16 rank;
  i16 swizzle;
  DType dtype;
};
static_assert(sizeof(EncodedTensorMap) <= sizeof(TensorMap));

/// Bytes of a box in shared memory.
inline u32 box_bytes(const EncodedTensorMap& map) {
  u32 bytes = u32(size_of(map.dtype));
  for (int d = 0; d < map.rank; ++d) bytes *= u32(map.box[d]);
  return bytes;
}

enum class BoxUse { load, store };

/// Calls visit(address, offset, bytes) for each contiguous run of the box at `at` that a copy touches; offset is in the box,
/// before any swizzle. A load takes what lies in the tensor. A store ends a row at the next multiple of 16 bytes, past the
/// tensor's last element where its row has no whole number of them: so does an H200.
template <class Visit>
void for_each_run(const EncodedTensorMap& map, const i32 (&at)[5], BoxUse use, const Visit& visit) {
  const i64 element = size_of(map.dtype),
            row_end = use == BoxUse::load ? map.shape[0] : round_up(map.shape[0] * element, i64(16)) / element;
  const i64 first = max_of<i64>(0, -i64(at[0])), last = min_of<i64>(map.box[0], row_end - at[0]);
  if (first >= last) return;
  i64 rows = 1;
  for (int d = 1; d < map.rank; ++d) rows *= map.box[d];
  for (i64 row = 0; row < rows; ++row) {
    i64 rest = row, address = i64(map.base) + (at[0] + first) * element;
    bool inside = true;
    for (int d = 1; d < map.rank; ++d) {
      const i64 index = at[d] + rest % map.box[d];
      rest /= map.box[d];
      inside &= index >= 0 && index < map.shape[d];
      address += index * map.stride_bytes[d - 1];
    }
    if (inside) visit(reinterpret_cast<u8*>(address), u32((row * map.box[0] + first) * element), u32((last - first) * element));
  }
}

}  // namespace quern::emu
