// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Of gemm.k_grouped: what cases cannot say. Error texts, plans, bits of a group, and contents that change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <set>
#include <vector>

#include "quern/base/error.h"
#include "quern/device/emulated.h"
#include "quern/op/schema.h"
#include "quern/ops/gemm/dense.h"
#include "quern/ops/gemm/k_grouped.h"
#include "quern/ops/gemm/scaled.h"
#include "quern/testing/case_args.h"

namespace quern::gemm {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const char* const kId = "gemm.k_grouped";

/// Views of a call that is never launched: m = 4, n = 24, k = 520, of which scales have 5 columns, in 3 groups.
struct Views {
  std::vector<u32> memory = std::vector<u32>(1 << 13);
  KGroupedArgs args;
  Views() {
    args = {.out = view(DType::f32, {3, 4, 24}),
            .a = view(DType::e4m3, {4, 520}),
            .b = view(DType::e5m2, {24, 520}),
            .scales_a = view(DType::f32, {4, 5}),
            .scales_b = view(DType::f32, {24, 5}),
            .k_indptr = view(DType::i32, {4})};
    args.out.data = memory.data() + (1 << 12);  // behind what the others have
  }
  TensorView view(DType dtype, std::initializer_list<i64> shape) { return TensorView(memory.data(), dtype, shape); }
  void narrow(DType dtype) { args.a.dtype = args.b.dtype = dtype, args.scales_a = args.scales_b = TensorView(); }
  void expect(ErrorKind kind, const std::string& text) const {
    try {
      bind(find_op(kId), &args, {});
      ADD_FAILURE() << "no error; expected: " << text;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), kind);
      EXPECT_EQ(e.what(), std::string(kId) + ": " + text);
    }
  }
};

TEST(gemm_k_grouped, rejects_operands_and_scales_that_do_not_fit) {
  Views v;
  bind(find_op(kId), &v.args, {});
  v.args.scales_b = TensorView();
  v.expect(ErrorKind::value, "`scales_b` is absent, expected a tensor: `a` and `b` are of 8 bits");
  v = {};
  v.args.scales_b = v.view(DType::f32, {1, 5});
  v.expect(ErrorKind::value, "`scales_b` has shape [1, 5], expected n=24 at dim 0 (n was set by `b` [24, 520])");
  v = {};
  v.args.a.dtype = DType::bf16;
  v.expect(ErrorKind::value, "`bits of b` is 8, expected 16, those of `a`");
  v = {};
  v.args.b = v.view(DType::e4m3, {24, 512});
  v.expect(ErrorKind::value, "`b` has shape [24, 512], expected k=520 at dim 1 (k was set by `a` [4, 520])");
  v = {};
  v.args.out = v.view(DType::f32, {2, 4, 24});
  v.expect(ErrorKind::value, "`out` has shape [2, 4, 24], expected groups=3 at dim 0 (groups was set by `k_indptr` [4])");
  v = {};
  std::swap(v.args.a.strides[0], v.args.a.strides[1]);
  v.args.a.strides[1] = 4;
  v.expect(ErrorKind::value, "`operands along M or N` is 1, expected 0 with 8 bits: `a` and `b` K-major");
}

TEST(gemm_k_grouped, rejects_other_results) {
  Views v;
  v.args.out.dtype = DType::f16;
  v.expect(ErrorKind::value, "`out` is f16, expected f32 or bf16 with this dtype of `a`");
  v.narrow(DType::f16);
  v.args.c = v.view(DType::bf16, {3, 4, 24});
  v.expect(ErrorKind::value, "`c` is bf16, expected f32 or f16 with this dtype of `a`");
}

TEST(gemm_k_grouped, columns_of_groups_are_said_in_one_way) {
  Views v;
  v.args.k_indptr = TensorView();
  v.expect(ErrorKind::value, "`k_indptr` is absent, expected one of k_indptr and k_sizes");
  v = {};
  v.args.k_sizes = v.view(DType::i32, {3});
  v.expect(ErrorKind::value, "`k_sizes` is given, expected none beside k_indptr");
  v = {};
  v.args.alignment = 0;
  v.expect(ErrorKind::value, "`alignment` is 0, expected at least 1");
}

