// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/gemm/dense/sm90.h"

#include <bit>
#include <iterator>

#include "quern/op/memo.h"

namespace quern::gemm {

using A = DenseArgs;

std::span<const Sm90Kernel> dense_many_rows_kernels() {
  constexpr size_t kTiles = std::size(kDenseSm90Tiles), kSwapped = std::size(kDenseSwappedTiles);
  static_assert(kTiles + kSwapped <= kMostSm90Kernels);
  static constexpr auto kKernels = [] {
    std::array<Sm90Kernel, kTiles + kSwapped> all{};
    for (size_t i = 0; i < kTiles; ++i) all[i] = {Sm90Kind::tiles, &kDenseSm90Tiles[i]};
    for (size_t i = 0; i < kSwapped; ++i) all[kTiles + i] = {Sm90Kind::swapped, &kDenseSwappedTiles[i]};
    return all;
  }();
  return kKernels;
}

Sm90Product dense_product_of(const Problem& p) {
  return {.m = p[Axis::m],
          .n = p[Axis::n],
          .k = p[Axis::k],
          .element = 2,
          .out = size_of(p.dtype(&A::out)),
          .m_major = p.tensor(&A::a).transposed != 0};
}

bool takes_columns(const Problem& p, const Sm90Tile& t) { return !p.tensor(&A::b).transposed || t.n % dense_sm90_box(t.n) == 0; }
bool takes_swapped_rows(const Problem& p, const Sm90Tile& t) { return !p.tensor(&A::a).transposed || t.m % dense_sm90_box(t.m) == 0; }

/// Whether more follows the sums than the bias.
static bool has_end(const Problem& p) { return p.tensor(&A::c).present || p.attr(&A::activation) != Activation::none; }

/// Of more rows than the problem's too. Swapped tiles are for up to 2048 rows until more are measured. Tiles of up to 160 columns in turn
/// took 5 to 20 % longer than rounds and columns say in some runs with c or an activation; without, those of 128 and 144 with 25 rounds or
/// more, in one run with 13 (README).
static double time_of(const Problem& p, const Sm90Kernel& kernel, const Sm90Product& product, i32 parts, const DeviceInfo& device) {
  constexpr double kSlow = 1.08;
  constexpr i64 kManyWaves = 16, kMeasuredRows = 2048;
  const Sm90Tile& t = *kernel.tile;
  if (kernel.kind == Sm90Kind::swapped) return takes_swapped_rows(p, t) ? estimate_ns(kernel, product, parts, device) : 1e300;
  if (!takes_columns(p, t) || (parts > 1 && !takes_parts(t))) return 1e300;  // a block of these sums all parts
  if (t.swapped && (product.out != 2 || p.tensor(&A::c).present)) return 1e300;
  const double ns = estimate_ns(kernel, product, 1, device) * (t.swapped && product.m > kMeasuredRows ? kSlow : 1);
  const i32 columns = t.swapped ? swapped_share(t, product, device.sms) : t.n;
  const bool slow = t.alternate && columns <= 160 && (has_end(p) || (columns < 160 && waves_of(kernel, product, 1, device) >= kManyWaves));
  return slow ? ns * kSlow : ns;
}
double dense_many_rows_ns(const Problem& p, const Sm90Kernel& kernel, i32 parts, const DeviceInfo& device) {
  return time_of(p, kernel, dense_product_of(p), parts, device);
}

/// `invariant`: with batch_invariant the parts of K, else 0.
static ManyRowsChoice best_parts(const Problem& p, i32 index, const Sm90Product& product, i32 invariant, const DeviceInfo& device,
                                 double& ns) {
  return best_parts(
      dense_many_rows_kernels(), index, product, invariant, device,
      [&](const Sm90Kernel& kernel, i32 parts) { return time_of(p, kernel, product, parts, device); }, ns);
}

/// All that the choice reads of a problem, but m. The tiles of one weight are chosen once: it takes about 0.1 ms.
struct DenseWeight {
  i64 n, k;
  i32 m_major, n_major, end, invariant, out, c;
  bool operator==(const DenseWeight&) const = default;
};
/// For kSm90Sms multiprocessors above all, as a pack serves all GPUs of the arch.
static WeightKernels kernels_of_weight(const Problem& p, const DenseWeight& weight, DeviceInfo device) {
  static thread_local Memo<DenseWeight, WeightKernels, 64> memo;
  device.sms = kSm90Sms;
  return memo.of(weight, [&](const DenseWeight&) {
    // Beside narrow_sm90's three kernels there are five; swap_ab_sm90's four are those of 64 and 128 rows of 64 columns too. That of 128
    // rows is always there where it makes 256 rows at once
    const bool narrow = !p.tensor(&A::a).transposed && !p.tensor(&A::b).transposed && narrow_tiles(1, weight.n, 0, 0).occupy(weight.n);
    const bool same = !narrow && weight.n <= 64 * kSm90Sms, once = 2 * ceil_div<i64>(weight.n, 64) <= kSm90Sms;
    u64 kept = 0;
    for (size_t i = 0; i < dense_many_rows_kernels().size(); ++i)
      if (const Sm90Kernel& k = dense_many_rows_kernels()[i];
          k.kind == Sm90Kind::swapped && k.tile->n == 64 && ((k.tile->m == 64 && same) || (k.tile->m == 128 && (same || once))))
        kept |= u64(1) << i;
    return kernels_of_weight(dense_many_rows_kernels().size(), kept, narrow ? once ? 4 : 5 : 4, [&](size_t i, i64 m, i32 sms) {
      device.sms = sms;
      Sm90Product product = dense_product_of(p);
      product.m = m;
      double ns;
      best_parts(p, i32(i), product, weight.invariant, device, ns);
      return ns;
    });
  });
}

ManyRowsChoice choose_dense_many_rows(const Problem& p, const DeviceInfo& device) {
  struct Key {
    DenseWeight weight;
    i64 m, sms;
    bool operator==(const Key&) const = default;
  };
  static thread_local Memo<Key, ManyRowsChoice, 64> memo;
  const Sm90Product product = dense_product_of(p);
  const DenseWeight weight{product.n,
                           product.k,
                           p.tensor(&A::a).transposed,
                           p.tensor(&A::b).transposed,
                           has_end(p),
                           p.batch_invariant ? invariant_parts(p, device) : 0,
                           product.out,
                           p.tensor(&A::c).present};
  return memo.of({weight, product.m, device.sms}, [&](const Key&) {
    return least_of(kernels_of_weight(p, weight, device), product.m, device,
                    [&](i32 index, double& ns) { return best_parts(p, index, product, weight.invariant, device, ns); });
  });
}

bool takes_swapped(const Problem& p, const DeviceInfo& device) {
  return p[Axis::m] <= 128 || dense_many_rows_kernels()[size_t(choose_dense_many_rows(p, device).kernel)].kind == Sm90Kind::swapped;
}

}  // namespace quern::gemm
