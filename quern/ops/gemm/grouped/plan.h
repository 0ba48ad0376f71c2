// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What gemm.grouped_contiguous and gemm.grouped_masked share on the host; `Args` is either's.
#pragma once
#include <type_traits>

#include "quern/bricks/gemm/groups/sm90_spec.h"
#include "quern/bricks/gemm/plan.h"
#include "quern/bricks/gemm/sm90/scaled_plan.h"
#include "quern/op/schema.h"
#include "quern/ops/gemm/grouped/spec.h"
#include "quern/ops/gemm/grouped_contiguous.h"
#include "quern/ops/gemm/grouped_masked.h"

namespace quern::gemm {

template <class Args>
constexpr bool kMasked = std::is_same_v<Args, GroupedMaskedArgs>;

/// Sizes that plans follow from. The rows of each group lie on the device.
struct GroupedSizes {
  i64 rows;  ///< m, or max_m
  i64 groups, n, k;
  i64 matrices;  ///< of a: groups, or 1 for all of them
  i64 expected;  ///< rows of a group
};
template <class Args>
GroupedSizes sizes_of(const Problem& p) {
  const i64 groups = p[Axis::groups];
  if constexpr (kMasked<Args>) {
    const i64 rows = p[Axis::max_m], expected = p.attr(&Args::expected_m);
    return {rows, groups, p[Axis::n], p[Axis::k], groups, expected > 0 ? min_of(expected, rows) : rows};
  } else {
    return {p[Axis::m], groups, p[Axis::n], p[Axis::k], 1, ceil_div(p[Axis::m], max_of<i64>(groups, 1))};
  }
}
/// The most tiles that there can be, whatever the rows of each group.
i64 most_tiles(const GroupedSizes& sizes, i32 tile_m, i32 tile_n);

/// Elements from group to group (0 where groups lie in one matrix) and from row to row.
struct GroupedStrides {
  i64 group, row;
};
inline GroupedStrides strides_of(const TensorView& v) {
  return v.rank == 3 ? GroupedStrides{v.strides[0], v.strides[1]} : GroupedStrides{0, v.strides[0]};
}
/// Of b, which may be N-major: from group to group, and from row to row or from k to k.
inline GroupedStrides strides_of_b(const TensorView& b, Major major) { return {b.strides[0], b.strides[major == Major::mn ? 2 : 1]}; }

/// Whether a and b are of 8 bits, and so have scales.
template <class Args>
bool is_scaled(const Problem& p) {
  return size_of(p.dtype(&Args::a)) == 1;
}

// ---- requirements ----
template <class Args>
Rejection rejects_bits(const Problem& p) {
  const i32 a = 8 * size_of(p.dtype(&Args::a)), b = 8 * size_of(p.dtype(&Args::b));
  if (a != b) return {"bits of b", b, "{}, those of `a`", a};
  return {};
}
/// 8-bit operands of the tensor cores are K-major.
template <class Args>
Rejection rejects_major(const Problem& p) {
  if (is_scaled<Args>(p) && p.tensor(&Args::b).transposed) return {"b", "N-major", "K-major: `a` and `b` are of 8 bits"};
  return {};
}
template <class Args>
Rejection rejects_scales(const Problem& p) {
  const bool wanted = is_scaled<Args>(p), a = p.tensor(&Args::scales_a).present, b = p.tensor(&Args::scales_b).present;
  if (a == wanted && b == wanted) return {};
  return {a == wanted ? "scales_b" : "scales_a", wanted ? "absent" : "given",
          wanted ? "a tensor: `a` and `b` are of 8 bits" : "none: `a` and `b` are of 16 bits"};
}
/// Rows are counted in 31 bits, as what says which rows a group has is i32.
template <class Args>
Rejection rejects_rows(const Problem& p) {
  const GroupedSizes s = sizes_of<Args>(p);
  if (s.groups >= (i64(1) << 29)) return {"groups", s.groups, "below 2^29", 0};
  if (s.rows >= (i64(1) << 31) || s.rows * s.matrices >= (i64(1) << 31))
    return {kMasked<Args> ? "groups * max_m" : "m", s.rows * s.matrices, "below 2^31", 0};
  return {};
}

// ---- variants ----
template <class Args>
Plan plan_grouped(const Problem& problem, const DeviceInfo& device);

/// Tiles as of gemm.dense's and gemm.scaled's portable kernels, for groups of `rows` rows; two blocks fit an SM.
DenseConfig grouped_config(i64 rows, DType dtype, DType out, i32 vector, Major b_major = Major::k);
ScaledConfig grouped_config(i64 rows, DType a, DType b, DType out, i32 vector);

/// Tiles of 192 columns and a tail of 128, for few rounds of tiles: how many the groups' rows ask for is known on the device alone. One
/// H100, (4096, 7168), masked, beside 176 columns, with four stages: 4 groups of 128 to 246 rows 60 us and 71, 2 of 500 and 400 50 and 61,
/// 4 of 206 to 332 67 and 65. Of more rounds, (7168, 2048), beside 192 columns: 8 groups of 90 to 300 rows, 5 of them, 59 us and 61; 32 of
/// 200, 19 of them, 223 and 220. One H200, 4 groups of 206 to 332: five stages 59.0 us and four 60.0; results through one box of a warp
/// take 600 clocks longer than through three, which is not counted: where rows are fewer than expected the tail gains more. Shorter K was
/// not measured.
constexpr Sm90Tile kTailSm90Tile = {.n = 192, .stages = 5, .cost = 1, .tail = 128};
constexpr i64 kMostTailRounds = 2;
/// kScaledSm90Tiles, as an H100 has them in groups, 4 of m = 35968, (4096, 7168), and 8 of m = 33792, (7168, 2048): pairs take 0.98 to 0.99
/// of the time of 192 columns, 256 rows 1.01, and more where the last of a group is half empty, 128 columns 1.05 to 1.08, 176 columns 1.03.
constexpr Sm90Tile kGroupedSm90Tiles[] = {kTailSm90Tile,
                                          {192, 4, 1},
                                          {.n = 192, .stages = 4, .cost = 0.99, .pair = true},
                                          {128, 6, 1.065},
                                          {128, 3, 1.03, false, 256},
                                          {.n = 176, .stages = 5, .cost = 1.025, .store = 130}};
/// With results of f32, of which a kernel with tiles of 128 columns would spill 16 bytes, and with narrower ones behind those of 192 would
/// compile for 1 s. Costs are those of results of 16 bits.
constexpr Sm90Tile kGroupedWideSm90Tiles[] = {
    {192, 4, 1}, {.n = 192, .stages = 4, .cost = 0.99, .pair = true}, {.n = 176, .stages = 5, .cost = 1.025, .store = 130}};
/// Tiles of so many rows along m. Of several groups each has half a tile more than the expected rows fill, if it can have more rows: they
/// seldom have just these, and 4 groups of 512 more or less asked for three rounds of tiles of 256 rows where two were counted, 133 us and
/// 102 (H100).
inline i64 tiles_along_m(const GroupedSizes& s, i32 rows) {
  if (s.groups == 1) return ceil_div<i64>(s.expected, rows);
  return min_of<i64>(s.groups * ceil_div<i64>(s.rows, rows),
                     ceil_div<i64>(s.groups * max_of<i64>(2 * rows, 2 * s.expected + rows), 2 * rows));
}
/// The wide tiles and the tail's of a kernel that has both, if `along_m` tiles make the rows of all groups: what its warps find on kSm90Sms
/// multiprocessors.
inline ColumnTiles best_column_tiles(u32 along_m, u32 n, const Sm90Tile& t) {
  const u32 rounds = wide_rounds(along_m, kSm90Sms, n, u32(t.n));
  ColumnTiles best = column_tiles(rounds, along_m, kSm90Sms, n, u32(t.n), u32(t.tail));
  for (u32 less = 1; less < kColumnWays && less <= rounds; ++less)
    if (const ColumnTiles c = column_tiles(rounds - less, along_m, kSm90Sms, n, u32(t.n), u32(t.tail)); c.time < best.time) best = c;
  return best;
}
/// The tile with the least time. None in turn: these kernels have no such loop. Pairs where there are more than two rounds of them: 4
/// groups of 267 rows, two rounds, take 72 us of pairs and 69 of single tiles (H100); and where groups have the rows of two tiles, as two
/// of two groups share no b: 16 groups of 62 rows, (7168, 2048), 98 us and 88 of 128 x 128. Several groups can have a tile more along m
/// than is expected, so the time is that of both: tiles that just fill their last round would take one more. An N-major b comes in whole
/// boxes.
template <size_t count>
const Sm90Tile& least_time(const Sm90Tile (&tiles)[count], const GroupedSizes& s, double store_cost, Major b_major = Major::k) {
  return least_time(tiles, s.k, store_cost, [&](const Sm90Tile& t) -> i64 {
    const auto tiles_of = [&](i64 along_m) { return ceil_div<i64>(along_m, pair_blocks(t)) * ceil_div<i64>(s.n, t.n); };
    const i64 along_m = tiles_along_m(s, t.m), rounds = rounds_of(t, tiles_of(along_m));
    if (b_major == Major::mn && t.n % dense_sm90_box(t.n) != 0) return 0;
    if (t.pair && (rounds <= 2 || s.expected < rows_at_once(t))) return 0;
    if (t.tail != 0 && (s.groups > kTailGroups || rounds > kMostTailRounds)) return 0;
    const auto columns = [&](i64 of_m) {
      return t.tail != 0 ? i64(best_column_tiles(u32(of_m), u32(s.n), t).time) * t.n / kWideTime : columns_in_rounds(t, tiles_of(of_m));
    };
    const bool known = s.groups == 1 || 2 * s.expected <= t.m;  // in the latter case as many as groups
    return columns(along_m) + columns(known ? along_m : along_m + 1);
  });
}

// ---- which rows a group has ----
/// What the launch that multiplies is handed.
struct GroupedChoice {
  Region spans;  ///< made of group_of_row; none where that is absent
};
/// What a launch that makes spans leaves to the next one.
struct GroupedSpans {
  GroupedChoice choice;
  i32 pdl;  ///< whether the next launch may overlap the one before it
};
/// Adds the launch that makes spans of group_of_row, where it is given.
template <class Args>
GroupedSpans add_spans(Plan& plan, const Problem& problem, const DeviceInfo& device);
GroupedRows rows_of(const Call<GroupedContiguousArgs, GroupedChoice>& call);
GroupedRows rows_of(const Call<GroupedMaskedArgs, GroupedChoice>& call);
/// As Scales::row_shift: a row of scales for each row, as of a, or for a block of rows, as of b.
enum ScaleRows : i32 { kScaleARow = 0, kScaleABlock = 7 };
static_assert(1 << kScaleABlock == kScaledGroup);
/// Scales of one group.
inline Scales scales_of_first(const TensorView& v, ScaleRows rows) { return {v.data, strides_of(v).row, v.strides[v.rank - 1], rows}; }

// ---- what checks and benchmarks know ----

/// As gemm.dense's and gemm.scaled's.
Budget grouped_budget(DType out, bool scaled, i64 k, bool portable);
/// Each operand once: b of the groups that have rows, a and out of those rows.
Cost grouped_cost(const GroupedSizes& sizes, const std::vector<i64>& rows, DType a, DType out);
/// Heeds a case's words; a.pad 0 makes the rows of a and b multiples of 16 bytes. What is compiled in is not varied with everything, or
/// most of a check would be compiles.
void derive_operands(const char* op, Case& which);

}  // namespace quern::gemm
