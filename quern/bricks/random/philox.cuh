// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Philox4x32-10: four words from a counter of four and a key of two, without state (Salmon et al., Parallel Random Numbers: As Easy as 1,
// 2, 3, SC 2011). The only source of random numbers of the library.
#pragma once
#include "quern/bricks/random/stream_spec.h"
#include "quern/kit/kit.cuh"

namespace quern {

struct PhiloxWords {
  u32 word[4];
};

QN_DEVICE PhiloxWords philox4x32_10(PhiloxWords counter, u32 key_low, u32 key_high) {
  PhiloxWords c = counter;
  QN_UNROLL
  for (int round = 0; round < 10; ++round) {
    const u64 a = u64(0xD2511F53u) * c.word[0], b = u64(0xCD9E8D57u) * c.word[2];
    c = {u32(b >> 32) ^ c.word[1] ^ key_low, u32(b), u32(a >> 32) ^ c.word[3] ^ key_high, u32(a)};
    key_low += 0x9E3779B9u, key_high += 0xBB67AE85u;
  }
  return c;
}

/// The 64 random bits of a place: words 0 (low) and 1 (high) of the counter (offset low, offset high, row, stream) under the key (seed low,
/// seed high).
QN_DEVICE u64 random_bits(u64 seed, u64 offset, u32 row, RandomStream stream) {
  const PhiloxWords w = philox4x32_10({u32(offset), u32(offset >> 32), row, u32(stream)}, u32(seed), u32(seed >> 32));
  return u64(w.word[1]) << 32 | w.word[0];
}

}  // namespace quern
