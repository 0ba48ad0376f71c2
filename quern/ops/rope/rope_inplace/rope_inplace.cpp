// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/rope/rope_inplace.h"

#include <cmath>
#include <cstring>

#include "quern/op/memo.h"
#include "quern/op/schema.h"
#include "quern/ops/rope/rope_inplace/ref.h"
#include "quern/ops/rope/rope_inplace/spec.h"

namespace quern::rope {

using A = RopeInplaceArgs;

static const jit::Kernel<RopeInplaceConfig, RopeInplaceParams> token_kernel{"quern/ops/rope/rope_inplace/kernel.cuh", "rope_inplace_token"};

static i64 rotary_dim(const Problem& p) {
  const i32 wanted = p.attr(&A::rotary_dim);
  return wanted ? wanted : p[Axis::head_dim];
}

/// What decides the table of frequencies.
struct Frequencies {
  i64 rotary_dim;
  float theta, scale, factor, low, high, original_max;
  friend bool operator==(const Frequencies&, const Frequencies&) = default;
};

/// Turns per position of each pair, f_i / (2 pi), as the sum of two floats.
static void write_turns(const Frequencies& f, float* high, float* low) {
  constexpr double kTwoPi = 6.283185307179586476925287;
  for (i64 i = 0; i < f.rotary_dim / 2; ++i) {
    double turns = std::pow(double(f.theta), -2.0 * double(i) / double(f.rotary_dim)) / double(f.scale) / kTwoPi;
    if (f.factor != 1.f) {  // waves_in_context: how often the pair turns within the original context
      const double waves_in_context = turns * double(f.original_max);
      const double kept = (waves_in_context - double(f.low)) / (double(f.high) - double(f.low));
      const double mix = kept < 0 ? 0 : kept > 1 ? 1 : kept;
      turns *= mix + (1 - mix) / double(f.factor);
    }
    high[i] = float(turns);
    low[i] = float(turns - double(high[i]));
  }
}

static RopeInplaceParams params(const Call<A>& c) {
  const A& a = c.args;
  const Problem& problem = c.problem;
  RopeInplaceParams p;
  p.q = a.q.data;
  p.k = a.k.data;
  p.positions = static_cast<const i32*>(a.positions.data);
  p.q_token_stride = a.q.strides[0], p.q_head_stride = a.q.strides[1];
  p.k_token_stride = a.k.strides[0], p.k_head_stride = a.k.strides[1];
  p.tokens = problem[Axis::tokens];
  p.heads_q = i32(problem[Axis::heads_q]), p.heads_kv = i32(problem[Axis::heads_kv]);
  p.half = i32(rotary_dim(problem) / 2);
  p.unused = 0;
  // 64 pow calls take longer than the rest of a call
  struct Turns {
    float high[kMaxPairs], low[kMaxPairs];
  };
  static thread_local Memo<Frequencies, Turns, 1> memo;
  const Frequencies wanted{rotary_dim(problem), a.theta, a.scale, a.llama31_factor, a.low_freq_factor, a.high_freq_factor, a.original_max};
  const Turns& turns = memo.of(wanted, [](const Frequencies& f) {
    Turns made{};
    write_turns(f, made.high, made.low);
    return made;
  });
  std::memcpy(p.turns_high, turns.high, sizeof p.turns_high);
  std::memcpy(p.turns_low, turns.low, sizeof p.turns_low);
  return p;
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  const bool interleaved = p.attr(&A::interleaved);
  const i32 half = i32(rotary_dim(p) / 2);
  const i32 vector = min_of(p.vector(&A::q), p.vector(&A::k));
  RopeInplaceConfig config{p.dtype(&A::q), interleaved, interleaved ? max_of(1, vector / 2) : vector, vector >= (interleaved ? 2 : 1), 512};
  while (half % config.pairs) config.pairs /= 2;
  // One item a thread where the token's heads allow it: all loads are in flight at once.
  const i64 items = (p[Axis::heads_q] + p[Axis::heads_kv]) * (half / config.pairs);
  if (items < config.threads) config.threads = i32(max_of<i64>(64, round_up<i64>(items, 64)));
  Plan plan;
  plan.launch<params>(token_kernel, config, {.x = min_of<i64>(p[Axis::tokens], i64(device.sms) << 16), .smem = rope_inplace_smem(), .pdl = p.pdl});
  return plan;
}

static Rejection rotary_dim_fits(const Problem& p) {
  const i64 d = rotary_dim(p);
  if (d > p[Axis::head_dim]) return {"rotary_dim", d, "at most head_dim={}", p[Axis::head_dim]};
  if (d <= 0 || d % 2) return {"rotary_dim", d, "a positive even number", 0};
  if (d > 2 * kMaxPairs) return {"rotary_dim", d, "at most {}", 2 * kMaxPairs};
  return {};
}

/// f_i <= 1 / scale <= 8: a pair that turns faster has an angle whose second float is too coarse for the budget at position 2^24.
static Rejection frequencies_fit(const Problem& p) {
  const auto within = [&](float A::*attr, float least) { return p.attr(attr) >= least && p.attr(attr) <= 1e30f; };
  if (!within(&A::theta, 1)) return {"theta", p.attr(&A::theta), "a number from 1 to 1e30", 0};
  if (!within(&A::scale, 0.125f)) return {"scale", p.attr(&A::scale), "a number from 0.125 to 1e30", 0};
  if (!within(&A::llama31_factor, 1)) return {"llama31_factor", p.attr(&A::llama31_factor), "a number from 1 to 1e30", 0};
  if (p.attr(&A::llama31_factor) == 1.f) return {};
  if (!within(&A::original_max, 1)) return {"original_max", p.attr(&A::original_max), "a number from 1 to 1e30", 0};
  if (!within(&A::low_freq_factor, 1e-30f)) return {"low_freq_factor", p.attr(&A::low_freq_factor), "a number from 1e-30 to 1e30", 0};
  if (!(p.attr(&A::high_freq_factor) > p.attr(&A::low_freq_factor)) || !within(&A::high_freq_factor, 0))
    return {"high_freq_factor", p.attr(&A::high_freq_factor), "more than low_freq_factor, up to 1e30", 0};
  return {};
}

/// One rounding. Of |a| + |b|: the approximate sine and cosine of |angle| <= pi are within 2^-20.5, the angle is within 2^-20.2 (of 2^24
/// turns, the most there are, three roundings leave 2^-23 of a turn; the factor 2 pi is rounded), and three roundings are 2^-22.4: below 2^-19.
static Budget budget(const Problem& p) { return {.of_value = unit_roundoff(p.tensors[0].dtype), .of_magnitude = 0x1p-19}; }

QN_OP(rope_inplace, A, "rope.rope_inplace")
    .doc("(a, b) = (a cos - b sin, b cos + a sin) for each pair of q and k, angle = position * theta^(-2i / rotary_dim)")
    .source("Su et al., RoFormer: Enhanced Transformer with Rotary Position Embedding, arXiv 2104.09864")
    .inout("q", &A::q, "tokens heads_q head_dim", {DType::f32, DType::f16, DType::bf16})
    .inout("k", &A::k, "tokens heads_kv head_dim", like("q"))
    .in("positions", &A::positions, "tokens", {DType::i32})
    .values(length_upto(Axis::positions))
    .contents(each_below("16777216"))
    .attr("rotary_dim", &A::rotary_dim)
    .meaning("rotated elements of a head; 0: head_dim")
    .attr("interleaved", &A::interleaved)
    .meaning("pairs (2i, 2i+1) instead of (i, i + rotary_dim/2)")
    .attr("theta", &A::theta)
    .meaning("from 1 to 1e30")
    .attr("scale", &A::scale)
    .meaning("positions are divided by it, from 0.125 to 1e30")
    .attr("llama31_factor", &A::llama31_factor)
    .meaning("Llama 3.1 frequency scaling, from 1 to 1e30; 1: off")
    .attr("low_freq_factor", &A::low_freq_factor)
    .meaning("from 1e-30 to 1e30")
    .attr("high_freq_factor", &A::high_freq_factor)
    .meaning("more than low_freq_factor, up to 1e30")
    .attr("original_max", &A::original_max)
    .meaning("context length that Llama 3.1 scaling starts from, from 1 to 1e30")
    .require(rotary_dim_fits)
    .require(frequencies_fit)
    .rows(Axis::tokens)
    .plan(plan)
    .reference<rope_inplace_ref>()
    .budget(budget)
    .cases({{"tokens", {4, 1, 0, 33}},
            {"heads_q", {8, 1, 5}},
            {"heads_kv", {2, 1, 8}},
            {"head_dim", {128, 64, 80, 96, 256}},
            {"rotary_dim", {0, 64, 32, 22}},
            {"interleaved", {false, true}},
            {"theta", {500000.0, 10000.0, 1.0, 1e30}},
            {"llama31_factor", {8.0, 1.0, 1e30}},
            {"scale", {1.0, 4.0, 0.125, 1e30}},
            {"positions", {131072, 100, 16777215}, "bound of the tokens' positions"},
            {"q.dtype", {DType::bf16, DType::f16, DType::f32}},
            {"q.pad", {0, 8, 1}}})
    .bench({{{"tokens", 64}, {"heads_q", 32}, {"heads_kv", 8}, {"head_dim", 128}},
            {{"tokens", 4096}, {"heads_q", 32}, {"heads_kv", 8}, {"head_dim", 128}},
            {{"tokens", 65536}, {"heads_q", 32}, {"heads_kv", 8}, {"head_dim", 128}}});

}  // namespace quern::rope
