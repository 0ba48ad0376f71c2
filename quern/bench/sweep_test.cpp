// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Sweeps: what their words mean, what is judged before it is timed, and the rows of their CSV. An op of this file's own has a reduction over a block that may be
// the kit's or one that loses warps where their number is no power of two.
#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "quern/bench/data_sheet.h"
#include "quern/bench/guests.h"
#include "quern/bench/metered_device.h"
#include "quern/bench/mode_case.h"
#include "quern/bench/sweep_csv.h"
#include "quern/base/fs.h"
#include "quern/jit/sources.h"
#include "quern/op/ref.h"

namespace quern::planted {

struct MeanArgs {
  TensorView out, x;
  i32 halving = 0;
};
struct MeanConfig {
  i32 halving, threads;
};
struct MeanParams {
  const void* x;
  void* out;
  i64 x_stride, hidden;
};
struct MeanBackwardArgs {
  TensorView dx, dy, x, out;
};
struct MeanBackwardConfig {
  i32 threads;
};
struct MeanBackwardParams {
  const void *dy, *out;
  void* dx;
  i64 dx_stride, hidden;
};

const jit::EmbeddedSource kSources[] = {{"planted/mean.cuh", R"(
#pragma once
#include "quern/kit/kit.cuh"
namespace quern::planted {
struct MeanConfig {
  i32 halving, threads;
};
struct MeanParams {
  const void* x;
  void* out;
  i64 x_stride, hidden;
};
/// Halves the number of warps until one is left: 3 lose the last one, 24 more.
template <int kThreads> QN_DEVICE f32 halving_sum(f32 v, f32* scratch) {
  v = warp_sum(v);
  if (ptx::lane_id() == 0) scratch[threadIdx.x / 32] = v;
  ptx::sync_block();
  f32 sum = int(ptx::lane_id()) < kThreads / 32 ? scratch[ptx::lane_id()] : f32(0.f);
  for (int d = kThreads / 64; d > 0; d >>= 1) sum = sum + ptx::shfl_xor(sum, d);
  return sum;
}
template <MeanConfig C> QN_DEVICE void mean_row(const MeanParams& p) {
  QN_SMEM(smem);
  f32* scratch = reinterpret_cast<f32*>(smem);
  f32 v[1] = {f32(0.f)};
  if (i64(threadIdx.x) < p.hidden) load_f32<f32, 1>(static_cast<const f32*>(p.x) + blockIdx.x * p.x_stride + threadIdx.x, v);
  v[0] = (C.halving ? halving_sum<C.threads>(v[0], scratch) : block_sum<C.threads>(v[0], scratch)) / f32(float(p.hidden));
  if (threadIdx.x == 0) store_f32<f32, 1>(static_cast<f32*>(p.out) + blockIdx.x, v);
}
}  // namespace quern::planted
)"},
                                       {"planted/mean_backward.cuh", R"(
#pragma once
#include "quern/kit/kit.cuh"
namespace quern::planted {
struct MeanBackwardConfig {
  i32 threads;
};
struct MeanBackwardParams {
  const void *dy, *out;
  void* dx;
  i64 dx_stride, hidden;
};
template <MeanBackwardConfig C> QN_DEVICE void mean_backward_row(const MeanBackwardParams& p) {
  f32 dy[1], out[1];
  load_f32<f32, 1>(static_cast<const f32*>(p.dy) + blockIdx.x, dy);
  load_f32<f32, 1>(static_cast<const f32*>(p.out) + blockIdx.x, out);
  dy[0] = dy[0] * out[0];
  for (i64 h = threadIdx.x; h < p.hidden; h += C.threads) store_f32<f32, 1>(static_cast<f32*>(p.dx) + blockIdx.x * p.dx_stride + h, dy);
}
}  // namespace quern::planted
)"}};
[[maybe_unused]] const int kRegistered = (jit::register_sources(kSources, 2), 0);

static const jit::Kernel<MeanConfig, MeanParams> mean_kernel{"planted/mean.cuh", "mean_row"};
static const jit::Kernel<MeanBackwardConfig, MeanBackwardParams> backward_kernel{"planted/mean_backward.cuh", "mean_backward_row"};

static MeanParams mean_params(const Call<MeanArgs>& c) { return {c.args.x.data, c.args.out.data, c.args.x.strides[0], c.problem[Axis::hidden]}; }
static MeanBackwardParams backward_params(const Call<MeanBackwardArgs>& c) { return {c.args.dy.data, c.args.out.data, c.args.dx.data, c.args.dx.strides[0], c.problem[Axis::hidden]}; }

static Plan plan_mean(const Problem& p, const DeviceInfo&) {
  Plan plan;
  const i32 threads = i32(round_up<i64>(max_of<i64>(1, p[Axis::hidden]), 32));
  plan.scratch("nothing", 1024);  // so that a call has a workspace
  plan.launch<mean_params>(mean_kernel, MeanConfig{p.attr(&MeanArgs::halving), threads}, {.x = p[Axis::tokens], .smem = 128});
  return plan;
}
static Plan plan_backward(const Problem& p, const DeviceInfo&) {
  Plan plan;
  plan.launch<backward_params>(backward_kernel, MeanBackwardConfig{64}, {.x = p[Axis::tokens]});
  return plan;
}

static void mean_ref(const MeanArgs& a, const MeanArgs& magnitudes) {
  const Ref x(a.x);
  const RefOut out(a.out), magnitude(magnitudes.out);
  for (i64 t = 0; t < x.dim(0); ++t) {
    double sum = 0, absolute = 0;
    for (i64 h = 0; h < x.dim(1); ++h) sum += x(t, h), absolute += std::abs(x(t, h));
    out.set(sum / double(x.dim(1)), t);
    magnitude.set(absolute / double(x.dim(1)), t);
  }
}
static void backward_ref(const MeanBackwardArgs& a, const MeanBackwardArgs&) {
  const Ref dy(a.dy), out(a.out);
  const RefOut dx(a.dx);
  for (i64 t = 0; t < dx.dim(0); ++t)
    for (i64 h = 0; h < dx.dim(1); ++h) dx.set(dy(t) * out(t), t, h);
}

QN_OP(mean, MeanArgs, "planted.mean")
    .doc("out = mean(x), by a right reduction or by one that loses warps")
    .attr("halving", &MeanArgs::halving)
    .out("out", &MeanArgs::out, "tokens", {DType::f32})
    .in("x", &MeanArgs::x, "tokens hidden", {DType::f32})
    .plan(plan_mean)
    .reference<mean_ref>()
    .rows(Axis::tokens)
    .backward("planted.mean_backward", {{"dy", "out"}, {"dx", "x"}})
    .cases({{"tokens", {3}}, {"hidden", {64}}});
/// Of out^2 / 2, so that it reads what the op has written.
QN_OP(mean_backward, MeanBackwardArgs, "planted.mean_backward")
    .doc("dx = dy * out")
    .out("dx", &MeanBackwardArgs::dx, "tokens hidden", {DType::f32})
    .in("dy", &MeanBackwardArgs::dy, "tokens", {DType::f32})
    .in("x", &MeanBackwardArgs::x, "tokens hidden", {DType::f32})
    .in("out", &MeanBackwardArgs::out, "tokens", {DType::f32})
    .plan(plan_backward)
    .reference<backward_ref>()
    .cases({{"tokens", {3}}, {"hidden", {64}}});

}  // namespace quern::planted

namespace quern::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::StartsWith;

const Op& norm() { return find_op("norm.rms_norm"); }
const Op& mean() { return find_op("planted.mean"); }
Device& emulated() { return device_from_name("emu"); }

SweepOptions quick(bool memory = false) {
  SweepOptions o;
  o.timing.budget_ms = 1, o.timing.max_runs = 5, o.memory = memory;
  return o;
}
SweepPoint at(const Op& op, const std::string& sweep, const Case& fixed = {}) { return sweep_points(op, {parse_sweep(op, sweep)}, fixed).at(0); }

/// What an Error says; "none" where there is none.
template <class F> std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "none";
}
std::vector<i64> values_of(const std::string& sweep) {
  std::vector<i64> values;
  for (const CaseValue& v : parse_sweep(norm(), sweep).values) values.push_back(v.integer());
  return values;
}

