// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/ops/sampling/filters/filter_ref.h"
#include "quern/ops/sampling/sample.h"

namespace quern::sampling {

/// The token that 64 random bits choose among the survivors.
inline i64 token_ref(const SurvivorsRef& s, u64 bits) {
  if (s.greedy) return s.first;
  const u128 wanted = scaled_ref(bits, s.total());
  u128 sum = 0;
  for (size_t i = 0; i < s.weight.size(); ++i)
    if ((sum += s.mass(i)) > wanted) return i64(i);
  return -1;
}

inline void sample_ref(const SampleArgs& a, const SampleArgs&) {
  const Ref<> values(a.probs.present() ? a.probs : a.logits);
  const RefOut<> out(a.out), valid(a.valid);
  for (i64 row = 0; row < out.dim(0); ++row) {
    const i64 from = a.indices.present() ? Ref(a.indices).index(row) : row;
    i64 token = -1;
    if (from >= 0 && from < values.dim(0)) {
      FilterRef f = filter_ref(a, from);
      f.probs = a.probs.present();
      const SurvivorsRef s = survivors_ref(values.row({from}), f);
      const u64 seed = u64(a.seeds.present() ? Ref(a.seeds).index(row) : a.seed),
                offset = u64(a.offsets.present() ? Ref(a.offsets).index(row) : a.offset);
      if (s.valid) token = token_ref(s, random_ref(seed, offset, a.seeds.present() ? 0 : u32(row), 0));
    }
    out.set(double(std::max<i64>(token, 0)), row);
    valid.set(token >= 0, row);
  }
}

}  // namespace quern::sampling
