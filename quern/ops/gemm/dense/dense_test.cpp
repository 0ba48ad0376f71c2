// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/gemm/dense.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "quern/base/error.h"
#include "quern/device/emulated.h"
#include "quern/op/call_words.h"
#include "quern/op/random.h"
#include "quern/op/reach.h"
#include "quern/op/schema.h"
#include "quern/ops/gemm/dense/sm90.h"
#include "quern/testing/case_args.h"
#include "quern/testing/pairwise.h"

namespace quern::gemm {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Views of a call that is never launched.
struct Call {
  std::vector<u16> memory = std::vector<u16>(1 << 16);
  DenseArgs args;
  Call() {
    args = {
        .out = result(4, 16), .a = TensorView(memory.data(), DType::bf16, {4, 32}), .b = TensorView(memory.data(), DType::bf16, {16, 32})};
  }
  /// Behind what the other views have of the memory.
  TensorView result(i64 m, i64 n) { return TensorView(memory.data() + (1 << 15), DType::bf16, {m, n}); }
  void expect(ErrorKind kind, const char* text) const {
    try {
      bind(find_op("gemm.dense"), &args, {});
      ADD_FAILURE() << "no error; expected: " << text;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), kind);
      EXPECT_STREQ(e.what(), text);
    }
  }
};

TEST(gemm_dense, rejects_wrong_shapes) {
  Call c;
  c.args.b = TensorView(c.memory.data(), DType::bf16, {16, 40});
  c.expect(ErrorKind::value, "gemm.dense: `b` has shape [16, 40], expected k=32 at dim 1 (k was set by `a` [4, 32])");
  c = {};
  c.args.out = TensorView(c.memory.data(), DType::bf16, {4, 17});
  c.expect(ErrorKind::value, "gemm.dense: `out` has shape [4, 17], expected n=16 at dim 1 (n was set by `b` [16, 32])");
  c = {};
  c.args.bias = TensorView(c.memory.data(), DType::bf16, {4});
  c.expect(ErrorKind::value, "gemm.dense: `bias` has shape [4], expected n=16 at dim 0 (n was set by `b` [16, 32])");
  c = {};
  c.args.c = TensorView(c.memory.data(), DType::bf16, {16, 4});
  c.expect(ErrorKind::value, "gemm.dense: `c` has shape [16, 4], expected m=4 at dim 0 (m was set by `a` [4, 32])");
}

/// A view whose dims are exchanged in memory, rows of it `stride` elements apart.
TensorView transposed(void* data, DType dtype, i64 rows, i64 columns, i64 stride) {
  TensorView v(data, dtype, {rows, columns});
  v.strides[0] = 1, v.strides[1] = stride;
  return v;
}

TEST(gemm_dense, rejects_operands_that_are_dense_nowhere) {
  Call c;
  c.args.a.strides[0] = 64, c.args.a.strides[1] = 2;
  c.expect(ErrorKind::value,
           "gemm.dense: `a` has strides 64 and 2 at its last two dims, expected 1 at one of them (dense rows or columns)");
  c = {};
  c.args.b.strides[0] = 3, c.args.b.strides[1] = 0;
  c.expect(ErrorKind::value, "gemm.dense: `b` has strides 3 and 0 at its last two dims, expected 1 at one of them (dense rows or columns)");
  c = {};
  c.args.b.strides[0] = 1, c.args.b.strides[1] = -16;
  c.expect(ErrorKind::value, "gemm.dense: `b` has stride -16 at dim 1, expected >= 0");
  c = {};
  c.args.out = transposed(c.memory.data(), DType::bf16, 4, 16, 4);
  c.expect(ErrorKind::value, "gemm.dense: `out` has stride 4 at its last dim, expected 1 (dense rows)");
}

