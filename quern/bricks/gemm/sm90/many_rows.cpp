// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/bricks/gemm/sm90/many_rows.h"

#include <cmath>

namespace quern::gemm {

i32 swapped_rows(const Sm90Product& p, i32 tile_m) {
  if (p.m_major) return tile_m;
  const i64 high = max_of<i64>(ceil_div<i64>(p.m, tile_m), 1);
  return i32(high == 1 ? p.m : round_up<i64>(ceil_div(p.m, high), 8));
}

/// Columns of wgmma for so many rows of a.
static i32 columns_of_share(const Sm90Tile& t, i32 rows) { return max_of(t.swapped, round_up(rows, swapped_step(t.m))); }

i32 swapped_share(const Sm90Tile& t, const Sm90Product& p, i32 sms) {
  i32 best = 0;
  i64 least = 0;
  for (i64 high = max_of<i64>(ceil_div<i64>(p.m, t.m), 1);; ++high) {
    const i32 rows = i32(high == 1 ? p.m : round_up<i64>(ceil_div(p.m, high), 8));
    const i64 made = ceil_div<i64>(ceil_div<i64>(p.m, rows) * ceil_div<i64>(p.n, t.n), sms) * columns_of_share(t, rows);
    if (best == 0 || made < least) best = rows, least = made;
    if (rows <= t.swapped) return best;
  }
}

i64 blocks_of(const Sm90Kernel& kernel, const Sm90Product& p, i32 parts, const DeviceInfo& device) {
  const Sm90Tile& t = *kernel.tile;
  return ceil_div<i64>(p.m, t.swapped ? swapped_share(t, p, device.sms) : rows_at_once(t)) * ceil_div<i64>(p.n, t.n) * parts;
}

/// Tiles that the busiest multiprocessor, or cluster of them, makes. Of clusters of four not as many fit into the GPCs as there are fours
/// of multiprocessors: 32 take two waves on an H200, 30 one.
static i64 turns_of(const Sm90Kernel& kernel, const Sm90Product& p, i32 parts, const DeviceInfo& device) {
  const i64 together = pair_blocks(*kernel.tile) * parts, sms = together < 4 ? device.sms : device.sms * 10 / 11;
  return ceil_div<i64>(blocks_of(kernel, p, parts, device) / parts, max_of<i64>(1, sms / together));
}
i64 waves_of(const Sm90Kernel& kernel, const Sm90Product& p, i32 parts, const DeviceInfo& device) {
  return ceil_div<i64>(turns_of(kernel, p, parts, device), kernel.tile->blocks);
}

namespace {

/// What the estimate knows of a kind of kernels, for operands of 16 and of 8 bits: `busy` is the time of products, those of a tile with the
/// cost 1, beside that of the data sheet's rate; the rest in ns. Least squares find them, and the tiles' costs, of what
/// bench/gpu/gemm_peers.py --candidates measures; these are an H200's.
struct KindTimes {
  double busy;
  double start;  ///< once
  double turns;  ///< once more, of tiles in turn
  double store;  ///< of 8192 results of a tile, where nobody multiplies meanwhile
  double store_turns;
  double wave;  ///< of each wave of blocks that have a multiprocessor for themselves: until the first bytes have come
};
constexpr KindTimes kTimes16[] = {{1.077, 2052, 1302, 533, 144, 0}, {1.021, 0, 0, 483, 0, 2163}, {}};
constexpr KindTimes kTimes8[] = {{1.163, 2994, 0, 512, 0, 0}, {2.028, 1633, 0, 658, 0, 1785}, {1.409, 853, 0, 649, 0, 1523}};

/// Of K in parts the two blocks of a TPC share no rows, and a multiprocessor and the L2 give so much of their rates.
constexpr double kTakenInParts = 0.84, kSentInParts = 0.65;
/// Adding up the parts of K: once, and for each part but the first for 8192 sums.
constexpr double kParts = 560, kPart = 750;
/// Where two blocks could share a multiprocessor: the time of the products of a block that has it for itself, over half of the time of two.
constexpr double kAlone = 1.154;

/// What a swapped tile costs more for each of wgmma's columns below 128: an instruction reads 64 rows of b however few columns it has. With
/// a cost of 1.02 whatever the columns, kernels took 1.24 of the estimate with 72 columns, 1.19 with 80, 1.10 with 88 to 104 and 1.06 with
/// 112 to 128 (means, 40 products, H200).
constexpr double kFewColumns = 0.0065;

constexpr double fourth_power(double x) { return (x * x) * (x * x); }

}  // namespace

double estimate_ns(const Sm90Kernel& kernel, const Sm90Product& p, i32 parts, const DeviceInfo& device) {
  const Sm90Tile& t = *kernel.tile;
  const Rates& rates = device.rates;
  const KindTimes& times = (p.element == 1 ? kTimes8 : kTimes16)[i32(kernel.kind)];
  const i32 share = t.swapped ? swapped_share(t, p, device.sms) : 0;
  const i32 columns = t.swapped ? columns_of_share(t, share) : t.m;
  const double cost = t.cost + (t.swapped ? kFewColumns * max_of(0, 128 - columns) : 0);
  const double k = double(p.k) / parts, tile = double(columns) * t.n, high = double(ceil_div<i64>(p.m, rows_at_once(t)));
  const double rows = t.swapped                          ? (p.m_major ? t.m : share)
                      : kernel.kind == Sm90Kind::swapped ? swapped_rows(p, t.m)
                                                         : double(min_of<i64>(t.m, p.m));
  const double waves = double(waves_of(kernel, p, parts, device)), turns = double(turns_of(kernel, p, parts, device)),
               blocks = double(blocks_of(kernel, p, parts, device)) * pair_blocks(t);
  const double flops_sm = (p.element == 1 ? rates.flops_8 : rates.flops_16) / rates.sms;
  const double multiply =
      (t.blocks == 1 ? turns : std::floor(turns / 2) * 2 + std::fmod(turns, 2) * kAlone) * 2 * tile * k / flops_sm * times.busy * cost;
  // Two neighbouring blocks are on one TPC, and the L2 sends once what both read: rows of b where their tiles lie above each other, else
  // rows of a. The halves of b that a pair loads go to both. Blocks that make one tile are neighbours in their first wave only
  const double row_bytes = k * p.element, beside = kernel.kind == Sm90Kind::tiles ? 1 : 1 / max_of(turns, 1.);  // no turns: n = 0
  const double together = parts > 1 ? rows + t.n : t.pair || (high > 1 && !t.swapped) ? rows + t.n / 2. : rows / 2 + t.n;
  const double shared = together * beside + (rows + t.n) * (1 - beside);
  const double bring = turns * (rows + t.n) * row_bytes / (rates.tma_sm * (parts > 1 ? kTakenInParts : 1));
  const double send = blocks * shared * row_bytes / (rates.tma_l2 / rates.sms * device.sms * (parts > 1 ? kSentInParts : 1));
  const double memory = (double(p.m + p.n) * double(p.k) * p.element + double(p.m) * double(p.n) * p.out) / rates.memory;
  const double loop = std::sqrt(std::sqrt(fourth_power(multiply) + fourth_power(bring) + fourth_power(send) + fourth_power(memory)));
  const double sums = tile / 8192;
  const double store = (t.alternate ? times.store_turns : times.store) * sums * p.out / 2;
  const double added = parts > 1 ? kParts + kPart * (parts - 1) * sums : 0;
  return loop + turns * store + waves * times.wave + times.start + (t.alternate ? times.turns : 0) + added;
}

}  // namespace quern::gemm
