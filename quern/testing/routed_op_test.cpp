// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// An op of this file's own with what few ops have: an output as long as an axis times an attribute, indices of 32 or 64
// bits, a seed of 64 bits. Cases, words, checks, fuzzing, recording and replay know no difference.
#include <gmock/gmock.h>

#include <cstdint>

#include "quern/base/fs.h"
#include "quern/base/host_dtype.h"
#include "quern/device/emulated.h"
#include "quern/jit/sources.h"
#include "quern/op/ref.h"
#include "quern/op/trace.h"
#include "quern/testing/arguments.h"
#include "quern/testing/check.h"
#include "quern/testing/fuzz.h"
#include "quern/testing/pairwise.h"
#include "quern/testing/replay.h"

namespace quern::routed {

struct RoutedArgs {
  TensorView out, firsts, drawn, x, indices;
  i64 seed = 0;
  i32 topk = 2, group_size = 8;
};

struct RoutedConfig {
  DType dtype, index;
  i32 threads;
};
struct RoutedParams {
  const void *x, *indices;
  void *out, *firsts, *drawn;
  i64 x_stride, out_stride, firsts_stride, rows, hidden, group_size, seed;
};

const jit::EmbeddedSource kSource = {"routed/routed.cuh", R"(
#pragma once
#include "quern/kit/kit.cuh"
namespace quern::routed {
struct RoutedConfig {
  DType dtype, index;
  i32 threads;
};
struct RoutedParams {
  const void *x, *indices;
  void *out, *firsts, *drawn;
  i64 x_stride, out_stride, firsts_stride, rows, hidden, group_size, seed;
};
template <RoutedConfig C> QN_DEVICE void routed_row(const RoutedParams& p) {
  using T = dtype_t<C.dtype>;
  for (i64 row = blockIdx.x; row < p.rows; row += gridDim.x) {
    const i64 from = i64(ptx::ld_global<dtype_t<C.index>>(static_cast<const dtype_t<C.index>*>(p.indices) + row));
    const T* x = static_cast<const T*>(p.x) + from * p.x_stride;
    T* out = static_cast<T*>(p.out) + row * p.out_stride;
    T* firsts = static_cast<T*>(p.firsts) + row * p.firsts_stride;
    for (i64 h = threadIdx.x; h < p.hidden; h += C.threads) {
      f32 v[1];
      load_f32<T, 1>(x + h, v);
      store_f32<T, 1>(out + h, v);
      if (p.firsts && h % p.group_size == 0) store_f32<T, 1>(firsts + h / p.group_size, v);
    }
    if (threadIdx.x == 0) static_cast<i32*>(p.drawn)[row] = i32((p.seed ^ row) & 0x7fffffff);
  }
}
}  // namespace quern::routed
)"};
[[maybe_unused]] const int kRegistered = (jit::register_sources(&kSource, 1), 0);

static const jit::Kernel<RoutedConfig, RoutedParams> kernel{"routed/routed.cuh", "routed_row"};

static RoutedParams params(const Call<RoutedArgs>& c) {
  const RoutedArgs& a = c.args;
  return {a.x.data,
          a.indices.data,
          a.out.data,
          a.firsts.data,
          a.drawn.data,
          a.x.strides[0],
          a.out.strides[0],
          a.firsts.strides[0],
          a.out.shape[0],
          c.problem[Axis::hidden],
          c.problem.attr(&RoutedArgs::group_size),
          c.problem.attr(&RoutedArgs::seed)};
}

static Plan plan(const Problem& p, const DeviceInfo&) {
  Plan plan;
  plan.launch<params>(kernel, RoutedConfig{p.dtype(&RoutedArgs::x), p.dtype(&RoutedArgs::indices), 64},
                      {.x = max_of<i64>(1, p[Axis::tokens])});
  return plan;
}

static void reference(const RoutedArgs& a, const RoutedArgs&) {
  const Ref x(a.x), indices(a.indices);
  const RefOut out(a.out), firsts(a.firsts), drawn(a.drawn);
  for (i64 r = 0; r < out.dim(0); ++r) {
    for (i64 h = 0; h < x.dim(1); ++h) {
      out.set(x(indices.index(r), h), r, h);
      if (h % a.group_size == 0) firsts.set(x(indices.index(r), h), r, h / a.group_size);
    }
    drawn.set(double((a.seed ^ r) & 0x7fffffff), r);
  }
}

static Rejection positive(const Problem& p) {
  return p.attr(&RoutedArgs::group_size) > 0 ? Rejection{} : Rejection{"group_size", p.attr(&RoutedArgs::group_size), "a positive one"};
}

QN_OP(routed, RoutedArgs, "routed.rows")
    .doc("out = x[indices]")
    .attr("seed", &RoutedArgs::seed)
    .attr("topk", &RoutedArgs::topk)
    .attr("group_size", &RoutedArgs::group_size)
    .in("x", &RoutedArgs::x, "tokens hidden", {DType::f32, DType::bf16})
    .out("out", &RoutedArgs::out, "tokens*topk hidden", like("x"))
    .out("firsts", &RoutedArgs::firsts, "tokens*topk ceil_div(hidden,group_size)", like("x"))
    .optional()
    .out("drawn", &RoutedArgs::drawn, "tokens*topk", {DType::i32})
    .in("indices", &RoutedArgs::indices, "tokens*topk", {DType::i32, DType::i64})
    .values(index_of(Axis::tokens))
    .require(positive)
    .plan(plan)
    .reference<reference>()
    .budget([](const Problem&) { return Budget{.exact = true}; })
    .cases({{"tokens", {3, 1, 17}},
            {"hidden", {70, 1, 8}},
            {"topk", {2, 1, 4}},
            {"group_size", {24, 3}},
            {"seed", {0, 7, (i64(1) << 53) + 1, -5}},
            {"firsts.present", {true, false}},
            {"indices.dtype", {DType::i64, DType::i32}},
            {"x.dtype", {DType::f32, DType::bf16}}});

}  // namespace quern::routed

