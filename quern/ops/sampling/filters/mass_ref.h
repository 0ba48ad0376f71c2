// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Masses and random numbers once more, from docs/sampling.md, with integers of the compiler and the C library's fma.
#pragma once
#include <cmath>
#include <limits>

#include "quern/op/ref.h"

namespace quern::sampling {

__extension__ typedef unsigned __int128 u128;

/// m * 2^(e - 23).
struct WeightRef {
  u64 m = 0;
  i64 e = 0;
};

constexpr double kGreedyRef = double(1e-5f);

/// log2(e) / temperature in two floats, and the weights that follow.
class LogitWeightsRef {
 public:
  explicit LogitWeightsRef(float temperature) {
    const float log2e = 1.44269502162933349609375f, below = 1.92596299112661904664e-8f;
    high_ = log2e / temperature;
    low_ = (std::fmaf(-high_, temperature, log2e) + below) / temperature;
  }
  WeightRef operator()(float logit) const {
    if (std::isinf(logit)) return logit < 0 ? WeightRef{} : WeightRef{u64(1) << 23, (i64(1) << 29) + 1024};
    const float x = std::fmaf(logit, high_, -0.0f);
    if (std::fabs(x) >= 268435456.0f) return {u64(1) << 23, x < 0 ? -(i64(1) << 29) : i64(1) << 29};
    const float n = std::nearbyintf(x);
    float f = std::fmaf(logit, low_, std::fmaf(logit, high_, -n));
    i64 e = i64(n);
    if (std::fabs(f) > 0.5f) {
      const float more = std::nearbyintf(f);
      e += i64(more), f = std::fmaf(-1.0f, more, f);
    }
    float y = 0.000158214796101674437522888184f;
    for (const float c : {0.001341864350251853466033935547f, 0.009617063216865062713623046875f, 0.055502727627754211425781250000f,
                          0.240226551890373229980468750000f, 0.693147242069244384765625000000f, 1.0f})
      y = std::fmaf(y, f, c);
    int power = 0;
    const float fraction = std::frexp(y, &power);  // in [1/2, 1)
    return {u64(std::ldexp(fraction, 24)), e + power - 1};
  }

 private:
  float high_, low_;
};

/// Of a number >= 0 that f32 holds.
inline WeightRef prob_weight_ref(double p) {
  if (std::isinf(p)) return {u64(1) << 23, (i64(1) << 29) + 1024};
  if (p == 0) return {};
  int e = 0;
  std::frexp(p, &e);
  const i64 exponent = std::max(e - 1, -126);
  return {u64(std::ldexp(p, int(23 - exponent))), exponent};
}

inline u128 mass_ref(const WeightRef& w, i64 top) {
  const i64 by = w.e - top + 60;
  return w.m == 0 || by < 0 ? 0 : u128(w.m) << by;
}

/// ceil(p * total), at least 1.
inline u128 share_ref(double p, u128 total) {
  if (!(p > 0)) return 1;
  const WeightRef w = prob_weight_ref(p);  // p = m * 2^(e - 23)
  const u128 product = total * w.m;
  const i64 by = 23 - w.e;
  if (by >= 128) return 1;
  const u128 whole = product >> by, share = whole + ((whole << by) != product);
  return share == 0 ? 1 : share;
}

/// weight / total in f32, as the library rounds it.
inline float share_f32_ref(const WeightRef& w, i64 top, u128 total) {
  if (w.m == 0) return 0;
  int bits = 0;
  while (bits < 128 && (total >> bits) != 0) ++bits;
  const int drop = std::max(0, bits - 24);
  const u128 kept = total >> drop, rest = total - (kept << drop);
  const u128 half = drop > 0 ? u128(1) << (drop - 1) : 1;
  const u64 mantissa = u64(kept) + (drop > 0 && (rest > half || (rest == half && kept % 2 == 1)));
  const float quotient = float(w.m) / float(mantissa);
  const i64 power = w.e - top + 60 - drop;
  return power < -400 ? 0 : float(std::ldexp(double(quotient), int(power)));
}

/// Philox4x32-10 of the counter (offset, row, stream) and the key seed: words 0 and 1.
inline u64 random_ref(u64 seed, u64 offset, u32 row, u32 stream) {
  u64 x0 = offset & 0xffffffff, x1 = offset >> 32, x2 = row, x3 = stream, k0 = seed & 0xffffffff, k1 = seed >> 32;
  for (int round = 0; round < 10; ++round) {
    const u64 p0 = x0 * 0xD2511F53ull, p1 = x2 * 0xCD9E8D57ull;
    x0 = (p1 >> 32) ^ x1 ^ k0, x1 = p1 & 0xffffffff;
    x2 = (p0 >> 32) ^ x3 ^ k1, x3 = p0 & 0xffffffff;
    k0 = (k0 + 0x9E3779B9ull) & 0xffffffff, k1 = (k1 + 0xBB67AE85ull) & 0xffffffff;
  }
  return x1 << 32 | x0;
}
/// floor(bits * total / 2^64).
inline u128 scaled_ref(u64 bits, u128 total) { return bits * (total >> 64) + (u128(bits) * u64(total) >> 64); }

}  // namespace quern::sampling
