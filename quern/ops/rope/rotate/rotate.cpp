// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/rope/rotate/rotate.h"

#include <cmath>
#include <cstring>

#include "quern/op/memo.h"

namespace quern::rope {

const jit::Kernel<RotateConfig, RotateParams> rotate_kernel{"quern/ops/rope/rotate/kernel.cuh", "rotate_heads"};

namespace {

struct TurnsTable {
  float high[kMaxPairs], low[kMaxPairs];
};

/// Turns per position of each pair, f_i / (2 pi), as the sum of two floats.
TurnsTable make_turns(const TurnsKey& f) {
  constexpr double kTwoPi = 6.283185307179586476925287;
  TurnsTable made{};
  for (i64 i = 0; i < f.rotary_dim / 2; ++i) {
    double turns = std::pow(double(f.theta), -2.0 * double(i) / double(f.rotary_dim)) / double(f.scale) / kTwoPi;
    if (f.factor != 1.f) {  // waves_in_context: how often the pair turns within the original context
      const double waves_in_context = turns * double(f.original_max);
      const double kept = (waves_in_context - double(f.low)) / (double(f.high) - double(f.low));
      const double mix = kept < 0 ? 0 : kept > 1 ? 1 : kept;
      turns *= mix + (1 - mix) / double(f.factor);
    }
    made.high[i] = float(turns);
    made.low[i] = float(turns - double(made.high[i]));
  }
  return made;
}

}  // namespace

void write_turns(const TurnsKey& key, AngleParams& params) {
  // 64 pow calls take longer than the rest of a call
  static thread_local Memo<TurnsKey, TurnsTable, 1> memo;
  const TurnsTable& turns = memo.of(key, make_turns);
  std::memcpy(params.turns_high, turns.high, sizeof params.turns_high);
  std::memcpy(params.turns_low, turns.low, sizeof params.turns_low);
}

HeadConfig head_config(DType dtype, bool interleaved, i32 widest, i64 rotary_dim, i64 head_dim, bool rest) {
  const i64 half = rotary_dim / 2, lane_pairs = 16 / size_of(dtype);
  HeadConfig c{dtype, interleaved, widest, 1, rest};
  while (c.vector > lane_pairs || (interleaved ? rotary_dim : half) % c.vector || head_dim % c.vector) c.vector /= 2;
  const i64 of_pairs = ceil_div(half, lane_pairs), of_head = rest ? ceil_div(head_dim, 2 * lane_pairs) : 0;
  while (c.lanes < 32 && c.lanes < max_of(of_pairs, of_head)) c.lanes *= 2;
  return c;
}

i32 heads_in_flight(i64 tokens, i64 heads, i32 lanes, const DeviceInfo& device) {
  // Below, twice the threads that multiprocessors hold would not have work of four heads
  if (tokens * heads * lanes < i64(device.sms) * 4096) return 1;
  return heads < 2 ? 1 : heads < 4 ? 2 : 4;
}

i64 part_blocks(i64 parts, i32 lanes, i32 threads, const DeviceInfo& device) {
  // Of many parts a lane takes four, one after another: they share the turns, and blocks still come and go as multiprocessors become free
  const i64 blocks = ceil_div<i64>(parts, threads / lanes), resident = i64(device.sms) * 8;
  return min_of<i64>(max_of<i64>(1, min_of(blocks, max_of(resident, ceil_div<i64>(blocks, 4)))), i64(device.sms) << 16);
}

RotateConfig rotate_config(const AngleConfig& angles, const HeadConfig& head, i64 tokens, i64 heads, const DeviceInfo& device) {
  return {angles, head, heads_in_flight(tokens, heads, head.lanes, device), 256};
}

}  // namespace quern::rope