namespace quern::testing {
namespace {

using routed::RoutedArgs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Op& op() { return find_op("routed.rows"); }
const RoutedArgs& of(const CaseArgs& args) { return *static_cast<const RoutedArgs*>(args.args()); }

TEST(testing_routed_op, is_checked_by_its_cases) {
  const std::unique_ptr<Device> device = make_emulated_device(device_info_of(Arch{}), {});
  const std::vector<Case> cases = pairwise(op().cases, [&](const Case& c) { return runs(op(), c, device->info()); });
  EXPECT_GE(cases.size(), 12u);
  for (const Case& which : cases)
    for (const CheckResult& r : check_case({.op = &op(), .given = which, .seed = 1, .devices = {{device.get(), ""}}}))
      EXPECT_EQ(r.verdict, CheckResult::Verdict::right) << r.which << ": " << r.message;
}

TEST(testing_routed_op, is_fuzzed) {
  const std::unique_ptr<Device> device = make_emulated_device(device_info_of(Arch{}), {});
  const FuzzReport report = fuzz({.calls = 600, .seed = 1, .ops = {&op()}, .device = device.get()});
  for (const FuzzFailure& f : report.failures) ADD_FAILURE() << f.what;
  EXPECT_GT(report.outcomes.at("right"), 100);
  EXPECT_GT(report.breaks.at("extent"), 10);
}

TEST(testing_routed_op, heeds_every_argument) {
  const std::unique_ptr<Device> device = make_emulated_device(device_info_of(Arch{}), {});
  EXPECT_THAT(ignored_arguments(op(), *device), IsEmpty());
}

TEST(testing_routed_op, shapes_follow_axes_and_attributes) {
  const CaseArgs args(op(), {{"tokens", 5}, {"topk", 4}, {"hidden", 70}, {"group_size", 16}}, 1);
  EXPECT_EQ(shape_string(of(args).out), "[20, 70]");
  EXPECT_EQ(shape_string(of(args).firsts), "[20, 5]");
  EXPECT_EQ(shape_string(of(args).indices), "[20]");
  EXPECT_EQ(of(args).indices.dtype, DType::i64);
}

TEST(testing_routed_op, words_keep_all_of_64_bits) {
  for (const i64 seed : std::initializer_list<i64>{(i64(1) << 53) + 1, INT64_MAX, INT64_MIN}) {
    const std::string word = "seed=" + std::to_string(seed);
    const Case which = parse_case(op(), {word});
    EXPECT_EQ(case_text(op(), which), word);
    EXPECT_EQ(of(CaseArgs(op(), which, 1)).seed, seed);
  }
  const auto refusal = [](const std::string& word) {
    try {
      parse_case(op(), {word});
    } catch (const Error& e) { return std::string(e.what()); }
    return std::string();
  };
  EXPECT_EQ(refusal("seed=9223372036854775808"), "routed.rows: `seed` is '9223372036854775808', expected within 64 bits");
  EXPECT_EQ(refusal("seed=0.5"), "routed.rows: `seed` is '0.5', expected an integer");
  EXPECT_EQ(refusal("seed=8192p"), "routed.rows: `seed` is '8192p', expected a number");
  EXPECT_EQ(refusal("topk=2147483648"), "routed.rows: `topk` is '2147483648', expected within 32 bits");
  EXPECT_EQ(refusal("tokens=72057594037927937"), "routed.rows: `tokens` is '72057594037927937', expected within 2^56");
  EXPECT_EQ(parse_case(op(), {"seed=4k"}), (Case{{"seed", 4096}}));
  EXPECT_EQ(parse_case(op(), {"seed=1e3"}), (Case{{"seed", 1000}}));
}

TEST(testing_routed_op, a_recorded_call_keeps_all_of_64_bits) {
  const std::string folder = make_private_folder(::testing::TempDir() + "quern-test.");
  const std::unique_ptr<Device> device = make_emulated_device(device_info_of(Arch{}), {});
  CaseArgs args(op(), {{"seed", (i64(1) << 53) + 1}}, 1);
  RunOptions options;
  options.device = device.get();
  set_trace({.folder = folder});
  run(op(), args.args(), options);
  set_trace({});
  const std::vector<std::string> calls = traced_calls(folder);
  ASSERT_EQ(calls.size(), 1u);
  const TracedCall call = read_traced_call(calls[0]);
  EXPECT_EQ(static_cast<const RoutedArgs*>(call.args.get())->seed, (i64(1) << 53) + 1);
  EXPECT_EQ(replay(call, *device).verdict(), ReplayResult::Verdict::right);
  EXPECT_EQ(load_integer(of(args).drawn.data, DType::i32), 1) << "the low bits of the seed";
  remove_folder(folder);
}

}  // namespace
}  // namespace quern::testing
