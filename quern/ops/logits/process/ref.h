// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "quern/op/ref.h"
#include "quern/ops/logits/process.h"

namespace quern::logits {

/// What a row's earlier tokens are.
struct HistoryRef {
  std::vector<i64> counts;
  std::vector<bool> in_prompt;
};

inline HistoryRef history_ref(const ProcessArgs& a, i64 row, i64 vocab) {
  HistoryRef h{std::vector<i64>(size_t(vocab), 0), std::vector<bool>(size_t(vocab), false)};
  const Ref<> counts(a.counts), prompt_bits(a.prompt_bits), prompt_tokens(a.prompt_tokens), output_tokens(a.output_tokens);
  const i64 slot = a.slots.present() ? Ref(a.slots).index(row) : row;
  for (i64 v = 0; v < vocab; ++v) {
    if (counts.present() && slot >= 0 && slot < counts.dim(0)) h.counts[size_t(v)] = std::max<i64>(0, counts.index(slot, v));
    if (prompt_bits.present() && slot >= 0 && slot < prompt_bits.dim(0))
      h.in_prompt[size_t(v)] = (u64(prompt_bits.index(slot, v / 32)) >> (v % 32) & 1) != 0;
  }
  const auto is_token = [&](i64 token) { return token >= 0 && token < vocab; };
  for (i64 i = 0; prompt_tokens.present() && i < prompt_tokens.dim(1); ++i)
    if (const i64 token = prompt_tokens.index(row, i); is_token(token)) h.in_prompt[size_t(token)] = true;
  for (i64 i = 0; output_tokens.present() && i < output_tokens.dim(1); ++i)
    if (const i64 token = output_tokens.index(row, i); is_token(token)) ++h.counts[size_t(token)];
  return h;
}

/// Each step in f32, as the op promises; tanh in double. Magnitudes: what an error of the soft cap has grown to, and the terms.
inline void process_ref(const ProcessArgs& a, const ProcessArgs& magnitudes) {
  const Ref<> logits(a.logits), bitmask(a.bitmask), bias(a.bias), bias_ids(a.bias_ids), bias_values(a.bias_values);
  const RefOut<> out(a.out), magnitude(magnitudes.out);
  const double inf = std::numeric_limits<double>::infinity();
  const i64 vocab = logits.dim(1);
  const auto number = [](const TensorView& of_rows, float of_all, i64 row) {
    return of_rows.present() ? float(Ref(of_rows)(row)) : of_all;
  };
  for (i64 row = 0; row < logits.dim(0); ++row) {
    const HistoryRef history = history_ref(a, row, vocab);
    const float r = number(a.repetition_penalties, a.repetition_penalty, row), f = number(a.frequency_penalties, a.frequency_penalty, row),
                b = number(a.presence_penalties, a.presence_penalty, row);
    const i64 mask = a.mask_rows.present() ? Ref(a.mask_rows).index(row) : row;
    std::vector<float> added(size_t(vocab), -0.0f);
    for (i64 i = 0; bias_ids.present() && i < bias_ids.dim(1); ++i)
      if (const i64 token = bias_ids.index(row, i); token >= 0 && token < vocab) added[size_t(token)] = float(bias_values(row, i));
    for (i64 v = 0; v < vocab; ++v) {
      if (bias.present()) added[size_t(v)] = float(bias(bias.dim(0) == 1 ? 0 : row, v));
      float x = float(logits(row, v));
      double m = 0;
      bool masked = x == -inf;
      if (bitmask.present() && mask >= 0 && mask < bitmask.dim(0)) {
        if (v / 32 >= bitmask.dim(1)) masked |= a.past_mask == PastMask::masked;
        else masked |= (u64(bitmask.index(mask, v / 32)) >> (v % 32) & 1) == 0;
      }
      if (masked) {
        x = float(-inf);
      } else {
        if (a.soft_cap > 0) x = float(double(a.soft_cap) * std::tanh(double(x) / double(a.soft_cap)));
        m = std::fabs(double(x)) + std::fabs(double(added[size_t(v)]));
        x += added[size_t(v)];
        const i64 count = history.counts[size_t(v)];
        if (x != -inf && (count > 0 || history.in_prompt[size_t(v)])) {
          x = x > 0 ? x / r : x * r;
          m *= std::max(double(r), 1 / double(r));
        }
        if (x != -inf && count > 0) {
          x = std::fmaf(-f, float(count), x);
          x -= b;
          m += std::fabs(double(f) * double(count)) + std::fabs(double(b));
        }
      }
      if (!(r > 0 && std::isfinite(r) && std::isfinite(f) && std::isfinite(b))) x = std::numeric_limits<float>::quiet_NaN();
      // Without a soft cap results are compared bit for bit; with it the result's rounding is in the budget
      float rounded = 0;
      store_value(&rounded, a.logits.dtype, double(x));
      out.set(a.soft_cap == 0 ? load_value(&rounded, a.logits.dtype) : double(x), row, v);
      magnitude.set(m, row, v);
    }
  }
}

}  // namespace quern::logits
