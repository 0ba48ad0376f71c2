// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/ref.h"
#include "quern/ops/logits/count_tokens.h"

namespace quern::logits {

/// Token by token. Bits of a word of i32 are changed as those of an integer below 2^32.
inline void count_tokens_ref(const CountTokensArgs& a, const CountTokensArgs&) {
  const Ref ids(a.ids), slots(a.slots);
  const RefOut counts(a.counts), prompt_bits(a.prompt_bits);
  const i64 rows = counts.present() ? counts.dim(0) : prompt_bits.dim(0),
            vocab = counts.present() ? counts.dim(1) : 32 * prompt_bits.dim(1);
  for (i64 i = 0; i < ids.dim(0); ++i) {
    const i64 id = ids.index(i), slot = slots.index(i);
    if (id < 0 || id >= vocab || slot < 0 || slot >= rows) continue;
    if (counts.present()) counts.set(counts.get(slot, id) + 1, slot, id);
    if (!prompt_bits.present()) continue;
    const u32 word = u32(i64(prompt_bits.get(slot, id / 32)));
    prompt_bits.set(double(i32(word | u32(1) << (id % 32))), slot, id / 32);
  }
}

}  // namespace quern::logits
