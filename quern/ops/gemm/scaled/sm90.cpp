// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/gemm/scaled/sm90.h"

#include <bit>
#include <iterator>

#include "quern/op/memo.h"

namespace quern::gemm {

using A = ScaledArgs;

Ending ending_of(const Problem& p) { return {DType::bf16, p.dtype(&A::out), p.tensor(&A::c).present, i32(Activation::none)}; }

Rejection rejects_scaled_sm90_operands(const Problem& p, const DeviceInfo& device) {
  if (device.arch.number != 90) return {"arch", device.arch.number, "{}: wgmma", 90};
  const i32 vector = min_of(p.vector(&A::a), p.vector(&A::b));
  if (vector < 16) return {"alignment of a and b", vector, "{} bytes for every row", 16};
  if (p.tensor(&A::out).alignment < 16) return {"alignment of out", p.tensor(&A::out).alignment, "{} bytes for every row", 16};
  if (p.tensor(&A::c).alignment < 16) return {"alignment of c", p.tensor(&A::c).alignment, "{} bytes for every row", 16};
  if (p[Axis::n] % 8 != 0) return {"n", p[Axis::n], "a multiple of {}", 8};
  if (p[Axis::k] == 0) return {"k", 0, "a positive one", 0};
  for (const Axis axis : {Axis::m, Axis::n, Axis::k})
    if (p[axis] > 0x7fffff00) return {name(axis), p[axis], "below 2^31", 0};
  return {};
}

i32 column_scales(const Problem& p) {
  if (p[Axis::k] > kScaledGroup && p[Axis::scale_columns_a] <= 1 && p[Axis::scale_columns_b] <= 1) return 1;
  return p[Axis::n] > 1 && p[Axis::scale_rows_b] == p[Axis::n] ? 2 : 0;
}

ScaledSm90Params sm90_params(const Call<ScaledArgs>& c, i32 box_a, i32 box_b, i32 fetched) {
  const ScaledArgs& a = c.args;
  const Problem& p = c.problem;
  const auto map = [&](const TensorView& operand, i32 box) {
    TensorMapSpec spec = sm90_operand(operand, box);
    spec.fetched = fetched;
    return c.device.make_tensor_map(spec);
  };
  return {.gemm = {.a = map(a.a, box_a),
                   .b = map(a.b, box_b),
                   .bias = a.bias.data,
                   .out = a.out.data,
                   .out_stride = a.out.strides[0],
                   .m = i32(p[Axis::m]),
                   .n = i32(p[Axis::n]),
                   .k = i32(p[Axis::k]),
                   .rows = box_a,
                   .parts = 1,
                   .pdl = p.pdl,
                   .bias_dtype = p.dtype(&A::bias),
                   .c = {a.c.data, a.c.strides[0], p.dtype(&A::c), p.tensor(&A::c).alignment}},
          .scales_a = scales_of(a.scales_a, p[Axis::m]),
          .scales_b = scales_of(a.scales_b, p[Axis::n])};
}

i64 most_swapped_rows(const Problem& p) { return p[Axis::n] > 64 * kSm90Sms ? 32 : 128; }

std::span<const Sm90Kernel> scaled_many_rows_kernels(i32 column_scales) {
  constexpr size_t kTiles = std::size(kScaledSm90Tiles), kSwapped = std::size(kScaledSwappedTiles), kNarrow = std::size(kScaledNarrowTiles),
                   kAll = kTiles + kSwapped + kNarrow;
  static_assert(kAll <= kMostSm90Kernels && std::size(kScaledOnceSm90Tiles) == kTiles);
  constexpr auto all_of = [](const Sm90Tile(&tiles)[kTiles]) {
    std::array<Sm90Kernel, kAll> all{};
    for (size_t i = 0; i < kTiles; ++i) all[i] = {Sm90Kind::tiles, &tiles[i]};
    for (size_t i = 0; i < kSwapped; ++i) all[kTiles + i] = {Sm90Kind::swapped, &kScaledSwappedTiles[i]};
    for (size_t i = 0; i < kNarrow; ++i) all[kTiles + kSwapped + i] = {Sm90Kind::narrow, &kScaledNarrowTiles[i]};
    return all;
  };
  static constexpr auto kByStage = all_of(kScaledSm90Tiles), kOnce = all_of(kScaledOnceSm90Tiles);
  return column_scales == 1 ? kOnce : kByStage;
}

Sm90Product scaled_product_of(const Problem& p) {
  return {.m = p[Axis::m], .n = p[Axis::n], .k = p[Axis::k], .element = 1, .out = size_of(p.dtype(&A::out))};
}

bool takes_tile(const Problem& p, const Sm90Tile& t) {
  if (column_scales(p) == 2) return t.m == 128 && t.n == 128;
  // The last of several tiles of 256 rows begins earlier, and what wgmma reads behind it are 128 rows of b's at most:
  // rows_earlier_of_tile()
  return t.m == 128 || ((p[Axis::m] - 1) % 256 + 1 >= 128 && size_of(p.dtype(&A::out)) == 2 && !p.tensor(&A::c).present);
}

/// Tiles of 144 and 160 columns were measured with up to six rounds; what follows is the others' until it is.
static double time_of(const Problem& p, const Sm90Kernel& kernel, const Sm90Product& product, i32 parts, const DeviceInfo& device) {
  constexpr double kSlow = 1.08;
  constexpr i64 kMeasuredWaves = 6;
  Problem with = p;  // whether a tile of 256 rows can is asked of these rows
  with.axes[with.axis_slots[size_t(Axis::m)]] = product.m;
  if (kernel.kind == Sm90Kind::tiles && !takes_tile(with, *kernel.tile)) return 1e300;
  const double ns = estimate_ns(kernel, product, parts, device);
  return kernel.kind == Sm90Kind::tiles && kernel.tile->n < 176 && kernel.tile->n > 128 &&
                 waves_of(kernel, product, 1, device) > kMeasuredWaves
             ? ns * kSlow
             : ns;
}
double scaled_many_rows_ns(const Problem& p, const Sm90Kernel& kernel, i32 parts, const DeviceInfo& device) {
  return time_of(p, kernel, scaled_product_of(p), parts, device);
}

static ManyRowsChoice best_parts(const Problem& p, i32 index, const Sm90Product& product, const DeviceInfo& device, double& ns) {
  return best_parts(
      scaled_many_rows_kernels(column_scales(p)), index, product, p.batch_invariant, device,
      [&](const Sm90Kernel& kernel, i32 parts) { return time_of(p, kernel, product, parts, device); }, ns);
}

/// All that the choice reads of a problem, but m.
struct ScaledWeight {
  i64 n, k;
  i32 scales, invariant, out, c;
  bool operator==(const ScaledWeight&) const = default;
};
/// For kSm90Sms multiprocessors above all, as a pack serves all GPUs of the arch.
static WeightKernels kernels_of_weight(const Problem& p, const ScaledWeight& weight, DeviceInfo device) {
  static thread_local Memo<ScaledWeight, WeightKernels, 64> memo;
  device.sms = kSm90Sms;
  return memo.of(weight, [&](const ScaledWeight&) {
    // Beside narrow_sm90's two kernels, or three, those that split K or swap_ab_sm90's two; or swap_ab_sm90's four, of which those of 64
    // and 128 rows are among these. Of wide n up to 128 rows meet a tile of warp_specialised_sm90
    const NarrowTiles narrow = narrow_tiles(1, weight.n, 0, 0);
    const std::span<const Sm90Kernel> kernels = scaled_many_rows_kernels(weight.scales);
    const bool few = !narrow.occupy(weight.n), wide = narrow.columns > 96;
    const int most = few ? 4 : narrow.columns <= 32 ? 5 : (narrow.columns <= 192 ? 6 : 5) - wide;
    Sm90Product product = scaled_product_of(p);
    product.m = 128;
    u64 kept = 0;
    double least = 1e300;
    for (size_t i = 0; i < kernels.size(); ++i) {
      if (few && kernels[i].kind == Sm90Kind::swapped) kept |= u64(1) << i;
      if (const double ns = wide && kernels[i].kind == Sm90Kind::tiles ? time_of(p, kernels[i], product, 1, device) : 1e300; ns < least)
        least = ns, kept = u64(1) << i;
    }
    return kernels_of_weight(kernels.size(), kept, most, [&](size_t i, i64 m, i32 sms) {
      device.sms = sms;
      Sm90Product product = scaled_product_of(p);
      product.m = m;
      double ns;
      best_parts(p, i32(i), product, device, ns);
      return ns;
    });
  });
}

ManyRowsChoice choose_scaled_many_rows(const Problem& p, const DeviceInfo& device) {
  struct Key {
    ScaledWeight weight;
    i64 m, sms;
    bool operator==(const Key&) const = default;
  };
  static thread_local Memo<Key, ManyRowsChoice, 64> memo;
  const Sm90Product product = scaled_product_of(p);
  const ScaledWeight weight{product.n, product.k, column_scales(p), p.batch_invariant, product.out, p.tensor(&A::c).present};
  return memo.of({weight, product.m, device.sms}, [&](const Key&) {
    return least_of(kernels_of_weight(p, weight, device), product.m, device,
                    [&](i32 index, double& ns) { return best_parts(p, index, product, device, ns); });
  });
}

const Sm90Tile& scaled_many_rows_tile(const Problem& p, Sm90Kind kind, const DeviceInfo& device) {
  const std::span<const Sm90Kernel> kernels = scaled_many_rows_kernels(column_scales(p));
  if (const Sm90Kernel& chosen = kernels[size_t(choose_scaled_many_rows(p, device).kernel)]; chosen.kind == kind) return *chosen.tile;
  const Sm90Tile* best = nullptr;
  double least = 1e300;
  for (const Sm90Kernel& k : kernels)
    if (const double ns = k.kind == kind ? scaled_many_rows_ns(p, k, 1, device) : 1e300; ns < least) least = ns, best = k.tile;
  return *best;
}

bool takes_few_rows(const Problem& p, const DeviceInfo& device) {
  if (p[Axis::m] <= 128) return p[Axis::m] <= most_swapped_rows(p) || p[Axis::n] <= 64 * kSm90Sms;
  return scaled_many_rows_kernels(column_scales(p))[size_t(choose_scaled_many_rows(p, device).kernel)].kind == Sm90Kind::swapped;
}

}  // namespace quern::gemm