TEST(sweep_words, are_progressions_and_lists) {
  EXPECT_THAT(values_of("hidden=1024:16384:x2"), ElementsAre(1024, 2048, 4096, 8192, 16384));
  EXPECT_THAT(values_of("hidden=96:1000:x2"), ElementsAre(96, 192, 384, 768)) << "an end that no step meets is not in it";
  EXPECT_THAT(values_of("hidden=3:30:x3"), ElementsAre(3, 9, 27));
  EXPECT_THAT(values_of("tokens=1:9:+4"), ElementsAre(1, 5, 9));
  EXPECT_THAT(values_of("tokens=5:5:+4"), ElementsAre(5));
  EXPECT_THAT(values_of("hidden=1k:4k:x2"), ElementsAre(1024, 2048, 4096));
  EXPECT_THAT(values_of("hidden=96,768,5120"), ElementsAre(96, 768, 5120));
  EXPECT_THAT(values_of("hidden=7"), ElementsAre(7));
  EXPECT_EQ(parse_sweep(norm(), "dtype=f32,bf16").name, "x.dtype");
  EXPECT_EQ(dtype_parameter(find_op("sampling.softmax")), "logits.dtype");
  EXPECT_EQ(dtype_parameter(mean()), "");
  EXPECT_EQ(dtype_name(mean(), {}), "f32");
}