TEST(gemm_k_grouped, rejects_packed_operands_that_are_not) {
  Views v;
  v.args.packed = true;
  bind(find_op(kId), &v.args, {});
  v.args.b.strides[0] = 528;
  v.expect(ErrorKind::value, "`contiguous operands` is 1, expected 2 with packed: `a` and `b`");
  v = {};
  v.args.packed = true;
  v.narrow(DType::bf16);
  v.expect(ErrorKind::value, "`packed` is 1, expected 0 with 16 bits");
}

TEST(gemm_k_grouped, sizes_beyond_31_bits_are_an_error) {
  Views v;
  const i64 k = i64(1) << 31;
  v.args.a = v.view(DType::e4m3, {4, k}), v.args.b = v.view(DType::e4m3, {24, k});
  v.args.scales_a = v.view(DType::f32, {4, k / 128}), v.args.scales_b = v.view(DType::f32, {24, k / 128});
  v.expect(ErrorKind::value, "`k` is 2147483648, expected below 2^31");
}

// ---- plans ----

Plan plan_of(const Case& which, const char* arch = "sm_90a") {
  const Op& op = find_op(kId);
  const Case full = quern::testing::derived(op, which);
  const quern::testing::ArgsStorage args = quern::testing::fake_args(op, full);
  return make_plan(op, bind(op, args.get(), quern::testing::options_of(op, full)), device_info_of(Arch::parse(arch)));
}
std::string text_of(const Plan& plan) { return jit::print(plan.launches[plan.count - 1].spec); }

/// Columns of K-major operands of 16 bits begin at multiples of 16 bytes where groups are known to.
TEST(gemm_k_grouped, alignment_of_groups_chooses_the_variant_and_the_copies) {
  Case which{{"m", 256}, {"n", 256}, {"k", 512}, {"bits8", 0}, {"a.transposed", 0}, {"b.transposed", 1}, {"alignment", 8}};
  EXPECT_EQ(plan_of(which).variant, 0);
  EXPECT_THAT(text_of(plan_of(which, "sm_80")), HasSubstr("vector=8"));
  which["alignment"] = 12;
  EXPECT_EQ(plan_of(which).variant, 1);
  EXPECT_THAT(text_of(plan_of(which)), HasSubstr("vector=1"));
  which["a.transposed"] = 1;
  EXPECT_EQ(plan_of(which).variant, 0);
  EXPECT_THAT(text_of(plan_of(which, "sm_80")), HasSubstr("vector=8"));
  which["bits8"] = 1;  // begins at multiples of 128 anyhow
  EXPECT_EQ(plan_of(which).variant, 0);
}

TEST(gemm_k_grouped, the_grid_is_that_of_the_gpu_at_most) {
  const Plan many = plan_of({{"m", 4096}, {"n", 7168}, {"k", 32768}, {"groups", 8}});
  EXPECT_EQ(many.count, 2);
  EXPECT_EQ(many.launches[1].config.grid[0], 132u);
  EXPECT_EQ(many.launches[0].config.grid[0], 2u);
  EXPECT_EQ(many.workspace, 8 * (256 + 8));
  const Plan few = plan_of({{"m", 65}, {"n", 129}, {"groups", 3}, {"bits8", 0}, {"a.transposed", 1}, {"b.transposed", 1}}, "sm_80");
  EXPECT_EQ(few.launches[1].config.grid[0], 3 * 2 * 2u);
  EXPECT_EQ(few.workspace, 3 * 8);
}