/// Which dimension is dense, and how the rows along it are aligned.
TEST(gemm_dense, binds_either_major) {
  const auto facts = [](const TensorView& a) {
    Call c;
    c.args.a = a;
    c.args.out = c.result(a.shape[0], 16);
    const Problem p = bind(find_op("gemm.dense"), &c.args, {});
    const TensorFacts& f = p.tensor(&DenseArgs::a);
    return std::vector<i32>{f.transposed, f.alignment, f.contiguous};
  };
  alignas(16) static u16 memory[1 << 12];
  EXPECT_EQ(facts(TensorView(memory, DType::bf16, {4, 32})), (std::vector<i32>{0, 16, 1}));
  EXPECT_EQ(facts(transposed(memory, DType::bf16, 4, 32, 8)), (std::vector<i32>{1, 16, 0}));
  EXPECT_EQ(facts(transposed(memory, DType::bf16, 4, 32, 12)), (std::vector<i32>{1, 8, 0}));
  EXPECT_EQ(facts(transposed(memory + 1, DType::bf16, 4, 32, 8)), (std::vector<i32>{1, 2, 0}));
  // Of one row both could be dense: rows are
  TensorView row(memory, DType::bf16, {1, 32});
  row.strides[0] = 1;
  EXPECT_EQ(facts(row), (std::vector<i32>{0, 16, 1}));
  EXPECT_EQ(facts(transposed(memory, DType::bf16, 1, 32, 8)), (std::vector<i32>{1, 16, 0}));
}

TEST(gemm_dense, rejects_wrong_dtypes) {
  Call c;
  c.args.a.dtype = DType::f32;
  c.expect(ErrorKind::type, "gemm.dense: `a` is f32, expected bf16 or f16");
  c = {};
  c.args.b.dtype = DType::f16;
  c.expect(ErrorKind::type, "gemm.dense: `b` is f16, expected bf16 like `a`");
  c = {};
  c.args.out.dtype = DType::f16;
  c.expect(ErrorKind::type, "gemm.dense: `out` is f16, expected bf16 like `a` or f32");
  c = {};
  c.args.bias = TensorView(c.memory.data(), DType::f16, {16});
  c.expect(ErrorKind::type, "gemm.dense: `bias` is f16, expected bf16 like `a` or f32");
  c = {};
  c.args.c = TensorView(c.memory.data(), DType::f16, {4, 16});
  c.expect(ErrorKind::type, "gemm.dense: `c` is f16, expected bf16 like `a` or f32");
}

TEST(gemm_dense, rejects_activations_that_are_none) {
  Call c;
  c.args.activation = Activation(4);
  c.expect(ErrorKind::value, "gemm.dense: `activation` is 4, expected none, relu, gelu or silu");
  c.args.activation = Activation(-1);
  c.expect(ErrorKind::value, "gemm.dense: `activation` is -1, expected none, relu, gelu or silu");
  c.args.activation = Activation::silu;
  EXPECT_NO_THROW(bind(find_op("gemm.dense"), &c.args, {}));
}

Plan plan_of(const DeviceInfo& device, const Case& which) {
  const Op& op = find_op("gemm.dense");
  const Case full = quern::testing::derived(op, which);
  const quern::testing::ArgsStorage args = quern::testing::fake_args(op, full);
  return make_plan(op, bind(op, args.get(), quern::testing::options_of(op, full)), device);
}

std::string plan_text(const DeviceInfo& device, const Case& which) {
  const Plan plan = plan_of(device, which);
  const auto* config = plan.launches[0].spec.config;
  i32 field[12];
  std::memcpy(field, config, sizeof field);
  std::string s = std::to_string(field[3]) + "x" + std::to_string(field[4]) + " vector " + std::to_string(field[2]);
  if (field[9]) s += " sum_parts_in_block";
  return s + " grid " + std::to_string(plan.launches[0].config.grid[0]) + " splits " + std::to_string(plan.launches[0].config.grid[1]) +
         " launches " + std::to_string(plan.count);
}