TEST(sweep_words, that_are_none_are_errors_with_what_was_got) {
  const auto sweep = [](const char* text) { return error_of([&] { parse_sweep(norm(), text); }); };
  const std::string form = "expected axis=FROM:TO:xFACTOR, axis=FROM:TO:+STEP or axis=VALUE,VALUE, as in hidden=1024:16384:x2";
  for (const char* text : {"hidden", "hidden=", "=3", "hidden=1:2", "hidden=1:2:3", "hidden=1:2:x", "hidden=1:2:x-2", "hidden=1:2:x2:3", "hidden=1:2:*2", "hidden=1:8:x2.5"})
    EXPECT_EQ(sweep(text), "norm.rms_norm: `sweep` is '" + std::string(text) + "', " + form) << text;
  EXPECT_EQ(sweep("hidden=1:8:x1"), "norm.rms_norm: `sweep` steps by x1 in 'hidden=1:8:x1', expected a factor of at least 2");
  EXPECT_EQ(sweep("hidden=1:8:+0"), "norm.rms_norm: `sweep` steps by +0 in 'hidden=1:8:+0', expected a step of at least 1");
  EXPECT_EQ(sweep("hidden=8:1:x2"), "norm.rms_norm: `sweep` goes from 8 to 1, expected a start of at least 1 and no smaller end");
  EXPECT_EQ(sweep("hidden=0:8:x2"), "norm.rms_norm: `sweep` goes from 0 to 8, expected a start of at least 1 and no smaller end");
  EXPECT_EQ(sweep("hidden=8:1:+1"), "norm.rms_norm: `sweep` goes from 8 to 1, expected no smaller end");
  EXPECT_EQ(sweep("hidden=a:8:x2"), "norm.rms_norm: `hidden` is 'a', expected a number");
  EXPECT_EQ(sweep("hidden=96,96"), "norm.rms_norm: `sweep` has 96 twice in 'hidden=96,96', expected each value once");
  EXPECT_THAT(sweep("hidden=1:1000000:+1"), StartsWith("norm.rms_norm: `sweep` has more than 1000 values"));
  EXPECT_THAT(sweep("hiden=1:8:x2"), StartsWith("norm.rms_norm: `hiden` is no parameter of this op, expected `hidden`"));
  EXPECT_EQ(error_of([] { parse_sweep(mean(), "dtype=f32"); }), "planted.mean: `dtype` is given, expected none: this op has no choice of dtypes");
  EXPECT_EQ(error_of([] { mode_from_name("both"); }), "`mode` is 'both', expected one of forward, backward, full");
  EXPECT_EQ(error_of([] { metric_from_name("time"); }), "`metric` is 'time', expected one of speed, memory");
  EXPECT_EQ(error_of([] { sweep_points(norm(), {parse_sweep(norm(), "dtype=f32,bf16")}, {}); }), "norm.rms_norm: `sweep` begins with x.dtype, whose values are words, expected an axis of numbers first: it is x");
  EXPECT_EQ(error_of([] { sweep_points(norm(), {parse_sweep(norm(), "hidden=1,2")}, {{"hidden", 3}}); }), "norm.rms_norm: `hidden` is given twice, expected one --sweep or one --set");
}

