// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/device/device.h"

namespace quern::emu {

/// What the 128 opaque bytes of a tensor map hold on the emulated device: the specification itself.
struct EncodedTensorMap {
  static constexpr u64 kMagic = 0x70616d2d6e657571;
  u64 magic;
  void* base;
  i64 shape[5];
  i64 stride_bytes[4];
  i32 box[5];
  i16 rank;
  i16 swizzle;
  DType dtype;
};
static_assert(sizeof(EncodedTensorMap) <= sizeof(TensorMap));

}  // namespace quern::emu