/// Kernel, tile and blocks of a plan's first launch.
std::string tile_text(const char* arch, double m, double n, double k, double batch_invariant = 0, const Case& layout = {}) {
  Case which = {{"m", m}, {"n", n}, {"k", k}, {"batch_invariant", batch_invariant}};
  which.insert(layout.begin(), layout.end());
  const Plan p = plan_of(device_info_of(Arch::parse(arch)), which);
  const std::string printed = jit::print(p.launches[0].spec);
  const auto field = [&](const std::string& name) {
    const size_t at = printed.find(name + "=");
    return at == printed.npos ? "" : ", " + printed.substr(at, printed.find_first_of(",>", at) - at);
  };
  return jit::function_of(printed) + field("tile_m") + field("tile_n") + field("alternate") +
         (printed.find("swapped=0") == printed.npos ? field("swapped") : "") + " grid " + std::to_string(p.launches[0].config.grid[0]) +
         " cluster " + to_string(p.launches[0].config.cluster);
}

/// What one weight's calls have is kept: c, which swapped tiles do not take, beside an activation, in both orders.
TEST(gemm_dense, kept_kernels_depend_on_no_order) {
  const auto tile = [](const Case& more) { return tile_text("sm_90a", 640, 4096, 4096, 0, more); };
  const Case silu{{"activation", 3}}, c{{"c.present", 1}};
  const std::string silu_first = tile(silu), c_behind = tile(c);
  EXPECT_THAT(silu_first, HasSubstr("swapped"));
  EXPECT_THAT(c_behind, Not(HasSubstr("swapped")));
  std::thread([&] {  // which has kept nothing
    EXPECT_EQ(tile(c), c_behind);
    EXPECT_EQ(tile(silu), silu_first);
  })
      .join();
}

/// plans.txt has what is launched on a Hopper GPU; other GPUs and odd operands stay with mma_ring, and K in one part changes no plan that
/// has one.
TEST(gemm_dense, other_gpus_and_odd_operands_stay_with_mma_ring) {
  EXPECT_EQ(tile_text("sm_90a", 4096, 2113, 7168).substr(0, 14), "dense_mma_ring");
  EXPECT_EQ(tile_text("sm_80", 4096, 4096, 4096).substr(0, 14), "dense_mma_ring");
  EXPECT_EQ(tile_text("sm_90a", 4096, 4096, 4096, 1), tile_text("sm_90a", 4096, 4096, 4096));
}