TEST(sweep_points, are_a_grid_whose_rows_are_told_apart_by_their_config) {
  const std::vector<SweepPoint> points = sweep_points(norm(), {parse_sweep(norm(), "hidden=96,768"), parse_sweep(norm(), "dtype=f32,bf16")}, parse_fixed(norm(), {"tokens=5"}));
  ASSERT_THAT(points, SizeIs(4));
  EXPECT_EQ(points[1].text(norm(), "hidden"), "768") << "x comes innermost";
  EXPECT_THAT(points[0].config(norm()), ElementsAre(Pair("dtype", "f32"), Pair("tokens", "5")));
  EXPECT_THAT(points[2].config(norm()), ElementsAre(Pair("dtype", "bf16"), Pair("tokens", "5")));
  EXPECT_THAT(at(norm(), "hidden=96").config(norm()), ElementsAre(Pair("dtype", "bf16"), Pair("tokens", "1"))) << "what the op's cases complete is in it";
}

TEST(sweep_points, of_no_sweep_are_the_bench_shapes) {
  Case fixed = {{"x.dtype", int(DType::f32)}};
  const CaseAxis x = standard_sweep(norm(), fixed, false);
  EXPECT_EQ(x.name, "tokens");
  EXPECT_EQ(x.values.front(), CaseValue(1));
  EXPECT_EQ(x.values.back(), CaseValue(65536));
  EXPECT_EQ(fixed.at("hidden"), Scalar(4096));
  EXPECT_EQ(fixed.at("x.dtype"), Scalar(int(DType::f32)));
  Case nothing;
  EXPECT_EQ(standard_sweep(norm(), nothing, true).values, (std::vector<CaseValue>{1, 3, 64, 101})) << "its cases, but for no rows";
  EXPECT_THAT(nothing, IsEmpty());
}

TEST(sweep_points, are_made_small_for_an_emulated_device_by_their_rows) {
  std::vector<SweepPoint> points = sweep_points(norm(), {parse_sweep(norm(), "hidden=1024:4096:x2")}, parse_fixed(norm(), {"tokens=4096"}));
  EXPECT_EQ(shrink(norm(), points, 1 << 20), "tokens is 32 instead of 4096");
  ASSERT_THAT(points, SizeIs(3));
  for (const SweepPoint& p : points) EXPECT_EQ(p.given.at("tokens"), Scalar(32)) << "one config for all";
  EXPECT_EQ(shrink(norm(), points, 1 << 20), "") << "they are small now";
  points = sweep_points(norm(), {parse_sweep(norm(), "tokens=1:4096:x8")}, parse_fixed(norm(), {"hidden=2048"}));
  EXPECT_EQ(shrink(norm(), points, 1 << 20), "2 points are left to GPUs") << "an x is what was asked for";
  EXPECT_THAT(points, SizeIs(3));
}

TEST(sweep_modes, judge_time_and_count_what_they_run) {
  for (const Mode mode : {Mode::forward, Mode::backward, Mode::full}) {
    const std::vector<SweepResult> results = bench_point(norm(), at(norm(), "hidden=96", {{"tokens", 3}}), mode, {"quern"}, emulated(), {}, quick(true));
    ASSERT_THAT(results, SizeIs(1));
    const SweepResult& r = results[0];
    EXPECT_TRUE(r.ok) << name(mode) << ": " << r.message;
    EXPECT_TRUE(r.timed());
    EXPECT_LE(r.timing.p20_us, r.timing.median_us);
    EXPECT_GE(r.timing.p80_us, r.timing.median_us);
    if (!emulated().wants_memory_ranges()) {  // checked mode has gaps between regions
      EXPECT_EQ(r.memory_bytes, r.planned_bytes) << name(mode) << ": what a call takes is what plan says";
    }
    EXPECT_EQ(r.spec.find("norm_row<") != std::string::npos, mode != Mode::backward);
    EXPECT_EQ(r.spec.find("norm_row_backward<") != std::string::npos, mode != Mode::forward);
  }
  const double x = 3 * 96 * 2, w = 96 * 2;
  const auto bytes = [&](Mode mode) { return ModeCase(norm(), {{"tokens", 3}, {"hidden", 96}}, mode, emulated(), 1, false).cost().bytes; };
  EXPECT_EQ(bytes(Mode::forward), 2 * x + w);
  EXPECT_EQ(bytes(Mode::full), bytes(Mode::forward) + bytes(Mode::backward));
}

