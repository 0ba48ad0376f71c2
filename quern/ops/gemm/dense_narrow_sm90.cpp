// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/gemm/dense_call.h"
#include "quern/ops/gemm/dense_sm90.h"

namespace quern::gemm {

using A = DenseArgs;

static const jit::Kernel<DenseSm90Config, DenseSm90Params> narrow{"quern/ops/gemm/dense_narrow_sm90.cuh", "dense_narrow_sm90"};

i32 narrow_columns(i64 n, i32 splits) { return i32(max_of<i64>(16 * splits, round_up<i64>(ceil_div<i64>(n * splits, kSm90Sms), 8))); }

bool narrow_tiles_occupy(i64 n, i32 splits) { return 5 * ceil_div<i64>(n, narrow_columns(n, splits)) * splits >= 4 * kSm90Sms; }

/// Blocks that split K. A multiprocessor takes in 64 bytes a clock: tiles of 16 columns bring mostly a, and with 128 rows so do wider ones, which a long
/// K has the time to add up for. m = 64: (2112, 7168) 11.3 us and 12.2; m = 128: 13.5 and 17.5, (7168, 16384) 63.3 and 68.6.
static i32 splits_of(const Problem& p) {
  const i32 columns = narrow_columns(p[Axis::n], 1);
  const bool many = p[Axis::m] > 64 && (columns < 48 || (columns <= 64 && p[Axis::k] >= 4096));
  return !p.batch_invariant && (columns == 16 || many) ? 2 : 1;
}

/// Stages of two chunks of K, of one beside 128 rows of a.
static DenseSm90Config config_of(const Problem& p, const DeviceInfo& device) {
  const i64 m = p[Axis::m];
  const i32 splits = splits_of(p);
  DenseSm90Config c{.dtype = p.dtype(&A::a), .out_dtype = p.dtype(&A::out), .fold = splits > 1, .has_c = p.tensor(&A::c).present,
                    .activation = i32(p.attr(&A::activation)), .by_lanes = 1};
  c.tile_m = m <= 64 ? 64 : 128;
  c.tile_n = narrow_columns(p[Axis::n], splits);
  c.chunks = c.tile_m == 128 ? 1 : 2;
  c.threads = 128 * narrow_warpgroups(c.tile_m) + 64;
  for (c.stages = 16; c.stages > 0 && dense_sm90_smem(c).bytes > device.smem_block;) --c.stages;
  return c;
}

/// Measured on an H200, ten shapes: up to 8 % faster than swap_ab_sm90 from one row on. Few stages of wide tiles are not (24576, 1536: m = 16 20.3 us and 19.5),
/// nor are 128 rows beside 32 columns, where a is most of what a multiprocessor takes in.
static Rejection rejects_slow(const Problem& p) {
  const i64 m = p[Axis::m];
  const i32 columns = narrow_columns(p[Axis::n], 1), most = m <= 16 ? 128 : 224;
  if (!narrow_tiles_occupy(p[Axis::n], splits_of(p))) return {"n", p[Axis::n], "such that tiles are whole shares of {} multiprocessors", kSm90Sms};
  if (columns > most) return {"n", p[Axis::n], "at most {}", most * kSm90Sms};
  if (m > 64 && columns > 16 && columns < 48 && (p[Axis::k] > 4096 || p.batch_invariant)) return {"n", p[Axis::n], "more than {}, of more than 64 rows and 4096 columns of K", 40 * kSm90Sms};
  return {};
}

Rejection rejects_narrow_sm90(const Problem& p, const DeviceInfo& device) {
  if (const Rejection r = rejects_sm90_operands(p, device)) return r;
  if (major_of(p.tensor(&A::a)) != Major::k) return {"a", "M-major", "K-major"};
  if (major_of(p.tensor(&A::b)) != Major::k) return {"b", "N-major", "K-major"};
  if (p[Axis::m] > 128) return {"m", p[Axis::m], "at most {}", 128};
  if (p[Axis::k] % kDenseSm90TileK != 0) return {"k", p[Axis::k], "a multiple of {}", kDenseSm90TileK};
  if (p.batch_invariant && invariant_parts(p, device) > 1) return {"n and k", "those with parts of K", "one part of K with batch_invariant"};
  if (p.variant < 0)
    if (const Rejection r = rejects_slow(p)) return r;
  if (narrow_columns(p[Axis::n], splits_of(p)) > 256 || config_of(p, device).stages < 3) return {"n", p[Axis::n], "so few that three stages fit", 0};
  return {};
}

static DenseSm90Params params(const Call<DenseArgs>& c) {
  const auto& config = c.plan.launches[0].spec.config_as<DenseSm90Config>();
  return sm90_params(c, sm90_few_rows(c.problem, config.tile_m), config.tile_n, 1, config.chunks);
}

Plan plan_narrow_sm90(const Problem& p, const DeviceInfo& device, const Knobs&) {
  const DenseSm90Config config = config_of(p, device);
  const i32 splits = splits_of(p);
  const i64 tiles = ceil_div<i64>(p[Axis::n], config.tile_n);
  Plan plan;
  plan.launch<params>(narrow, config, {.x = tiles * splits, .smem = dense_sm90_smem(config).bytes, .cluster = splits, .pdl = p.pdl});
  return plan;
}

}  // namespace quern::gemm