/// Among the cases that are checked: each tile, of plain results and with a c that comes by TMA; both warpgroups' turns; several groups of
/// 32 tiles above each other, which short K takes at a time, in two rounds; a last tile that begins earlier, of the narrowest by fewer rows
/// than would do.
TEST(gemm_dense, cases_meet_every_tile) {
  const Op& op = find_op("gemm.dense");
  const DeviceInfo h200 = device_info_of(Arch::parse("sm_90a"));
  std::set<std::pair<i32, i32>> met;             // columns, whether c comes by TMA
  std::set<std::pair<i32, i32>> swapped;         // rows and columns
  std::map<i32, std::set<i32>> swapped_columns;  // of warp_specialised_sm90's swapped tiles, by the most that they have
  bool swapped_m_major = false;
  std::set<i32> earlier;
  bool turns = false, groups = false, parts = false;
  for (const Case& given : quern::testing::pairwise(op.cases, [&](const Case& c) { return quern::testing::runs(op, c, h200); })) {
    const Case full = quern::testing::derived(op, given);
    const i64 m = i64(full.at("m")), n = i64(full.at("n"));
    if (m == 0 || n == 0) continue;
    const Plan p = plan_of(h200, given);
    const std::string function = std::string(jit::function_of(jit::print(p.launches[0].spec)));
    if (m > 128 && function == "dense_swap_ab_sm90") {
      const SwapAbSm90& tiles = p.launches[0].spec.config_as<SwapAbConfig>().block.tiles;
      swapped.insert({tiles.tile_m, tiles.tile_n}), parts = parts || p.launches[0].config.cluster.x > 1;
    }
    if (function != "dense_warp_specialised_sm90") continue;
    const auto& config = p.launches[0].spec.config_as<TilesSm90Config>();
    const TilesSm90& tiles = config.block.tiles;
    if (config.sum_parts_in_block != 0) continue;
    if (tiles.swapped != 0) {
      swapped_columns[tiles.tile_n].insert(
          max_of(tiles.swapped, round_up(swapped_share({.n = 128, .m = tiles.tile_n, .swapped = tiles.swapped}, {.m = m, .n = n}, h200.sms),
                                         swapped_step(tiles.tile_n))));
      swapped_m_major = swapped_m_major || tiles.b_major == Major::mn;
      continue;
    }
    met.insert({tiles.tile_n, config.block.ending.has_c != 0 ? 2 * config.block.store.c_boxes - 1 : 0});
    turns = turns || (tiles.alternate != 0 && ceil_div<i64>(m, 128) * ceil_div<i64>(n, i64(tiles.tile_n)) > kSm90Sms);
    groups = groups || (sm90_group_log2(m, i64(full.at("k")), tiles.tile_n) == 5 && m > 32 * 128 &&
                        ceil_div<i64>(m, 128) * ceil_div<i64>(n, i64(tiles.tile_n)) > kSm90Sms);
    if (m > 128 && m % 128 != 0 && m % 128 < 128 - tiles.tile_n && tiles.a_major == Major::k) earlier.insert(tiles.tile_n);
  }
  for (const Sm90Tile& tile : kDenseSm90Tiles)
    if (tile.swapped != 0) EXPECT_GE(swapped_columns[tile.m].size(), 2u) << ::testing::PrintToString(swapped_columns[tile.m]);
    else
      for (const i32 c : {0, 1})
        EXPECT_TRUE((tile.n == 256 && c == 0) || met.contains({tile.n, c}))
            << tile.n << " columns, c by TMA " << c;  // plain results of 256 take 3.4e9 products to be met
  for (const Sm90Tile& tile : kDenseSwappedTiles)
    EXPECT_TRUE(swapped.contains({tile.m, tile.n})) << tile.m << " rows, " << tile.n << " columns";
  EXPECT_TRUE(swapped_m_major);
  EXPECT_TRUE(parts);
  EXPECT_TRUE(turns);
  EXPECT_TRUE(groups);
  EXPECT_FALSE(earlier.empty());
}

TEST(gemm_dense, tiles_above_each_other_by_k) {
  EXPECT_EQ(sm90_group_log2(4096, 512, 192), 5);
  EXPECT_EQ(sm90_group_log2(4096, 1536, 256), 5);
  EXPECT_EQ(sm90_group_log2(3968, 512, 192), 4);  // 31
  EXPECT_EQ(sm90_group_log2(1921, 512, 192), 4);  // 16
  EXPECT_EQ(sm90_group_log2(1920, 512, 192), 3);
  EXPECT_EQ(sm90_group_log2(4096, 1537, 192), 3);
  EXPECT_EQ(sm90_group_log2(4096, 512, 176), 3);
}

/// Tiles are those of nt, but for one whose columns are no whole boxes of an N-major b.
TEST(gemm_dense, plans_of_other_layouts) {
  const Case nn = {{"b.transposed", 1}}, tn = {{"a.transposed", 1}, {"b.transposed", 1}}, tt = {{"a.transposed", 1}};
  for (const Case& layout : {nn, tn, tt}) {
    EXPECT_EQ(tile_text("sm_90a", 4096, 4096, 4096, 0, layout), tile_text("sm_90a", 4096, 4096, 4096));
    EXPECT_EQ(tile_text("sm_90a", 16, 1024, 7168, 0, layout), tile_text("sm_90a", 16, 1024, 7168));
    EXPECT_EQ(tile_text("sm_80", 4096, 4096, 4096, 0, layout), tile_text("sm_80", 4096, 4096, 4096));
    const Plan p = plan_of(device_info_of(Arch::parse("sm_90a")), [&] {
      Case c = layout;
      return c["m"] = 16, c["n"] = 4096, c["k"] = 4096, c;
    }());
    const std::string majors = std::string("a_major=") + (layout.contains("a.transposed") ? "1" : "0") +
                               ", b_major=" + (layout.contains("b.transposed") ? "1" : "0");
    EXPECT_THAT(jit::print(p.launches[0].spec), HasSubstr(majors));
  }
  EXPECT_EQ(tile_text("sm_90a", 4096, 7168, 2048, 0, tt), tile_text("sm_90a", 4096, 7168, 2048));
  // Rows of m elements that 16 bytes do not divide
  EXPECT_EQ(tile_text("sm_90a", 4099, 4096, 4096, 0, tt).substr(0, 14), "dense_mma_ring");
  EXPECT_EQ(tile_text("sm_90a", 4099, 4096, 4096, 0, nn).substr(0, 17), "dense_warp_specia");
}

