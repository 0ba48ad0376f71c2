// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What an f32 is, by its bits; a kernel includes this beside kit.cuh.
#pragma once
#include "quern/kit/world.cuh"

namespace quern {

QN_DEVICE bool is_nan(f32 x) { return (ptx::bits_of(x) & 0x7fffffffu) > 0x7f800000u; }
/// Neither infinite nor NaN.
QN_DEVICE bool is_finite(f32 x) { return (ptx::bits_of(x) & 0x7f800000u) != 0x7f800000u; }

}  // namespace quern