TEST(sweep_modes, of_an_op_without_gradients_are_refused) {
  const std::vector<SweepResult> results = bench_point(find_op("elementwise.add"), at(find_op("elementwise.add"), "hidden=96"), Mode::full, {"quern"}, emulated(), {}, quick());
  EXPECT_FALSE(results[0].ok);
  EXPECT_EQ(results[0].message, "unsupported error: elementwise.add: `mode` is full, expected forward: the op's schema names no op for its gradients");
}

TEST(sweep_modes, hand_what_the_op_wrote_to_its_gradients) {
  for (const Mode mode : {Mode::backward, Mode::full}) {
    ModeCase which(mean(), {{"hidden", 96}}, mode, emulated(), 1, true);
    ASSERT_THAT(which.parts(), SizeIs(2));
    const ModeCase::Part &forward = *which.parts()[0], &backward = *which.parts()[1];
    const size_t out = size_t(mean().tensor_index("out")), read = size_t(backward.op->tensor_index("out"));
    ASSERT_GE(which.sets(), 2);
    for (int set = 0; set < which.sets(); ++set) EXPECT_EQ(mean().tensor(forward.sets->args(set), out).data, backward.op->tensor(backward.sets->args(set), read).data);
    const SweepResult r = bench_point(mean(), at(mean(), "hidden=96"), mode, {"quern"}, emulated(), {}, quick(true))[0];
    EXPECT_TRUE(r.ok) << name(mode) << ": " << r.message;
    if (!emulated().wants_memory_ranges()) {
      EXPECT_EQ(r.memory_bytes, r.planned_bytes);
    }
    EXPECT_EQ(r.planned_bytes, 3 * 96 * 4 + (mode == Mode::full ? 3 * 4 + 1024 : 0));
  }
}

/// A reduction over a block that is right for 2, 4 and 32 warps and wrong for 3 and 24: what sizes that are powers of two do not show.
TEST(sweep_judges, a_reduction_that_loses_warps_before_it_is_timed) {
  for (const i64 hidden : {64, 96, 128, 768, 1024}) {
    const bool lost = hidden == 96 || hidden == 768;
    const SweepResult kit = bench_point(mean(), at(mean(), "hidden=" + std::to_string(hidden)), Mode::forward, {"quern"}, emulated(), {}, quick())[0];
    EXPECT_TRUE(kit.ok && kit.timed()) << hidden << ": " << kit.message;
    const SweepResult halving = bench_point(mean(), at(mean(), "hidden=" + std::to_string(hidden), {{"halving", 1}}), Mode::forward, {"quern"}, emulated(), {}, quick(true))[0];
    EXPECT_EQ(halving.ok, !lost) << hidden << ": " << halving.message;
    EXPECT_EQ(halving.timed(), !lost) << hidden;
    if (!lost) continue;
    EXPECT_EQ(halving.verdict, testing::CheckResult::Verdict::wrong);
    EXPECT_THAT(halving.message, HasSubstr("times the tolerance"));
    EXPECT_EQ(halving.memory_bytes, -1) << "nor is its memory a figure";
  }
}

/// A guest that runs quern itself, on results of its own, and may spoil them.
struct Copycat {
  int runs = 0, delivered = 0;
  float factor = 1;
  std::string request;
  void invite(const char* name) {
    add_guest({name, "", [this](const std::string& text) {
                 request = text;
                 const auto parsed = nlohmann::json::parse(text);
                 GuestCall call;
                 call.description = "a copycat";
                 call.run = [this](int) { ++runs; };
                 call.deliver = [this, parsed](int set) {
                   ++delivered;
                   const auto& tensors = parsed["parts"][0]["sets"][size_t(set)];
                   const float* x = reinterpret_cast<const float*>(tensors["x"]["address"].get<int64_t>());
                   float* out = reinterpret_cast<float*>(tensors["out"]["address"].get<int64_t>());
                   const i64 tokens = tensors["x"]["shape"][0], hidden = tensors["x"]["shape"][1], stride = tensors["x"]["strides"][0];
                   for (i64 t = 0; t < tokens; ++t) {
                     double sum = 0;
                     for (i64 h = 0; h < hidden; ++h) sum += double(x[t * stride + h]);
                     out[t] = float(sum / double(hidden)) * factor;
                   }
                 };
                 call.memory = [](int) { return 12.0; };
                 return call;
               }});
  }
};

