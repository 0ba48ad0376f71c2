// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Of an f32 that is a struct of one word, which the including file has defined: its bits, and rows of eight.
#pragma once

namespace quern {

namespace ptx {

QN_DEVICE u32 bits_of(f32 x) { return x.word; }
QN_DEVICE f32 f32_of_bits(u32 bits) { return f32::of_word(bits); }

}  // namespace ptx

namespace emu {

struct alignas(32) Row8 {
  f32 of[8];
};

}  // namespace emu
}  // namespace quern