/// m is no part of a kernel: a server of one weight meets at most eight, in every layout.
TEST(gemm_dense, few_kernels_serve_every_m) {
  const double shapes[][2] = {{6144, 4096},  {4096, 4096},  {28672, 4096}, {4096, 14336},  {2112, 7168},  {24576, 1536},
                              {24576, 4096}, {20480, 4096}, {40960, 1024}, {40960, 512},   {10240, 1024}, {32768, 512},
                              {7168, 16384}, {4096, 7168},  {7168, 2048},  {128256, 4096}, {8192, 8192},  {768, 7168},
                              {1536, 7168},  {2904, 4096},  {2360, 4096},  {3344, 1024}};
  const DeviceInfo h200 = device_info_of(Arch::parse("sm_90a"));
  for (const auto& [n, k] : shapes)
    for (int layout = 0; layout < 4; ++layout) {
      std::set<std::string> kernels;
      for (double m = 1; m <= 16384; m += (m < 512 ? 1 : 61) * (layout ? 5 : 1)) {
        const double a_columns = layout & 1 ? double(-i64(m) & 7) : 0;  // of whole 16 bytes
        const Plan p = plan_of(
            h200, {{"m", m}, {"n", n}, {"k", k}, {"a.transposed", layout & 1}, {"b.transposed", layout >> 1}, {"a.pad", a_columns}});
        for (i32 i = 0; i < p.count; ++i) kernels.insert(jit::print(p.launches[i].spec));
      }
      EXPECT_LE(kernels.size(), 8u) << n << " x " << k << ": " << ::testing::PrintToString(kernels);
    }
}

/// The alignment of an M-major a is that of m: with batch_invariant a row must not meet another kernel for it. One row is K-major.
TEST(gemm_dense, batch_invariant_rows_of_an_m_major_a_meet_one_kind_of_kernel) {
  const DeviceInfo h200 = device_info_of(Arch::parse("sm_90a"));
  for (const double m : {1, 8, 16, 17, 4096})
    for (const double invariant : {0, 1}) {
      const Plan p = plan_of(h200, {{"m", m}, {"n", 4096}, {"k", 7168}, {"a.transposed", 1}, {"batch_invariant", invariant}});
      const bool hopper = m == 1 || (invariant == 0 && i64(m) % 8 == 0);
      EXPECT_EQ(jit::print(p.launches[0].spec).find("sm90") != std::string::npos, hopper) << m << " " << invariant;
    }
}

/// A model file says how weights lie; a call's words say it too.
TEST(gemm_dense, words_tell_the_layout) {
  Model model;
  model.name = "mine";
  model.limits = {{"tokens", true, {1, 64}}, {"alignment", false, {16}}};
  model.calls = {{"call", "gemm.dense", false, {{"m", {"tokens"}}, {"n", {"4096"}}, {"k", {"4096"}}, {"b.transposed", {"1"}}}}};
  const Reach r = reach(model, device_info_of(Arch::parse("sm_90a")));
  EXPECT_GT(r.kernels.size(), 4u);
  for (const ReachedKernel& k : r.kernels)
    if (!jit::print(k.spec).starts_with("dense_sum_splits")) { EXPECT_THAT(jit::print(k.spec), HasSubstr("a_major=0, b_major=1")); }
  Call c;
  EXPECT_THAT(call_words(find_op("gemm.dense"), &c.args, {}), Not(HasSubstr("transposed")));
  c.args.b = transposed(c.memory.data(), DType::bf16, 16, 32, 24);
  EXPECT_THAT(call_words(find_op("gemm.dense"), &c.args, {}),
              AllOf(HasSubstr("b.transposed=true b.pad=8"), Not(HasSubstr("a.transposed"))));
  c.args.a = transposed(c.memory.data(), DType::bf16, 1, 32, 8);
  c.args.out = c.result(1, 16);
  EXPECT_THAT(call_words(find_op("gemm.dense"), &c.args, {}), HasSubstr("a.transposed=true a.pad=7"));
  c.args.a.strides[1] = 1;
  EXPECT_THAT(call_words(find_op("gemm.dense"), &c.args, {}), Not(HasSubstr("a.transposed")));
}