TEST(sweep_guests, are_judged_before_they_are_timed_and_take_turns) {
  Copycat right, wrong;
  wrong.factor = 1.01f;
  right.invite("right"), wrong.invite("wrong");
  const std::vector<SweepResult> results = bench_point(mean(), at(mean(), "hidden=96"), Mode::forward, {"quern", "wrong", "right"}, emulated(), {}, quick(true));
  ASSERT_THAT(results, SizeIs(3));
  EXPECT_TRUE(results[0].ok && results[0].timed()) << results[0].message;
  EXPECT_FALSE(results[1].ok || results[1].timed());
  EXPECT_EQ(wrong.runs, 1) << "the run that was judged";
  EXPECT_TRUE(results[2].ok && results[2].timed()) << results[2].message;
  EXPECT_EQ(results[2].spec, "a copycat");
  EXPECT_EQ(results[2].memory_bytes, 12);
  EXPECT_GT(right.runs, results[2].timing.runs);
  EXPECT_EQ(right.delivered, 2) << "before and after: what was timed is judged";
  const auto request = nlohmann::json::parse(right.request);
  EXPECT_EQ(request["op"], "planted.mean");
  EXPECT_EQ(request["device"], "cpu");
  EXPECT_EQ(request["parts"][0]["attributes"]["halving"], 0);
}

TEST(sweep_guests, that_cannot_are_results_and_names_that_nobody_has_are_errors) {
  add_guest({"cannot", "", [](const std::string&) -> GuestCall { throw Error(ErrorKind::unsupported, "no such expression"); }});
  add_guest({"absent", "the package absent: pip install absent", nullptr});
  const SweepResult r = bench_point(mean(), at(mean(), "hidden=96"), Mode::forward, {"cannot"}, emulated(), {}, quick())[0];
  EXPECT_FALSE(r.ok);
  EXPECT_EQ(r.verdict, testing::CheckResult::Verdict::unsupported);
  EXPECT_EQ(r.message, "unsupported error: no such expression");
  EXPECT_EQ(error_of([] { check_provider("cannot"); }), "none");
  EXPECT_EQ(error_of([] { check_provider("absent"); }), "`provider` is absent, which is not here, expected the package absent: pip install absent");
  EXPECT_THAT(error_of([] { check_provider("torch"); }), HasSubstr("`provider` is torch, which this program does not have, expected the `quern` of the Python package"));
  EXPECT_EQ(error_of([] { check_provider("trch"); }), "`provider` is 'trch', expected one of quern, cublaslt, torch, torch_compile, liger");
}

TEST(sweep_judge, leaves_other_libraries_room_to_round) {
  const Op& op = find_op("activation.silu");
  const testing::CaseArgs host(op, {{"tokens", 4}, {"intermediate", 64}}, 1);
  DeviceSets sets(host, emulated(), 1);
  const Problem problem = bind(op, host.args(), {});
  run(op, sets.args(0), {});
  const TensorView out = op.tensor(sets.args(0), size_t(op.tensor_index("out")));
  u16* bits = static_cast<u16*>(out.data);
  const auto ok = [&](int roundings) { return judge_timed(host, sets, 0, problem, kWorkOfASecond, roundings).comparison.ok; };
  EXPECT_TRUE(ok(0) && ok(4));
  bits[5] = u16(bits[5] + 2);  // two steps of bf16
  EXPECT_FALSE(ok(0));
  EXPECT_TRUE(ok(4));
  bits[5] = u16(bits[5] + 16);
  EXPECT_FALSE(ok(4)) << "a tenth is no rounding";
}

