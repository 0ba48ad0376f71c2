// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// f32 and the primitives that know what it is, chosen when the kernel is compiled (Number in device/device.h). No other
// file of kit/emu may assume that f32 is float. Each choice defines f32, bits_of, f32_of_bits, and number_*.
#pragma once
#include "quern/kit/emu/entry.cuh"

namespace quern::emu {
using Words8 = u32 __attribute__((vector_size(32), aligned(32)));
}  // namespace quern::emu

#if !defined(QN_EMU_NUMBER)
#include "quern/kit/emu/number_f32.cuh"
#elif QN_EMU_NUMBER == 1
#include "quern/kit/emu/number_order_free.cuh"
#else
#include "quern/kit/emu/number_tree.cuh"
#endif