/// What a trainer has to compile for a layer, whatever the number of tokens, groups and rows.
TEST(gemm_k_grouped, few_kernels_serve_all_sizes) {
  for (const double bits8 : {0, 1})
    for (const double n : {256, 2048, 7168}) {
      std::set<std::string> kernels;
      for (const double groups : {1, 4, 64})
        for (double m = 1; m <= 16384; m = std::ceil(m * 1.3))
          for (const double k : {128, 4096, 131072}) {
            const Plan plan = plan_of({{"m", m},
                                       {"n", n},
                                       {"k", k},
                                       {"groups", groups},
                                       {"bits8", bits8},
                                       {"a.transposed", 1 - bits8},
                                       {"b.transposed", 1 - bits8}});
            for (i32 i = 0; i < plan.count; ++i) kernels.insert(jit::print(plan.launches[i].spec));
          }
      EXPECT_LE(kernels.size(), 8u) << n;
    }
}

// ---- results ----

std::unique_ptr<Device> hopper() {
  DeviceInfo info = device_info_of(Arch::parse("sm_90a"));
  info.emulated = 1;
  return make_emulated_device(info, emulated_options_from_env());
}

/// f32 results of operands whose sums no f32 holds exactly; of 8 bits, or bf16.
struct Numbers {
  bool scaled;
  i64 groups, k, m = 72, n = 136, blocks;
  std::vector<u8> a, b;
  std::vector<float> scales_a, scales_b, out;
  Numbers(bool scaled, i64 groups, i64 k) : scaled(scaled), groups(groups), k(k), blocks(ceil_div<i64>(k, 128)) {
    Random random(7);
    const auto fill = [&](std::vector<u8>& to, i64 count) {
      for (i64 i = 0; i < count; ++i) {
        if (!scaled) to.push_back(u8(random.next()));  // a mantissa's end, then 2^-7 .. 2^0
        to.push_back(u8(0x20 + (scaled ? 0 : 0x1c) + random.below(scaled ? 0x30 : 4) + 0x80 * random.below(2)));
      }
    };
    fill(a, m * k), fill(b, n * k);
    for (i64 i = 0; i < m * blocks; ++i) scales_a.push_back(float(1 + random.uniform() / 2));
    for (i64 i = 0; i < n * blocks; ++i) scales_b.push_back(float(1 + random.uniform() / 2));
    out.assign(size_t(groups * m * n), std::numeric_limits<float>::quiet_NaN());
  }
  i64 bytes() const { return scaled ? 1 : 2; }
  /// Columns from `begin` on of an operand of `rows` rows; 16 bits lie along M or N.
  TensorView operand(std::vector<u8>& x, i64 rows, i64 begin, i64 columns) const {
    TensorView v(x.data() + begin * bytes() * (scaled ? 1 : rows), scaled ? DType::e4m3 : DType::bf16, {rows, columns});
    v.strides[0] = scaled ? k : 1, v.strides[1] = scaled ? 1 : rows;
    return v;
  }
  TensorView scales(std::vector<float>& x, i64 rows, i64 begin, i64 columns) const {
    if (!scaled) return {};
    TensorView v(x.data() + begin / 128, DType::f32, {rows, ceil_div<i64>(columns, 128)});
    v.strides[0] = blocks;
    return v;
  }
  TensorView result(i64 g) { return TensorView(out.data() + g * m * n, DType::f32, {m, n}); }
  KGroupedArgs args(std::vector<i32>& bounds) {
    KGroupedArgs args{.out = TensorView(out.data(), DType::f32, {groups, m, n}), .a = operand(a, m, 0, k), .b = operand(b, n, 0, k)};
    args.scales_a = scales(scales_a, m, 0, k), args.scales_b = scales(scales_b, n, 0, k);
    const TensorView view(bounds.data(), DType::i32, {i64(bounds.size())});
    (i64(bounds.size()) == groups ? args.k_sizes : args.k_indptr) = view;
    return args;
  }
  /// NaN in all columns of [begin, end).
  void poison(i64 begin, i64 end) {
    const u8 nan[2] = {0xff, 0x7f};
    for (auto& [x, rows] : {std::pair<std::vector<u8>&, i64>(a, m), {b, n}})
      for (i64 i = 0; i < rows; ++i)
        for (i64 column = begin; column < end; ++column) {
          const TensorView v = operand(x, rows, 0, k);
          const i64 at[] = {i, column};
          std::memcpy(v.at(at), nan + (scaled ? 1 : 0), size_t(bytes()));
        }
    for (auto& [x, rows] : {std::pair<std::vector<float>&, i64>(scales_a, m), {scales_b, n}})
      for (i64 i = 0; scaled && i < rows; ++i)
        for (i64 block = begin / 128; block < ceil_div<i64>(end, 128); ++block)
          x[size_t(i * blocks + block)] = std::numeric_limits<float>::quiet_NaN();
  }
};