TEST(sweep_judge, compares_no_rows_of_other_libraries_whose_inputs_are_not_finite) {
  const Op& op = find_op("activation.silu");
  testing::CaseArgs host(op, {{"tokens", 4}, {"intermediate", 64}, {"x.dtype", int(DType::f32)}}, 1);
  const size_t x = size_t(op.tensor_index("x"));
  static_cast<float*>(host.tensor(x).data)[2 * 64 + 7] = HUGE_VALF;
  std::memcpy(host.buffer(x).initial.get(), host.buffer(x).bytes.get(), size_t(host.buffer(x).size));
  DeviceSets sets(host, emulated(), 1);
  const Problem problem = bind(op, host.args(), {});
  run(op, sets.args(0), {});
  float* out = static_cast<float*>(op.tensor(sets.args(0), size_t(op.tensor_index("out"))).data);
  const auto ok = [&](int roundings) { return judge_timed(host, sets, 0, problem, kWorkOfASecond, roundings).comparison.ok; };
  EXPECT_TRUE(ok(0));
  out[2 * 64 + 7] = NAN;
  EXPECT_FALSE(ok(0));
  EXPECT_TRUE(ok(4));
  out[1 * 64 + 7] = NAN;
  EXPECT_FALSE(ok(4)) << "a row of numbers";
}

TEST(sweep_memory, counts_what_is_held_at_once) {
  MeteredDevice metered(emulated());
  void* a = metered.allocate(100, "a");
  void* b = metered.allocate_async(50, {});
  metered.release(a);
  void* c = metered.allocate(60, "c");
  EXPECT_EQ(metered.peak_bytes(), 150u);
  metered.release_async(b, {});
  metered.release(c);
  EXPECT_EQ(metered.info().arch, emulated().info().arch);
}

TEST(sweep_sheet, knows_whole_names) {
  EXPECT_EQ(data_sheet_bytes_per_us("NVIDIA H200"), 4.8e6);
  EXPECT_EQ(data_sheet_bytes_per_us("NVIDIA H200 NVL"), 0);
}

/// A file that is gone behind the test.
struct SweepCsv : ::testing::Test {
  std::string path = ::testing::TempDir() + "/sweep" + std::to_string(getpid()) + ".csv";
  SweepRun run{.gpu_name = "NVIDIA H200", .arch = "sm_90a", .version = "0.1.0", .timestamp = "2026-01-02 03:04:05", .device = "cuda:0"};
  void TearDown() override { std::remove(path.c_str()); }
  std::vector<Field> row(double us, const std::string& provider = "quern", const std::string& gpu = "NVIDIA H200", Metric metric = Metric::speed) {
    SweepResult r;
    r.op = norm().id, r.provider = provider, r.spec = "norm_row<a=1, b=2>";
    r.timing = {.median_us = us, .p20_us = us * 0.9, .p80_us = us * 1.1, .runs = 15, .timer = "CUPTI activity"};
    r.memory_bytes = 3 << 20, r.planned_bytes = 3 << 20, r.cost = {1e6, 0}, r.floor_us = us / 2, r.sheet_us = us / 4;
    run.gpu_name = gpu;
    return row_of(norm(), at(norm(), "hidden=1024", parse_fixed(norm(), {"tokens=4096", "dtype=bf16"})), r, metric, run);
  }
  std::string text() { return read_file(path).value_or("none"); }
};

TEST_F(SweepCsv, has_the_14_columns_first_and_a_command_that_repeats_the_row) {
  EXPECT_EQ(csv_header(row(10)),
            "kernel_name,kernel_provider,kernel_operation_mode,metric_name,metric_unit,x_name,x_label,x_value,y_value_50,y_value_20,y_value_80,extra_benchmark_config_str,gpu_name,timestamp,"
            "version,arch,dtype,spec,bytes,flops,sol_ms,pct_sol,repro,sheet_ms,timer\n");
  EXPECT_EQ(csv_line(row(10)),
            "norm.rms_norm,quern,forward,speed,ms,hidden,width of the residual stream,1024,0.01,0.009,0.011,\"{\"\"dtype\"\":\"\"bf16\"\",\"\"tokens\"\":4096}\",NVIDIA H200,2026-01-02 03:04:05,"
            "0.1.0,sm_90a,bf16,\"norm_row<a=1, b=2>\",1e+06,,0.005,50,\"quern bench norm.rms_norm --mode forward --sweep hidden=1024 --set tokens=4096,dtype=bf16 --provider quern --metric speed --seed 1 --device cuda:0\",0.0025,CUPTI activity\n");
  EXPECT_THAT(csv_line(row(10, "quern", "NVIDIA H200", Metric::memory)), HasSubstr(",memory,MB,hidden,width of the residual stream,1024,3,3,3,"));
}

