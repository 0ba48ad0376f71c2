// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/gemm/dense_sm90.h"

namespace quern::gemm {

using A = DenseArgs;

static const jit::Kernel<DenseSwapConfig, DenseSm90Params> swap_ab{"quern/ops/gemm/dense_swap_ab_sm90.cuh", "dense_swap_ab_sm90"};

namespace {

/// By n and the rows of a tile of a alone, so that few kernels serve all m. A block has a multiprocessor's shared memory for its
/// ring, as long as there is a tile of b for each multiprocessor at most; beyond, two blocks share one.
DenseSwapConfig choose(const Problem& p, i64 m, const DeviceInfo& device) {
  const i64 n = p[Axis::n];
  DenseSwapConfig c{.dtype = p.dtype(&A::a), .out_dtype = p.dtype(&A::out)};
  c.tile_m = m <= 16 ? 16 : m <= 32 ? 32 : m <= 64 ? 64 : 128;
  c.tile_n = n <= 64 * kSm90Sms ? 64 : n <= 192 * kSm90Sms && c.tile_m == 128 ? 192 : 128;
  c.min_blocks = c.tile_n == 128 ? 2 : 1;
  c.stages = 16;
  const i32 reserved = device.smem_sm - device.smem_block;  // by CUDA for every block
  while (c.min_blocks * (dense_swap_smem(c).bytes + reserved) > device.smem_sm) --c.stages;
  c.threads = 2 * c.tile_n + 32;
  c.has_c = p.tensor(&A::c).present;
  c.activation = i32(p.attr(&A::activation));
  return c;
}

/// Time in ns. Rates are an H200's: 32.4 bytes/ns of memory for each multiprocessor; one takes a ring full of a and b every
/// 1400 ns, beside what the ring holds at the start. Adding up splits takes 500 ns, and for each but the first 1250 ns for 8192
/// sums, growing with the square.
double estimate_ns(const Problem& p, const DenseSwapConfig& c, i32 splits, i64 sms) {
  const double ring = double(c.stages) * dense_swap_smem(c).stage, bytes = double(c.tile_n + c.tile_m) * double(p[Axis::k]) * 2 / splits;
  const double memory = double(p[Axis::n]) * double(p[Axis::k]) * 2 / (double(sms) * 32.4), sums = c.tile_m * c.tile_n / 8192.0;
  return max_of((bytes / ring - 1) * 1400, memory) + (splits > 1 ? 500 + 1250 * (splits - 1) * sums * sums : 0);
}

/// The number of parts of K with which `c` takes least, while each has a multiprocessor.
i32 splits_of(const Problem& p, const DenseSwapConfig& c, i64 tiles, i64 sms) {
  i32 best = 1;
  double best_ns = 1e300;
  for (i32 splits = 1; splits == 1 || (splits <= i32(kDenseSwapMaxSplits) && tiles * splits <= sms); ++splits) {
    const double ns = estimate_ns(p, c, splits, sms);
    if (ns < best_ns) best = splits, best_ns = ns;
  }
  return best;
}

DenseSm90Params params(const Call<DenseArgs>& c) {
  const auto& config = c.plan.launches[0].spec.config_as<DenseSwapConfig>();
  return sm90_params(c, config.tile_m, config.tile_n, i32(c.plan.launches[0].config.cluster));
}

}  // namespace

i32 invariant_parts(const Problem& p, const DeviceInfo& device) {
  const DenseSwapConfig config = choose(p, 64, device);
  return splits_of(p, config, ceil_div<i64>(p[Axis::n], config.tile_n), kSm90Sms);
}

Rejection rejects_swap_ab_sm90(const Problem& p, const DeviceInfo& device) {
  if (const Rejection r = rejects_sm90_operands(p, device)) return r;
  if (p.variant < 0 && !few_rows(p)) return {"m", p[Axis::m], "at most {}, or so few columns that tiles of 128 x 128 leave half of the multiprocessors idle", 128};
  return {};
}

Plan plan_swap_ab_sm90(const Problem& p, const DeviceInfo& device, const Knobs&) {
  const DenseSwapConfig config = choose(p, p[Axis::m], device);
  const i64 tiles = ceil_div<i64>(p[Axis::m], config.tile_m) * ceil_div<i64>(p[Axis::n], config.tile_n);
  const i32 splits = p.batch_invariant ? invariant_parts(p, device) : splits_of(p, config, tiles, device.sms);
  Plan plan;
  plan.launch<params>(swap_ab, config, {.x = tiles * splits, .smem = dense_swap_smem(config).bytes, .cluster = splits, .pdl = p.pdl});
  return plan;
}

}  // namespace quern::gemm
