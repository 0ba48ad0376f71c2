// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/bricks/gemm/sm90/many_rows.h"

namespace quern::gemm {

i32 swapped_rows(const Sm90Product& p, i32 tile_m) {
  if (p.m_major) return tile_m;
  const i64 high = ceil_div<i64>(p.m, tile_m);
  return i32(high == 1 ? p.m : round_up<i64>(ceil_div(p.m, high), 8));
}

i64 blocks_of(const Sm90Kernel& kernel, const Sm90Product& p, i32 parts) {
  const Sm90Tile& t = *kernel.tile;
  return ceil_div<i64>(p.m, rows_at_once(t)) * ceil_div<i64>(p.n, t.n) * parts;
}

i64 waves_of(const Sm90Kernel& kernel, const Sm90Product& p, i32 parts, const DeviceInfo& device) {
  const Sm90Tile& t = *kernel.tile;
  const i64 together = pair_blocks(t) * parts;  // blocks of a cluster
  return ceil_div<i64>(blocks_of(kernel, p, parts) / parts, max_of<i64>(1, device.sms / together) * t.blocks);
}

namespace {

/// What the estimate knows of a kind of kernels, for operands of 16 and of 8 bits: `busy` is the time of products, those of a tile with the cost 1, beside that of the data sheet's rate; the rest in ns.
struct KindTimes {
  double busy;
  double start;      ///< once, beside the kind with the least
  double turns;      ///< once more, of tiles in turn
  double store;      ///< of 8192 results of a tile, where nobody multiplies meanwhile
  double store_turns;
  double wave;       ///< of each wave of blocks that have a multiprocessor for themselves: until the first bytes have come
};
constexpr KindTimes kTimes16[] = {{1.17, 1500, 1000, 461, 154, 0}, {1.17, 0, 0, 500, 0, 1500}, {1.25, 0, 0, 300, 0, 1500}};
constexpr KindTimes kTimes8[] = {{1.35, 1500, 0, 386, 0, 0}, {2.2, 0, 0, 500, 0, 1500}, {1.6, 0, 0, 300, 0, 1500}};

/// Of K in parts the two blocks of a TPC share no rows: a multiprocessor takes 75 bytes a ns in the place of 143, and the L2 sends 8.7 KB in the place of 10.5 (an H100).
constexpr double kTakenInParts = 75. / 143, kSentInParts = 8.7 / 10.5;
/// Adding up the parts of K: once, and for each part but the first for 8192 sums.
constexpr double kParts = 500, kPart = 1250;

}  // namespace

double estimate_ns(const Sm90Kernel& kernel, const Sm90Product& p, i32 parts, const DeviceInfo& device) {
  const Sm90Tile& t = *kernel.tile;
  const Rates& rates = device.rates;
  const KindTimes& times = (p.element == 1 ? kTimes8 : kTimes16)[i32(kernel.kind)];
  const double k = double(p.k) / parts, tile = double(t.m) * t.n, high = double(ceil_div<i64>(p.m, rows_at_once(t)));
  const double rows = kernel.kind == Sm90Kind::swapped ? swapped_rows(p, t.m) : double(min_of<i64>(t.m, p.m));
  const double waves = double(waves_of(kernel, p, parts, device)) * t.blocks, blocks = double(blocks_of(kernel, p, parts)) * pair_blocks(t);
  const double flops_sm = (p.element == 1 ? rates.flops_8 : rates.flops_16) / rates.sms;
  const double multiply = 2 * tile * k / flops_sm * times.busy * t.cost;
  // Of two neighbours, which are one TPC's, the L2 sends once what both read: b of tiles above each other, else a; a pair's halves of b go to both
  const double row_bytes = k * p.element, brought = (rows + t.n) * row_bytes;
  const double shared = parts > 1 ? rows + t.n : t.pair || high > 1 ? rows + t.n / 2. : rows / 2 + t.n;
  const double bring = brought / (rates.tma_sm * (parts > 1 ? kTakenInParts : 1));
  const double send = blocks * shared * row_bytes / (rates.tma_l2 / rates.sms * device.sms * (parts > 1 ? kSentInParts : 1));
  const double memory = (double(p.m + p.n) * double(p.k) * p.element + double(p.m) * double(p.n) * p.out) / rates.memory;
  const double sums = tile / 8192;
  const double store = (t.alternate ? times.store_turns : times.store) * sums + 2 * tile * t.store / flops_sm * times.busy;
  const double added = parts > 1 ? kParts + kPart * (parts - 1) * sums : 0;
  return max_of(max_of(waves * max_of(multiply, bring), send), memory) + waves * store + (t.blocks > 1 ? 1 : waves) * times.wave + times.start + (t.alternate ? times.turns : 0) + added;
}

}  // namespace quern::gemm