bool same(const std::vector<float>& x, const std::vector<float>& y, size_t begin = 0, size_t end = ~size_t(0)) {
  end = std::min(end, x.size());
  return x.size() == y.size() && std::memcmp(x.data() + begin, y.data() + begin, 4 * (end - begin)) == 0;
}

/// Runs f(numbers, variant, title) for both widths and variants.
template <class F>
void for_each_kernel(i64 groups, i64 k, const F& f) {
  for (const bool scaled : {false, true})
    for (const Variant& v : find_op(kId).variants)
      f(Numbers(scaled, groups, k), v.name, std::string(v.name) + (scaled ? ", 8 bits" : ", 16 bits"));
}

/// A group's result is gemm.dense's or gemm.scaled's product of its columns, bit for bit, in each variant.
TEST(gemm_k_grouped, groups_have_the_bits_of_the_plain_product) {
  const auto device = hopper();
  for_each_kernel(3, 640, [&](Numbers grouped, const char* variant, const std::string& title) {
    Numbers plain = grouped;
    std::vector<i32> indptr = {0, 128, 512, 600};
    if (!grouped.scaled) indptr = {0, 77, 512, 600};
    else indptr.back() = 640;
    KGroupedArgs args = grouped.args(indptr);
    k_grouped(args, {.device = device.get(), .variant = variant});
    for (i64 g = 0; g < 3; ++g) {
      const i64 begin = indptr[size_t(g)], columns = indptr[size_t(g) + 1] - begin;
      const TensorView a = plain.operand(plain.a, plain.m, begin, columns), b = plain.operand(plain.b, plain.n, begin, columns);
      const bool portable = std::string(variant) == "portable";
      if (!plain.scaled) {
        dense({.out = plain.result(g), .a = a, .b = b}, {.device = device.get(), .variant = variant});
        continue;
      }
      scaled({.out = plain.result(g),
              .a = a,
              .scales_a = plain.scales(plain.scales_a, plain.m, begin, columns),
              .b = b,
              .scales_b = plain.scales(plain.scales_b, plain.n, begin, columns)},
             {.device = device.get(), .variant = portable ? "portable" : "swap_ab_sm90", .batch_invariant = true});
    }
    EXPECT_TRUE(same(grouped.out, plain.out)) << title;
  });
}

/// Both ways to say which columns a group has, and broken contents, end at the same groups.
TEST(gemm_k_grouped, bounds_sizes_and_broken_contents_agree) {
  const auto device = hopper();
  for_each_kernel(4, 640, [&](Numbers good, const char* variant, const std::string& title) {
    const i32 unit = good.scaled ? 128 : 3;
    std::vector<i32> indptr = {0, 256 / unit * unit, 256 / unit * unit, 384 / unit * unit, 640};
    const auto run = [&](std::vector<i32> bounds) {
      Numbers other = good;
      KGroupedArgs args = other.args(bounds);
      args.alignment = unit;
      k_grouped(args, {.device = device.get(), .variant = variant});
      return other.out;
    };
    const std::vector<float> expected = run(indptr);
    EXPECT_TRUE(same(run({indptr[1], 0, indptr[3] - indptr[1], 640 - indptr[3]}), expected)) << title;
    EXPECT_TRUE(same(run({-9, indptr[1] + 1, 7, indptr[3] + 2, 0x7fffffff}), expected)) << title;
    EXPECT_TRUE(same(run({indptr[1] + 2, -1, indptr[3] - indptr[1] - 1, 0x7fffffff}), expected)) << title;
  });
}

