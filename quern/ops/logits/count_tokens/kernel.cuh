// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// counts[slots[i], ids[i]] += 1, bit ids[i] of prompt_bits[slots[i]] = 1
// A thread takes a token, then the next a grid further. Tokens of one slot may meet in one word, so both updates are atomic.
#pragma once
#include "quern/kit/kit.cuh"
#include "quern/ops/logits/count_tokens/spec.h"

namespace quern::logits {

/// Sets bits of a word that other threads set bits of: a compare-and-swap fails only where another thread's succeeded.
QN_DEVICE void set_bits(u32* word, u32 bits) {
  u32 seen = ptx::ld_relaxed_gpu(word);
  while ((seen & bits) != bits) {
    const u32 before = ptx::atomic_cas(word, seen, seen | bits);
    if (before == seen) return;
    seen = before;
  }
}

template <CountTokensConfig C> QN_DEVICE void count_tokens_thread(const CountTokensParams& p) {
  using Id = dtype_t<C.id_dtype>;
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  for (i64 i = i64(blockIdx.x) * C.threads + threadIdx.x; i < p.tokens; i += i64(gridDim.x) * C.threads) {
    const i64 id = i64(ptx::ld_global<Id>(static_cast<const Id*>(p.ids) + i)), slot = ptx::ld_global<i32>(p.slots + i);
    if (id < 0 || id >= p.vocab || slot < 0 || slot >= p.slot_rows) continue;
    if (p.counts) ptx::red_add(p.counts + slot * p.counts_stride + id, 1u);
    if (p.prompt_bits) set_bits(p.prompt_bits + slot * p.prompt_bits_stride + (id >> 5), 1u << (id & 31));
  }
}

}  // namespace quern::logits
