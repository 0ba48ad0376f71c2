// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/ptx/entry.cuh"

namespace quern {

using f32 = float;

namespace ptx {

// 9.7.9.1 mov: a register seen as another type.
QN_DEVICE u32 bits_of(f32 x) { return __float_as_uint(x); }
QN_DEVICE f32 f32_of_bits(u32 bits) { return __uint_as_float(bits); }

}  // namespace ptx
}  // namespace quern
