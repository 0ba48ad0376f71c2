// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/gemm/grouped/plan.h"

#include <algorithm>
#include <cmath>

#include "quern/op/variants.h"

namespace quern::gemm {

static const jit::Kernel<DenseConfig, GroupedDenseParams> mma_ring{"quern/ops/gemm/grouped/portable/mma_ring.cuh", "grouped_mma_ring"};
static const jit::Kernel<ScaledConfig, GroupedScaledParams> scaled_mma_ring{"quern/ops/gemm/grouped/portable/scaled_mma_ring.cuh",
                                                                            "grouped_scaled_mma_ring"};
static const jit::Kernel<GroupedSpansConfig, GroupedSpansParams> spans{"quern/ops/gemm/grouped/spans.cuh", "grouped_spans"};

i64 most_tiles(const GroupedSizes& s, i32 tile_m, i32 tile_n) {
  // Each group that has rows ends in one tile that is not full
  const i64 along_m = s.matrices == 1 ? s.rows / tile_m + min_of(s.groups, s.rows) : s.matrices * ceil_div<i64>(s.rows, tile_m);
  return along_m * ceil_div<i64>(s.n, tile_n);
}

// ---- which rows a group has ----

static GroupedSpansParams spans_params(const Call<GroupedContiguousArgs, GroupedChoice>& c) {
  return {.group_of_row = c.args.group_of_row.data,
          .spans = c.region(c.choice.spans),
          .m = i32(c.problem[Axis::m]),
          .groups = i32(c.problem[Axis::groups]),
          .alignment = c.args.alignment};
}

template <class Args>
GroupedSpans add_spans(Plan& plan, const Problem& p, const DeviceInfo& device) {
  if constexpr (!kMasked<Args>)
    if (p.tensor(&Args::group_of_row).present) {
      const GroupedChoice choice{plan.scratch("spans", 8 * max_of<i64>(p[Axis::groups], 1))};
      plan.launch<spans_params>(spans, {1024}, {.pdl = p.pdl}, choice);
      return {choice, device.arch.number >= 90};  // its blocks are scheduled while this one runs
    }
  return {{}, p.pdl};
}
template GroupedSpans add_spans<GroupedContiguousArgs>(Plan&, const Problem&, const DeviceInfo&);
template GroupedSpans add_spans<GroupedMaskedArgs>(Plan&, const Problem&, const DeviceInfo&);

GroupedRows rows_of(const Call<GroupedContiguousArgs, GroupedChoice>& c) {
  const GroupedContiguousArgs& a = c.args;
  GroupedRows rows{a.m_indptr.data, GroupedRowsKind::bounds, i32(c.problem[Axis::groups]), i32(c.problem[Axis::m]), a.alignment};
  if (c.choice.spans) rows.data = c.region(c.choice.spans), rows.kind = GroupedRowsKind::spans;
  if (a.group_ends.present()) rows.data = a.group_ends.data, rows.kind = GroupedRowsKind::ends;
  return rows;
}
GroupedRows rows_of(const Call<GroupedMaskedArgs, GroupedChoice>& c) {
  return {c.args.masked_m.data, GroupedRowsKind::counts, i32(c.problem[Axis::groups]), i32(c.problem[Axis::max_m]), 1};
}

// ---- variant portable ----

template <class Args>
static GroupedDenseParams dense_params(const Call<Args, GroupedChoice>& c) {
  const Args& a = c.args;
  const Problem& p = c.problem;
  const GroupedStrides b = strides_of_b(a.b, major_of(p.tensor(&Args::b)));
  return {.gemm = {.a = a.a.data,
                   .b = a.b.data,
                   .bias = nullptr,
                   .out = a.out.data,
                   .partials = nullptr,
                   .a_stride = strides_of(a.a).row,
                   .b_stride = b.row,
                   .out_stride = strides_of(a.out).row,
                   .partial_stride = 0,
                   .m = 0,
                   .n = p[Axis::n],
                   .k = p[Axis::k],
                   .split_k = p[Axis::k],
                   .bias_dtype = DType::f32,
                   .out_alignment = p.tensor(&Args::out).alignment,
                   .c = {}},
          .rows = rows_of(c),
          .a_group = strides_of(a.a).group,
          .b_group = b.group,
          .out_group = strides_of(a.out).group};
}

template <class Args>
static GroupedScaledParams scaled_params(const Call<Args, GroupedChoice>& c) {
  const Args& a = c.args;
  const Problem& p = c.problem;
  return {.gemm = {.a = a.a.data,
                   .b = a.b.data,
                   .bias = nullptr,
                   .out = a.out.data,
                   .scales_a = scales_of_first(a.scales_a, kScaleARow),
                   .scales_b = scales_of_first(a.scales_b, kScaleABlock),
                   .c = {},
                   .a_stride = strides_of(a.a).row,
                   .b_stride = strides_of(a.b).row,
                   .out_stride = strides_of(a.out).row,
                   .m = 0,
                   .n = p[Axis::n],
                   .k = p[Axis::k],
                   .bias_dtype = DType::f32,
                   .out_alignment = p.tensor(&Args::out).alignment},
          .rows = rows_of(c),
          .a_group = strides_of(a.a).group,
          .b_group = strides_of(a.b).group,
          .out_group = strides_of(a.out).group,
          .scales_a_group = strides_of(a.scales_a).group,
          .scales_b_group = strides_of(a.scales_b).group};
}

/// One kernel takes all rows that are not aligned to 16 bytes, element by element: weights of served models are aligned, and a kernel for
/// each tile and alignment would be six of a warm-up list.
DenseConfig grouped_config(i64 rows, DType dtype, DType out, i32 vector, Major b_major) {
  DenseConfig c{.dtype = dtype,
                .out_dtype = out,
                .vector = vector < 8 ? 1 : 8,
                .tile_m = 64,
                .tile_n = vector < 8 ? 64 : 128,
                .tile_k = 64,
                .stages = 4,
                .warps_m = 2,
                .warps_n = 2,
                .sum_parts_in_block = 0,
                .threads = 128,
                .min_blocks = 2,
                .has_c = 0,
                .activation = 0,
                .a_major = Major::k,
                .b_major = b_major};
  if (vector == 8 && rows <= 16) c.tile_m = 16, c.tile_n = 64, c.tile_k = 128, c.warps_m = 1, c.warps_n = 4;
  return c;
}
/// Only 64 columns: for 128 there are two sets of sums of 64 registers each, and beside them ptxas spills what it moves out of the loop
/// over tiles.
ScaledConfig grouped_config(i64 rows, DType a, DType b, DType out, i32 vector) {
  if (rows <= 16) return {a, b, out, vector < 4 ? 1 : vector, 16, 64, 6, 1, 4, 128, 2};
  return {a, b, out, vector < 4 ? 1 : vector, 64, 64, 4, 2, 2, 128, 2};
}

template <class Args>
Plan plan_grouped(const Problem& p, const DeviceInfo& device) {
  const GroupedSizes s = sizes_of<Args>(p);
  const i32 vector = min_of(p.vector(&Args::a), p.vector(&Args::b));
  Plan plan;
  const auto [choice, pdl] = add_spans<Args>(plan, p, device);
  const auto grid = [&, pdl = pdl](i32 tile_m, i32 tile_n, i32 smem) {
    return Grid{.x = max_of<i64>(1, min_of<i64>(2 * device.sms, most_tiles(s, tile_m, tile_n))), .smem = smem, .pdl = pdl};
  };
  if (is_scaled<Args>(p)) {
    const ScaledConfig c = grouped_config(s.expected, p.dtype(&Args::a), p.dtype(&Args::b), p.dtype(&Args::out), vector);
    plan.launch<scaled_params<Args>>(scaled_mma_ring, c, grid(c.tile_m, c.tile_n, grouped_smem(c)), choice);
  } else {
    const DenseConfig c = grouped_config(s.expected, p.dtype(&Args::a), p.dtype(&Args::out), vector, major_of(p.tensor(&Args::b)));
    plan.launch<dense_params<Args>>(mma_ring, c, grid(c.tile_m, c.tile_n, grouped_smem(c)), choice);
  }
  return plan;
}
template Plan plan_grouped<GroupedContiguousArgs>(const Problem&, const DeviceInfo&);
template Plan plan_grouped<GroupedMaskedArgs>(const Problem&, const DeviceInfo&);

// ---- what checks and benchmarks know ----

Budget grouped_budget(DType out, bool scaled, i64 k, bool portable) {
  if (scaled) return scaled_budget(out, k, portable);
  return {.of_value = unit_roundoff(out), .of_magnitude = (8 + 2 * std::sqrt(double(k))) * 0x1p-24};
}

Cost grouped_cost(const GroupedSizes& s, const std::vector<i64>& rows, DType a, DType out) {
  const double n = double(s.n), k = double(s.k), scale = size_of(a) == 1 ? 4 : 0;
  double all = 0, groups = 0;
  for (const i64 count : rows) all += double(count), groups += count > 0;
  const double blocks_k = std::ceil(k / kScaledGroup), blocks_n = std::ceil(n / kScaledGroup);
  return {.bytes = (all + groups * n) * k * size_of(a) + scale * (all + groups * blocks_n) * blocks_k + all * n * size_of(out) +
                   4 * double(rows.size()),
          .flops = 2 * all * n * k};
}

void derive_operands(const char* op, Case& which) {
  if (which.contains("a.dtype")) which["bits8"] = size_of(DType(int(which["a.dtype"]))) == 1;  // the words of a call
  const bool scaled = which["bits8"] != 0;
  if (which["hopper"] != 0) {
    which["variant"] = variant_index(op, which["hopper"] == 1 ? "swap_ab_sm90" : "warp_specialised_sm90");
    which["n"] = double(round_up(i64(which["n"]), i64(8)));
    for (const char* word : {"k", "groups"}) which[word] = std::max<double>(which[word], 1.0);
    which["a.pad"] = 0;
    which["out.pad"] = which["out.pad"] == 0 ? 0 : 8;
  }
  if (which["hopper"] == 3) {  // a wave of 132 tiles: 66 or 33 along m, of which an odd number makes no wave of pairs
    const int groups = scaled ? 33 : 66;
    which["groups"] = groups, which["m"] = groups * 16, which["max_m"] = std::min<double>(which["max_m"], 17.0);
    which["n"] = scaled ? 768 : which["out_f32"] != 0 ? 384 : 512;
  }
  if (which["hopper"] == 4 && scaled &&
      which["out_f32"] ==
          0) {  // 132 tiles of 256 x 128, as plans count them, are one wave; of 128 rows there are 138 of 192 columns, two waves
    which["groups"] = 33, which["m"] = 33 * 200, which["max_m"] = 300, which["expected_m"] = 200;
    which["n"] = 264;
  }
  if (which["hopper"] == 5 && scaled) {  // four rounds of pairs of 128 x 192, and of more groups than a warp looks at together
    which["groups"] = 46, which["m"] = 46 * 256, which["max_m"] = 300, which["expected_m"] = 256;
    which["n"] = 768;
  }
  if (which["hopper"] == 6 && scaled &&
      which["out_f32"] == 0) {  // two tiles of 192 columns for each of about 60 along m are a round, and two of a tail another one; three
                                // along m on one multiprocessor have them too
    which["groups"] = 32, which["m"] = 32 * 180, which["max_m"] = 300, which["expected_m"] = 180;
    which["n"] = 640;
  }
  const bool aligned = which["a.pad"] == 0;
  if (!aligned) which["second"] = 0, which["out_f32"] = 0, which["b.pad"] = scaled ? 16 : 8;
  const bool second = which["second"] != 0;
  which["a.dtype"] = int(scaled ? second ? DType::e5m2 : DType::e4m3 : second ? DType::f16 : DType::bf16);
  which["b.dtype"] = scaled ? int(DType::e4m3) : int(which["a.dtype"]);
  which["out.dtype"] = int(which["out_f32"] != 0 ? DType::f32 : !scaled && second ? DType::f16 : DType::bf16);
  which["scales_a.present"] = which["scales_b.present"] = scaled;
  if (scaled || which["k"] <= 1 || which["b.swap"] != 0)
    which["b.transposed"] = 0;  // columns of one element are rows; b.swap puts another dim innermost
  const i64 unit = scaled ? 16 : 8;
  const auto to_unit = [&](const char* dense) { return double(round_up(i64(which[dense]), unit) - i64(which[dense])); };
  if (aligned) which["a.pad"] = to_unit("k"), which["b.pad"] = to_unit(which["b.transposed"] != 0 ? "n" : "k");
}

}  // namespace quern::gemm
