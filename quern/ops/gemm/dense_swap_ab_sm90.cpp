// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/gemm/dense_sm90.h"

namespace quern::gemm {

using A = DenseArgs;

static const jit::Kernel<DenseSwapConfig, DenseSm90Params> swap_ab{"quern/ops/gemm/dense_swap_ab_sm90.cuh", "dense_swap_ab_sm90"};

namespace {

struct Choice {
  DenseSwapConfig config;
  i32 splits;
};

/// What a plan is chosen by: m only through the rows of a tile, so that few kernels serve all m.
struct Work {
  i32 tile_m;
  i64 tiles_m, n, k;
  i64 blocks(i32 tile_n, i32 splits) const { return tiles_m * ceil_div(n, i64(tile_n)) * splits; }
};

/// Two blocks share an SM where the ring of one is long enough for the rate of a whole SM, and where a cluster of more than
/// two would not find SMs next to each other.
DenseSwapConfig config_of(const Work& w, i32 tile_n, i32 splits) {
  DenseSwapConfig c{};
  c.tile_m = w.tile_m;
  c.tile_n = tile_n;
  c.tile_k = tile_n == 64 && w.tile_m <= 32 ? 128 : 64;
  c.threads = 2 * tile_n + 32;
  c.min_blocks = tile_n <= 128 && (w.tile_m <= 32 || splits > 2 || w.blocks(tile_n, splits) > kSm90Sms) ? 2 : 1;
  constexpr i32 kSharedMemory = 228 * 1024, kReserved = 1024;  // of an SM; by CUDA for every block
  const i32 ring = kSharedMemory / c.min_blocks - kReserved - i32(pipeline_bytes(12));
  c.stages = min_of<i32>(12, ring / ((tile_n + w.tile_m) * c.tile_k * 2));
  return c;
}

/// Time in ns. Rates are an H200's: 32.4 bytes/ns of memory for each SM; an SM takes 62 bytes/ns of a and b, or what it has in
/// flight every 1400 ns, but for what the ring holds at the start. Adding up splits takes 400 ns, and for each but the first
/// 1 us for 8192 sums, growing with the square (16384 sums of 2 splits took 4 us, of 4 splits 9 us).
double estimate_ns(const Work& w, const DenseSwapConfig& c, i32 splits, i64 sms) {
  const i64 blocks = w.blocks(c.tile_n, splits), slots = sms * c.min_blocks;
  const double rounds = double(ceil_div(blocks, sms)), waves = double(ceil_div(blocks, slots));
  const double stage = (c.tile_n + c.tile_m) * c.tile_k * 2, flying = c.stages * stage * min_of<double>(c.min_blocks, rounds);
  const double bytes = rounds * (c.tile_n + c.tile_m) * double(w.k) * 2 / splits;
  const double multiply = max_of(0.0, bytes - flying) / min_of(62.0, flying / 1400);
  const double memory = double(w.n) * double(w.k) * 2 / (double(sms) * 32.4);
  const double sums = c.tile_m * c.tile_n / 8192.0;
  return max_of(multiply, memory) + (splits > 1 ? 400 + 1000 * (splits - 1) * sums * sums : 0) + 300 * sums + 500 * (waves - 1);
}

/// The number of splits with which `config` takes least.
i32 splits_of(const Work& w, const DenseSwapConfig& config, i64 sms) {
  i32 best = 1;
  for (i32 splits = 2; splits <= i32(kDenseSwapMaxSplits) && w.blocks(config.tile_n, splits) <= sms * config.min_blocks; ++splits)
    if (estimate_ns(w, config, splits, sms) < estimate_ns(w, config, best, sms)) best = splits;
  return best;
}

/// The kernel is that for one tile along m, so that the rows of a tile decide it; the splits are for all of them.
Choice choose(const Problem& p, const DeviceInfo& device) {
  const i64 m = p[Axis::m];
  const i32 tile_m = m <= 16 ? 16 : m <= 32 ? 32 : m <= 64 ? 64 : 128;
  const Work one{tile_m, 1, p[Axis::n], p[Axis::k]}, all{tile_m, ceil_div<i64>(m, tile_m), p[Axis::n], p[Axis::k]};
  DenseSwapConfig best{};
  double best_ns = 1e300;
  for (const i32 tile_n : {64, 128, 192, 256}) {
    for (i32 splits = 1; splits <= i32(kDenseSwapMaxSplits); ++splits) {
      const DenseSwapConfig c = config_of(one, tile_n, splits);
      if (c.stages < 3 || (splits > 1 && one.blocks(tile_n, splits) > i64(kSm90Sms) * c.min_blocks)) continue;
      const double ns = estimate_ns(one, c, splits, kSm90Sms);
      if (ns < best_ns) best_ns = ns, best = c;
    }
  }
  best.dtype = p.dtype(&A::a);
  best.out_dtype = p.dtype(&A::out);
  return {best, splits_of(all, best, device.sms)};
}

DenseSm90Params params(const Call<DenseArgs>& c) {
  const auto& config = c.plan.launches[0].spec.config_as<DenseSwapConfig>();
  return sm90_params(c, config.tile_m, config.tile_n);
}

}  // namespace

Rejection rejects_swap_ab_sm90(const Problem& p, const DeviceInfo& device) {
  if (const Rejection r = rejects_sm90_operands(p, device)) return r;
  if (p.variant < 0 && !few_rows(p)) return {"m", p[Axis::m], "at most {}, or few columns", 128};
  return {};
}

Plan plan_swap_ab_sm90(const Problem& p, const DeviceInfo& device, const Knobs&) {
  const auto [config, splits] = choose(p, device);
  const i64 tiles = ceil_div<i64>(p[Axis::m], config.tile_m) * ceil_div<i64>(p[Axis::n], config.tile_n);
  Plan plan;
  plan.launch<params>(swap_ab, config, {.x = tiles * splits, .smem = dense_swap_smem(config).bytes, .cluster = splits, .pdl = p.pdl});
  return plan;
}

}  // namespace quern::gemm