/// What stands in columns of other groups and of none does not matter.
TEST(gemm_k_grouped, columns_of_others_do_not_matter) {
  const auto device = hopper();
  for_each_kernel(3, 768, [&](Numbers clean, const char* variant, const std::string& title) {
    std::vector<i32> indptr = {128, 256, 384, 640};
    if (!clean.scaled) indptr = {11, 90, 201, 630};
    Numbers dirty = clean;
    dirty.poison(0, indptr[0]), dirty.poison(indptr[1], indptr[2]), dirty.poison(indptr[3], 768);
    k_grouped(clean.args(indptr), {.device = device.get(), .variant = variant});
    k_grouped(dirty.args(indptr), {.device = device.get(), .variant = variant});
    const size_t group = size_t(clean.m * clean.n);
    EXPECT_TRUE(same(clean.out, dirty.out, 0, group)) << title;
    EXPECT_TRUE(same(clean.out, dirty.out, 2 * group)) << title;
    for (const float x : clean.out) ASSERT_TRUE(std::isfinite(x)) << title;
    for (size_t i = group; i < 2 * group; ++i) ASSERT_TRUE(std::isnan(dirty.out[i])) << title;
  });
}

/// The memory in which each group is a dense matrix has the same bits.
TEST(gemm_k_grouped, packed_operands_agree) {
  const auto device = hopper();
  for (const Variant& v : find_op(kId).variants) {
    Numbers rows(true, 3, 656), packed(true, 3, 656);
    std::vector<i32> indptr = {128, 512, 512, 656};
    for (auto& [from, to, count] :
         {std::tuple<std::vector<u8>&, std::vector<u8>&, i64>(rows.a, packed.a, rows.m), {rows.b, packed.b, rows.n}}) {
      std::fill(to.begin(), to.end(), u8(0x7f));  // NaN
      for (i64 g = 0; g < 3; ++g) {
        const i64 begin = indptr[size_t(g)], columns = indptr[size_t(g) + 1] - begin;
        for (i64 i = 0; i < count; ++i) std::copy_n(from.begin() + i * rows.k + begin, columns, to.begin() + count * begin + i * columns);
      }
    }
    k_grouped(rows.args(indptr), {.device = device.get(), .variant = v.name});
    KGroupedArgs args = packed.args(indptr);
    args.packed = true;
    k_grouped(args, {.device = device.get(), .variant = v.name});
    EXPECT_TRUE(same(rows.out, packed.out)) << v.name;
  }
}

/// The same plan and workspace serve other columns; a group without columns has c, or zeros.
TEST(gemm_k_grouped, contents_may_change_between_replays) {
  const auto device = hopper();
  for_each_kernel(3, 512, [&](Numbers numbers, const char* variant, const std::string& title) {
    std::vector<i32> sizes = {128, 256, 128};
    alignas(256) char workspace[1024];
    std::memset(workspace, 0xff, sizeof workspace);
    KGroupedArgs args = numbers.args(sizes);
    const RunOptions options{.device = device.get(), .variant = variant, .workspace = {workspace, 1024}};
    k_grouped(args, options);
    const std::vector<float> first = numbers.out;
    sizes = {0, 0, 0};
    k_grouped(args, options);
    EXPECT_TRUE(same(numbers.out, std::vector<float>(first.size(), 0.f))) << title;
    args.c = args.out;
    numbers.out = first;
    k_grouped(args, options);
    EXPECT_TRUE(same(numbers.out, first)) << title;
    sizes = {128, 256, 128};
    k_grouped(args, options);
    for (size_t i = 0; i < first.size(); ++i) ASSERT_EQ(numbers.out[i], 2 * first[i]) << title << " " << i;
  });
}

}  // namespace
}  // namespace quern::gemm