TEST(gemm_dense, alignment_decides_the_width_of_copies) {
  const DeviceInfo a100 = device_info_of(Arch::parse("sm_80"));
  const auto plan = [&](const char* word, double v) { return plan_text(a100, {{"m", 3}, {"n", 64}, {"k", 64}, {word, v}}); };
  EXPECT_THAT(plan("a.pad", 0), HasSubstr("vector 8"));
  EXPECT_THAT(plan("a.pad", 4), HasSubstr("vector 4"));
  EXPECT_THAT(plan("b.pad", 2), HasSubstr("vector 2"));
  EXPECT_THAT(plan("b.shift", 1), HasSubstr("vector 1"));
  EXPECT_THAT(plan("a.transposed", 1), HasSubstr("vector 1"));  // 3 rows: columns of 6 bytes
  EXPECT_THAT(plan("b.transposed", 1), HasSubstr("vector 8"));
}

/// Where K is split, c and the activation are for the kernel that adds the splits up; Hopper's kernels read c by whole 16 bytes.
TEST(gemm_dense, c_and_the_activation_come_once) {
  const DeviceInfo a100 = device_info_of(Arch::parse("sm_80")), h200 = device_info_of(Arch::parse("sm_90a"));
  const Plan split = plan_of(a100, {{"m", 1}, {"n", 64}, {"k", 4096}, {"c.present", 1}, {"activation", 2}});
  ASSERT_EQ(split.count, 2);
  EXPECT_THAT(jit::print(split.launches[0].spec), HasSubstr("has_c=0, activation=0"));
  EXPECT_THAT(jit::print(split.launches[1].spec), HasSubstr("has_c=1, activation=2"));
  const Plan whole = plan_of(a100, {{"m", 1}, {"n", 64}, {"k", 64}, {"c.present", 1}, {"activation", 2}});
  ASSERT_EQ(whole.count, 1);
  EXPECT_THAT(jit::print(whole.launches[0].spec), HasSubstr("has_c=1, activation=2"));
  for (const double m : {16, 4096}) {
    const auto plan = [&](double pad) {
      return plan_of(h200, {{"m", m}, {"n", 4096}, {"k", 4096}, {"c.present", 1}, {"c.pad", pad}, {"activation", 3}});
    };
    EXPECT_THAT(jit::print(plan(8).launches[0].spec), AllOf(HasSubstr("sm90"), HasSubstr("has_c=1, activation=3")));
    EXPECT_THAT(jit::print(plan(4).launches[0].spec), HasSubstr("dense_mma_ring"));
  }
}

