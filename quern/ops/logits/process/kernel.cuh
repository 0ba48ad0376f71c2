// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out = presence(frequency(repetition(bias(bitmask(soft_cap(logits))))))
// A block takes a chunk of 2048 columns of one row, then the next chunk a grid further: each_chunk. Where tokens or biases are lists, the
// block first walks over the row's lists and gathers those of its columns in shared memory: counts by atomics of integers, of several
// biases of a token the place of the last. So the bits do not depend on the order in which threads come.
#pragma once
#include "quern/bricks/rows/chunks.cuh"
#include "quern/kit/float_class.cuh"
#include "quern/kit/tanh.cuh"
#include "quern/ops/logits/process/spec.h"

namespace quern::logits {

constexpr u32 kMinusInfinity = 0xff800000u;

/// What holds for a row.
struct RowRule {
  f32 repetition, frequency, presence;
  bool valid;              ///< the penalties are numbers that mean something
  const u32* mask;         ///< null: every token is allowed
  const f32* bias;         ///< of the dense form
  const i32* counts;       ///< null: none
  const u32* prompt_bits;  ///< null: none
};

QN_DEVICE f32 penalty(const float* of_rows, float of_all, i64 row) { return of_rows ? ptx::ld_global<f32>(of_rows + row) : f32(of_all); }

template <ProcessConfig C> QN_DEVICE RowRule rule_of(const ProcessParams& p, i64 row) {
  RowRule r{penalty(p.repetitions, p.repetition, row),
            penalty(p.frequencies, p.frequency, row),
            penalty(p.presences, p.presence, row),
            false,
            nullptr,
            nullptr,
            nullptr,
            nullptr};
  r.valid = r.repetition > f32(0.f) && is_finite(r.repetition) && is_finite(r.frequency) && is_finite(r.presence);
  if (p.bitmask) {
    const i64 mask = p.mask_rows ? i64(ptx::ld_global<i32>(p.mask_rows + row)) : row;
    if (mask >= 0 && mask < p.masks) r.mask = p.bitmask + mask * p.bitmask_stride;
  }
  if constexpr (C.bias == BiasForm::dense) r.bias = reinterpret_cast<const f32*>(p.bias) + row * p.bias_stride;
  if constexpr (C.state == TokenState::slots) {
    const i64 slot = p.slots ? i64(ptx::ld_global<i32>(p.slots + row)) : row;
    if (slot >= 0 && slot < p.slot_rows) {
      if (p.counts) r.counts = p.counts + slot * p.counts_stride;
      if (p.prompt_bits) r.prompt_bits = p.prompt_bits + slot * p.prompt_bits_stride;
    }
  }
  return r;
}

/// A chunk's part of the lists, a word a column.
struct Gathered {
  u32* counts;  ///< how often the output has the token
  u32* prompt;  ///< how often the prompt has it
  u32* bias;    ///< 1 + the place of the last bias of the token; 0: none
};

/// Calls f(column of the chunk, place) for each token of a list that is one of the chunk's.
template <class T, class F> QN_DEVICE void each_listed(const T* list, i64 length, i64 first, i64 columns, int threads, const F& f) {
  for (i64 i = threadIdx.x; i < length; i += threads) {
    const i64 token = i64(ptx::ld_global<T>(list + i));
    if (token >= first && token < first + columns) f(int(token - first), i);
  }
}

template <ProcessConfig C> QN_DEVICE void gather(const Gathered& g, const ProcessParams& p, i64 row, i64 first) {
  using Token = dtype_t<C.token_dtype>;
  const i64 columns = min_of<i64>(kProcessColumns, p.vocab - first);
  ptx::sync_block();  // all have read what was gathered for the chunk before
  for (int i = int(threadIdx.x); i < kProcessColumns; i += C.threads) {
    if constexpr (C.state == TokenState::lists) g.counts[i] = 0, g.prompt[i] = 0;
    if constexpr (C.bias == BiasForm::list) g.bias[i] = 0;
  }
  ptx::sync_block();
  if constexpr (C.state == TokenState::lists) {
    if (p.prompt_tokens)
      each_listed(static_cast<const Token*>(p.prompt_tokens) + row * p.prompt_tokens_stride, p.prompt_length, first, columns, C.threads,
                  [&](int at, i64) { ptx::atomic_add(g.prompt + at, 1u); });
    if (p.output_tokens)
      each_listed(static_cast<const Token*>(p.output_tokens) + row * p.output_tokens_stride, p.output_length, first, columns, C.threads,
                  [&](int at, i64) { ptx::atomic_add(g.counts + at, 1u); });
  }
  if constexpr (C.bias == BiasForm::list)
    each_listed(p.bias_ids + row * p.bias_ids_stride, p.biased, first, columns, C.threads,
                [&](int at, i64 i) { ptx::atomic_max(g.bias + at, u32(i) + 1); });
  ptx::sync_block();
}

/// An access of a row: what is read from memory for it, all before the first is used.
template <ProcessConfig C> struct ProcessAccess {
  Packed<dtype_t<C.dtype>, C.chunks.vector> logits;
  u32 allowed, in_prompt;  ///< a bit an element, from bit 0
  i32 counts[C.chunks.vector];
  f32 bias[C.chunks.vector];
};

/// The bits of an access' columns, all of which lie in one word.
QN_DEVICE u32 bits_at(const u32* words, i64 column) { return ptx::ld_global<u32>(words + (column >> 5)) >> (column & 31); }

template <ProcessConfig C> QN_DEVICE void load_access(const ProcessParams& p, const RowRule& r, const Gathered& g, i64 row, i64 column,
                                                      ProcessAccess<C>& access) {
  constexpr int kVector = C.chunks.vector, kWords = min_of(kVector, 4);
  access.logits = load_packed<dtype_t<C.dtype>, kVector>(static_cast<const dtype_t<C.dtype>*>(p.logits) + row * p.logits_stride + column);
  access.allowed = ~0u;
  if (r.mask) access.allowed = (column >> 5) < p.mask_words ? bits_at(r.mask, column) : p.past_mask == PastMask::left ? ~0u : 0u;
  const int at = int(column & (kProcessColumns - 1));
  if constexpr (C.state == TokenState::slots) {
    access.in_prompt = r.prompt_bits ? bits_at(r.prompt_bits, column) : 0;
    QN_UNROLL
    for (int j = 0; j < kVector; j += kWords) {
      Packed<i32, kWords> part{};
      if (r.counts) part = load_packed<i32, kWords>(r.counts + column + j);
      QN_UNROLL
      for (int i = 0; i < kWords; ++i) access.counts[j + i] = i32(word(part.raw, i));
    }
  }
  if constexpr (C.state == TokenState::lists) {
    access.in_prompt = 0;
    QN_UNROLL
    for (int j = 0; j < kVector; ++j) {
      access.in_prompt |= u32(g.prompt[at + j] != 0) << j;
      access.counts[j] = i32(g.counts[at + j]);
    }
  }
  if constexpr (C.bias == BiasForm::dense) {
    QN_UNROLL
    for (int j = 0; j < kVector; j += kWords) {
      f32 part[kWords];
      load_f32<f32, kWords>(r.bias + column + j, part);
      QN_UNROLL
      for (int i = 0; i < kWords; ++i) access.bias[j + i] = part[i];
    }
  }
  if constexpr (C.bias == BiasForm::list) {
    QN_UNROLL
    for (int j = 0; j < kVector; ++j) {
      const u32 place = g.bias[at + j];
      access.bias[j] = place == 0 ? f32(-0.f) : ptx::ld_global<f32>(p.bias_values + row * p.bias_values_stride + place - 1);  // x + -0 is x
    }
  }
}

/// One logit. Products and sums are fma: no compiler contracts one step with the next.
template <ProcessConfig C> QN_DEVICE f32 processed(const ProcessParams& p, const RowRule& r, f32 x, const ProcessAccess<C>& access, int j) {
  if (!r.valid) return ptx::f32_of_bits(0x7fffffffu);
  if (!(access.allowed >> j & 1) || ptx::bits_of(x) == kMinusInfinity) return ptx::f32_of_bits(kMinusInfinity);
  if (p.soft_cap > 0.f) x = ptx::fma(f32(p.soft_cap), accurate_tanh(ptx::div(x, f32(p.soft_cap))), f32(-0.f));
  if constexpr (C.bias != BiasForm::none) {
    x = ptx::fma(access.bias[j], f32(1.f), x);
    if (ptx::bits_of(x) == kMinusInfinity) return x;
  }
  if constexpr (C.state != TokenState::none) {
    const i32 count = access.counts[j];
    if (count > 0 || (access.in_prompt >> j & 1)) x = x > f32(0.f) ? ptx::div(x, r.repetition) : ptx::fma(x, r.repetition, f32(-0.f));
    if (count > 0) {
      x = ptx::fma(r.frequency, f32(float(-count)), x);
      x = ptx::fma(r.presence, f32(-1.f), x);
    }
  }
  return x;
}

template <ProcessConfig C> QN_DEVICE void process_chunk(const ProcessParams& p) {
  using T = dtype_t<C.dtype>;
  constexpr int kVector = C.chunks.vector;
  constexpr ProcessSmem S = process_smem(C.state, C.bias);
  static_assert(rows::chunk_columns(C.chunks, C.threads) == kProcessColumns && 32 % kVector == 0);
  QN_SMEM(smem);
  const Gathered gathered{reinterpret_cast<u32*>(smem + S.counts), reinterpret_cast<u32*>(smem + S.prompt),
                          reinterpret_cast<u32*>(smem + S.bias)};
  RowRule rule{};
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  rows::each_chunk<ProcessAccess<C>, C.chunks, C.threads>(
      p.rows, p.vocab,
      [&](i64 row, i64 first) {
        rule = rule_of<C>(p, row);
        if constexpr (C.state == TokenState::lists || C.bias == BiasForm::list) gather<C>(gathered, p, row, first);
      },
      [&](i64 row, i64 column, ProcessAccess<C>& access) { load_access<C>(p, rule, gathered, row, column, access); },
      [&](i64 row, i64 column, const ProcessAccess<C>& access) {
        f32 x[kVector];
        unpack(access.logits, x);
        QN_UNROLL
        for (int j = 0; j < kVector; ++j) x[j] = processed<C>(p, rule, x[j], access, j);
        store_f32<T, kVector>(static_cast<T*>(p.out) + row * p.out_stride + column, x);
      });
}

}  // namespace quern::logits
