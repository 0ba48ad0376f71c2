// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Which kernel makes a product of more than 128 rows on Hopper: the time of each by estimate, few of them for one weight whatever m, and of
// these the one with the least time.
#pragma once
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <span>

#include "quern/bricks/gemm/sm90/plan.h"

namespace quern::gemm {

/// How a kernel for more than 128 rows makes out, as its variant is called.
enum class Sm90Kind : i32 {
  tiles,    ///< warp_specialised_sm90: blocks stay, and take tile after tile
  swapped,  ///< swap_ab_sm90: a block makes one tile, rows of a are wgmma's columns; parts of K by the blocks of a cluster
  narrow,   ///< narrow_sm90: a block makes one tile of 64 or 128 rows
};
/// A kernel for more than 128 rows. What it does with the sums (bias, activation, c, dtype of out) is no part of it.
struct Sm90Kernel {
  Sm90Kind kind;
  const Sm90Tile* tile;
};
/// Most kernels of an op that are chosen among.
constexpr size_t kMostSm90Kernels = 64;

/// Parts of K that a swapped kernel is tried with: 1, 2 and 4. Of clusters of three about 34 fit, four multiprocessors each, so there are
/// none ((1280, 5120), m = 136, in 40 of them 18 us).
constexpr i32 kManyRowsParts = 3;

/// What the estimate reads of a product.
struct Sm90Product {
  i64 m, n, k;
  i32 element = 2;       ///< bytes of an element of a and b
  i32 out = 2;           ///< of out
  bool m_major = false;  ///< a lies M-major: a tile brings all of its rows
};
/// Rows of a that each of the swapped tiles above each other brings: all of them, or as even a share as whole eights make. wgmma multiplies
/// as many as the tile has all the same, but what is not asked of the L2 is time: 160 rows in tiles of 80 and of 128 (2112, 7168) take 18.8
/// us and 21.1.
i32 swapped_rows(const Sm90Product& product, i32 tile_m);
/// Rows of a in each of warp_specialised_sm90's swapped tiles: an even share of m. Of the shares that fit into the tile it is the one with
/// which the busiest multiprocessor makes the fewest rows.
i32 swapped_share(const Sm90Tile& tile, const Sm90Product& product, i32 sms);
/// Blocks, or pairs of them, that the product asks for.
i64 blocks_of(const Sm90Kernel& kernel, const Sm90Product& product, i32 parts, const DeviceInfo& device);
/// How many of them one after another the busiest multiprocessor has; where two blocks share it, the busier of the two.
i64 waves_of(const Sm90Kernel& kernel, const Sm90Product& product, i32 parts, const DeviceInfo& device);
/// Estimated time in ns, with K in `parts` parts. Four times enter it: the products of the busiest multiprocessor, its operands, what the
/// L2 sends to all, and memory. They hinder each other where they are about as long, so the estimate is the fourth root of the sum of their
/// fourth powers. What starts and ends the kernel and each tile is added.
double estimate_ns(const Sm90Kernel& kernel, const Sm90Product& product, i32 parts, const DeviceInfo& device);

/// A kernel of a list, by index, and the parts of K.
struct ManyRowsChoice {
  i32 kernel = -1, parts = 1;
};
/// A kernel with `fixed` parts of K, or where that is 0 with as many as take the least time, and that time. time_of(kernel, parts) is it,
/// 1e300 where the kernel cannot.
template <class TimeOf>
ManyRowsChoice best_parts(std::span<const Sm90Kernel> kernels, i32 index, const Sm90Product& product, i32 fixed, const DeviceInfo& device,
                          const TimeOf& time_of, double& ns) {
  const Sm90Kernel& kernel = kernels[size_t(index)];
  ManyRowsChoice best{index, max_of(fixed, 1)};
  ns = time_of(kernel, best.parts);
  for (i32 parts = 2; fixed == 0 && kernel.kind == Sm90Kind::swapped && parts < 1 << kManyRowsParts; parts *= 2) {
    if (product.k <= 128 * (parts - 1) || waves_of(kernel, product, parts, device) > 1) break;
    if (const double more = time_of(kernel, parts); more < ns) ns = more, best.parts = parts;
  }
  return best;
}
/// What counts where kernels of a weight are chosen: the fourth power of a kernel's time over the least one. A kernel that takes 1.5 times
/// as long counts five times, so that few rows get one that is much slower.
inline double power_of(double x) { return x * x * x * x; }
/// Numbers of rows for which the kernels of a weight are chosen: from 129 to 2048, in even steps of a logarithm.
constexpr int kManyRowsSteps = 60;
inline i64 rows_of_step(int step) { return i64(2048 / std::pow(1.04798, kManyRowsSteps - 1 - step) + 0.5); }
/// Other numbers of multiprocessors of the arch (H100 PCIe, H20) that a weight's kernels serve too, and what the time there counts beside
/// that with kSm90Sms.
constexpr i32 kOtherSms[] = {114, 78};
constexpr float kOtherWeight = 0.1f;
/// The kernels of a weight, as a bit each, and which of them takes least at each of these and for 4096 rows.
struct WeightKernels {
  u64 all = 0;
  std::array<u8, kManyRowsSteps + 1> least{};
  /// Those that take least somewhere up to m rows. A list of what calls of up to so many rows reach has them all, so GPUs of the arch with
  /// other numbers of multiprocessors choose among these.
  u64 up_to(i64 m) const {
    u64 kernels = u64(1) << least[0];
    for (int step = 1; step < kManyRowsSteps && rows_of_step(step) <= m; ++step) kernels |= u64(1) << least[size_t(step)];
    return m < 4096 ? kernels : kernels | u64(1) << least[kManyRowsSteps];
  }
};
/// The kernels of one weight, whatever m: those in `kept`, and at most `most` more, lest there be many kernels. time_of(index, m, sms) is
/// the time of a kernel with so many multiprocessors, 1e300 where it cannot run. What is made small is the sum, over the numbers of rows of
/// rows_of_step(), of power_of() of the chosen time over the least time of all kernels; kOtherSms count `others` times as much.
/// 1. The kernel with the least time for 4096 rows is chosen.
/// 2. One after another, the kernel that lowers the sum most.
/// 3. A kernel of step 2 is exchanged for another one while that lowers the sum.
/// A GPU with another number of multiprocessors may only choose what is the best somewhere with kSm90Sms (up_to). Where one of the kernels
/// is not, all are chosen again for kSm90Sms alone.
template <class TimeOf>
WeightKernels kernels_of_weight(size_t count, u64 kept, int most, const TimeOf& time_of, float others = kOtherWeight) {
  constexpr size_t kSteps = kManyRowsSteps * (1 + std::size(kOtherSms));  // of kSm90Sms, then of the others
  using Steps = std::array<float, kSteps>;
  std::array<Steps, kMostSm90Kernels> share;
  size_t first = 0;
  for (size_t i = 1; i < count; ++i)
    if (time_of(i, 4096, kSm90Sms) < time_of(first, 4096, kSm90Sms)) first = i;
  for (size_t at = 0; at < kSteps; ++at) {
    const size_t gpu = at / kManyRowsSteps;
    const i64 rows = rows_of_step(int(at % kManyRowsSteps));
    double best = 1e300;
    std::array<double, kMostSm90Kernels> times;
    for (size_t i = 0; i < count; ++i) best = min_of(best, times[i] = time_of(i, rows, gpu == 0 ? kSm90Sms : kOtherSms[gpu - 1]));
    for (size_t i = 0; i < count; ++i) share[i][at] = (gpu == 0 ? 1 : others) * float(min_of(power_of(times[i] / best), 1e6));
  }
  const auto taken_of = [&](u64 kernels) {
    Steps taken;
    taken.fill(1e6f);
    for (; kernels != 0; kernels &= kernels - 1)
      for (size_t step = 0; step < kSteps; ++step) taken[step] = min_of(taken[step], share[size_t(std::countr_zero(kernels))][step]);
    return taken;
  };
  const auto sum_with = [&](const Steps& taken, size_t kernel) {
    float sum = 0;
    for (size_t step = 0; step < kSteps; ++step) sum += min_of(taken[step], share[kernel][step]);
    return sum;
  };
  /// The best one beside `kernels`, and the sum then.
  const auto best_beside = [&](u64 kernels, float& least) {
    const Steps taken = taken_of(kernels);
    u64 best = 0;
    least = 1e30f;
    for (size_t k = 0; k < count; ++k)
      if (const float sum = (kernels >> k & 1) != 0 ? 1e30f : sum_with(taken, k); sum < least) least = sum, best = u64(1) << k;
    return best;
  };
  const u64 fixed = kept | u64(1) << first;
  u64 chosen = fixed;
  float sum = sum_with(taken_of(fixed), first);
  for (int i = (kept >> first & 1) != 0 ? 0 : 1; i < most; ++i) {
    float least;
    const u64 next = best_beside(chosen, least);
    if (least >= sum) break;
    chosen |= next, sum = least;
  }
  for (bool closer = true; closer;) {
    closer = false;
    for (u64 left = chosen & ~fixed; left != 0; left &= left - 1) {
      const u64 others = chosen & ~(left & (~left + 1));
      float least;
      const u64 next = best_beside(others, least);
      if (least < sum * 0.9999f) chosen = others | next, sum = least, closer = true;
    }
  }
  WeightKernels kernels{chosen, {}};
  for (int step = 0; step <= kManyRowsSteps; ++step) {
    double best = 1e301;
    for (u64 left = chosen; left != 0; left &= left - 1)
      if (const double ns = time_of(size_t(std::countr_zero(left)), step < kManyRowsSteps ? rows_of_step(step) : 4096, kSm90Sms); ns < best)
        best = ns, kernels.least[size_t(step)] = u8(std::countr_zero(left));
  }
  if (others > 0 && (chosen & ~fixed & ~kernels.up_to(4096)) != 0) return kernels_of_weight(count, kept, most, time_of, 0);
  return kernels;
}

/// Of a weight's kernels the one that takes the least time for m rows. of(index, ns): a kernel's choice of parts, and its time.
template <class Of> ManyRowsChoice least_of(const WeightKernels& kernels, i64 m, const DeviceInfo& device, const Of& of) {
  ManyRowsChoice best;
  double least = 1e301;
  // A model's range of rows is taken to reach 512 where it reaches beyond 128: a list of kernels then has all of these
  for (u64 left = device.sms == kSm90Sms ? kernels.all : kernels.up_to(max_of<i64>(m, 512)); left != 0; left &= left - 1) {
    double ns;
    const ManyRowsChoice with = of(std::countr_zero(left), ns);
    if (ns < least) least = ns, best = with;
  }
  return best;
}

/// Names of candidates (Variant::candidates): those of tiles, and of swapped ones those of each with 1, 2 and 4 parts of K, in this order.
/// "128x256", "128x192_pair", "128x192_turns", "160x64_parts2".
template <size_t count>
class CandidateNames {
 public:
  explicit CandidateNames(const Sm90Tile (&tiles)[count], bool parts = false) : count_(parts ? count * kManyRowsParts : count) {
    for (size_t i = 0; i < count_; ++i) {
      const Sm90Tile& t = tiles[parts ? i / kManyRowsParts : i];
      char* const text = texts_[i].data();
      int at = std::snprintf(text, kLength, "%dx%d%s%s", t.m, t.n,
                             t.pair                     ? "_pair"
                             : t.swapped && t.alternate ? "_swapped_turns"
                             : t.swapped                ? "_swapped"
                             : t.alternate              ? "_turns"
                                                        : "",
                             t.blocks > 1 ? "_two" : "");
      if (parts && i % kManyRowsParts != 0) std::snprintf(text + at, size_t(kLength - at), "_parts%d", 1 << i % kManyRowsParts);
      names_[i] = text;
    }
  }
  std::span<const char* const> all() const { return {names_.data(), count_}; }

 private:
  static constexpr int kLength = 32;
  size_t count_;
  std::array<std::array<char, kLength>, count * kManyRowsParts> texts_;
  std::array<const char*, count * kManyRowsParts> names_;
};

}  // namespace quern::gemm