TEST_F(SweepCsv, keeps_rows_by_their_key) {
  {
    SweepFile file(path);
    file.put(row(10)), file.put(row(20, "torch")), file.put(row(30, "quern", "NVIDIA L4"));
  }
  EXPECT_EQ(key_of(row(10)), key_of(row(99))) << "figures are no part of it";
  EXPECT_NE(key_of(row(10)), key_of(row(10, "torch")));
  EXPECT_NE(key_of(row(10)), key_of(row(10, "quern", "NVIDIA L4")));
  EXPECT_NE(key_of(row(10)), key_of(row(10, "quern", "NVIDIA H200", Metric::memory)));
  SweepFile again(path);
  EXPECT_TRUE(again.has(key_of(row(1))) && again.has(key_of(row(1, "torch"))));
  EXPECT_FALSE(again.has(key_of(row(1, "liger"))));
  again.put(row(40));
  const std::vector<std::vector<std::string>> lines = parse_csv(text(), path);
  ASSERT_THAT(lines, SizeIs(4)) << "the row was replaced";
  EXPECT_EQ(lines[1][8], "0.04");
  EXPECT_EQ(lines[2][8], "0.02");
  again.remove(key_of(row(1, "torch")));
  EXPECT_THAT(parse_csv(text(), path), SizeIs(3));
  EXPECT_THAT(text(), Not(HasSubstr("torch")));
}

TEST_F(SweepCsv, takes_files_of_the_14_columns_alone) {
  const std::string header = csv_header(row(10)), line = csv_line(row(10));
  std::ofstream(path) << header.substr(0, header.find(",version")) + "\r\n" << line.substr(0, line.find(",0.1.0")) + "\r\n";
  SweepFile file(path);
  EXPECT_TRUE(file.has(key_of(row(5))));
  file.put(row(20, "torch"));
  EXPECT_THAT(text(), StartsWith(header));
  EXPECT_THAT(parse_csv(text(), path), SizeIs(3));
}

TEST_F(SweepCsv, refuses_what_is_no_file_of_sweeps) {
  const auto refused = [&](const std::string& content) {
    std::ofstream(path) << content;
    const std::string said = error_of([&] { SweepFile file(path); });
    EXPECT_EQ(text(), content) << "it is as it was";
    return said;
  };
  EXPECT_EQ(refused("op,case\nnorm,x\n"), "`csv` is '" + path + "', whose column 1 is 'op', expected the columns of a sweep, here kernel_name");
  EXPECT_EQ(refused("kernel_name\n"), "`csv` is '" + path + "', which has 1 columns, expected the columns of a sweep, here kernel_provider");
  const std::string header = csv_header(row(10));
  EXPECT_EQ(refused(header.substr(0, header.size() - 1) + ",mine\n"), "`csv` is '" + path + "', whose column 26 is 'mine', expected the columns of a sweep, here one of those behind timestamp");
  EXPECT_EQ(refused(header + "a,b\n"), "`csv` is '" + path + "', which has 2 fields in row 1, expected 25");
  EXPECT_EQ(refused(header + "\"a"), "`csv` is " + path + ", in which a quote does not end, expected a CSV file");
  EXPECT_THAT(error_of([&] { SweepFile file(::testing::TempDir() + "/no/such/folder/a.csv"); }), HasSubstr("whose folder is not there, expected a file that can be written"));
}

TEST(bench_csv, is_read_as_it_is_written) {
  const std::vector<Field> fields = {{"a", "1, 2"}, {"b", "say \"x\"\nagain"}, {"c", ""}};
  EXPECT_THAT(parse_csv(csv_header(fields) + csv_line(fields), "f"), ElementsAre(ElementsAre("a", "b", "c"), ElementsAre("1, 2", "say \"x\"\nagain", "")));
}

}  // namespace
}  // namespace quern::bench