/// Of 16 bits and the dtype of out, or by lanes.
TEST(gemm_dense, c_comes_by_tma_where_it_is_as_out) {
  const DeviceInfo h200 = device_info_of(Arch::parse("sm_90a"));
  const auto printed = [&](const Case& more) {
    Case which = {{"m", 4096}, {"n", 4096}, {"k", 4096}};
    which.insert(more.begin(), more.end());
    return jit::print(plan_of(h200, which).launches[0].spec);
  };
  EXPECT_THAT(printed({}), AllOf(HasSubstr("has_c=0, activation=0"), HasSubstr("c_boxes=0")));
  EXPECT_THAT(printed({{"c.present", 1}}), AllOf(HasSubstr("has_c=1, activation=0"), HasSubstr("c_boxes=1")));
  EXPECT_THAT(printed({{"c.present", 1}, {"out.in_place", 1}}), HasSubstr("c_boxes=1"));
  EXPECT_THAT(printed({{"c.present", 1}, {"c.dtype", double(DType::f32)}}),
              AllOf(HasSubstr("has_c=1, activation=0"), HasSubstr("c_boxes=0")));
  EXPECT_THAT(printed({{"c.present", 1}, {"out_f32", 1}, {"c.dtype", double(DType::f32)}}), HasSubstr("c_boxes=0"));
}

/// They fit beside the ring; a row of a box lies where a tensor map puts it; the eight rows of a matrix lie in different banks.
TEST(gemm_dense, boxes_of_every_tile) {
  const DeviceInfo h200 = device_info_of(Arch::parse("sm_90a"));
  std::vector<Sm90Tile> tiles(std::begin(kDenseSm90Tiles), std::end(kDenseSm90Tiles));
  tiles.insert(tiles.end(), std::begin(kHalvedSm90Tiles), std::end(kHalvedSm90Tiles));
  for (const Sm90Tile& tile : tiles)
    for (const i32 c_boxes : {0, 1}) {
      if (tile.swapped != 0 && c_boxes != 0) continue;
      const BlockSm90 wanted{.ending = {DType::bf16, DType::bf16, c_boxes, 0},
                             .tiles = {.tile_m = 128,
                                       .tile_n = wgmma_columns(tile),
                                       .stages = tile.stages,
                                       .alternate = tile.alternate,
                                       .swapped = tile.swapped},
                             .store = {.c_boxes = c_boxes}};
      const BlockSm90 c = with_room(TilesSm90Config{wanted}, h200).block;
      EXPECT_GE(c.tiles.stages, 4);
      const Sm90Boxes b = dense_sm90_boxes(c);
      SCOPED_TRACE(std::to_string(tile.n) + " columns, boxes of " + std::to_string(b.columns));
      EXPECT_TRUE(dense_sm90_stores_boxes(c));
      EXPECT_LE(dense_sm90_smem(c).bytes, 227 * 1024);
      EXPECT_EQ(tile.n % (b.columns * b.slots), 0);
      EXPECT_EQ(b.bytes % (b.swizzle == Swizzle::none ? 128 : 1024), 0);
      EXPECT_EQ(dense_sm90_smem(c).boxes % 1024, 0);
      for (u32 chunk = 0; chunk < u32(b.columns) / 8; ++chunk)
        for (u32 first = 0; first < 16; first += 8) {
          std::set<u32> banks;
          for (u32 row = first; row < first + 8; ++row) {
            const u32 place = dense_sm90_box_place(b, row, chunk);
            EXPECT_EQ(place, swizzled(b.swizzle, row * u32(b.columns) * 2 + chunk * 16));
            banks.insert(place / 16 % 8);
          }
          EXPECT_EQ(banks.size(), 8u);
        }
    }
}

TEST(gemm_dense, invariant_splits_depend_on_n_and_k_alone) {
  const auto splits = [](const DeviceInfo& device, double m) {
    return plan_text(device, {{"m", m}, {"n", 4096}, {"k", 14336}, {"batch_invariant", 1}});
  };
  const DeviceInfo a100 = device_info_of(Arch::parse("sm_80"));
  EXPECT_THAT(splits(a100, 1), HasSubstr("splits 4"));
  EXPECT_THAT(splits(a100, 64), HasSubstr("splits 4"));
  EXPECT_THAT(splits(a100, 4096), HasSubstr("sum_parts_in_block"));
  const char* const parts = " cluster 2";
  for (const double m : {1, 17, 64, 100, 300}) EXPECT_THAT(tile_text("sm_90a", m, 2112, 7168, 1), HasSubstr(parts)) << m;
}

}  // namespace
}  // namespace quern::gemm
