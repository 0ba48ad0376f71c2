// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// A point of a sweep: modes, what is judged before it is timed, guests, memory. An op of this file's own has a reduction over a block that
// may be the kit's or one that loses warps where their number is no power of two.
#include "quern/bench/sweep_point.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "quern/bench/guests.h"
#include "quern/bench/metered_device.h"
#include "quern/bench/mode_case.h"
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

static MeanParams mean_params(const Call<MeanArgs>& c) {
  return {c.args.x.data, c.args.out.data, c.args.x.strides[0], c.problem[Axis::hidden]};
}
static MeanBackwardParams backward_params(const Call<MeanBackwardArgs>& c) {
  return {c.args.dy.data, c.args.out.data, c.args.dx.data, c.args.dx.strides[0], c.problem[Axis::hidden]};
}

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

using ::testing::HasSubstr;
using ::testing::SizeIs;

const Op& norm() { return find_op("norm.rms_norm"); }
const Op& mean() { return find_op("planted.mean"); }
Device& emulated() { return device_from_name("emu"); }

SweepOptions quick(bool memory = false) {
  SweepOptions o;
  o.timing.budget_ms = 1, o.timing.max_runs = 5, o.memory = memory;
  return o;
}
SweepPoint at(const Op& op, const std::string& sweep, const Case& fixed = {}) {
  return sweep_points(op, {parse_sweep(op, sweep)}, fixed).at(0);
}

/// What an Error says; "none" where there is none.
template <class F> std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) { return e.what(); }
  return "none";
}

TEST(sweep_modes, judge_time_and_count_what_they_run) {
  for (const Mode mode : {Mode::forward, Mode::backward, Mode::full}) {
    const Ceilings ceilings{.bytes_per_us = 1e3};
    const std::vector<SweepResult> results =
        bench_point(norm(), at(norm(), "hidden=96", {{"tokens", 3}}), mode, {"quern"}, emulated(), ceilings, quick(true));
    ASSERT_THAT(results, SizeIs(1));
    const SweepResult& r = results[0];
    EXPECT_TRUE(r.ok) << name(mode) << ": " << r.message;
    EXPECT_TRUE(r.timed());
    EXPECT_DOUBLE_EQ(r.floor_us, r.cost.bytes / 1e3) << name(mode) << ": the speed of light is that of the mode's bytes";
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
  const std::vector<SweepResult> results =
      bench_point(find_op("elementwise.add"), at(find_op("elementwise.add"), "hidden=96"), Mode::full, {"quern"}, emulated(), {}, quick());
  EXPECT_FALSE(results[0].ok);
  EXPECT_EQ(results[0].message,
            "unsupported error: elementwise.add: `mode` is full, expected forward: the op's schema names no op for its gradients");
}

TEST(sweep_modes, hand_what_the_op_wrote_to_its_gradients) {
  for (const Mode mode : {Mode::backward, Mode::full}) {
    ModeCase which(mean(), {{"hidden", 96}}, mode, emulated(), 1, true);
    ASSERT_THAT(which.parts(), SizeIs(2));
    const ModeCase::Part &forward = *which.parts()[0], &backward = *which.parts()[1];
    const size_t out = size_t(mean().tensor_index("out")), read = size_t(backward.op->tensor_index("out"));
    ASSERT_GE(which.sets(), 2);
    for (int set = 0; set < which.sets(); ++set)
      EXPECT_EQ(mean().tensor(forward.sets->args(set), out).data, backward.op->tensor(backward.sets->args(set), read).data);
    const SweepResult r = bench_point(mean(), at(mean(), "hidden=96"), mode, {"quern"}, emulated(), {}, quick(true))[0];
    EXPECT_TRUE(r.ok) << name(mode) << ": " << r.message;
    if (!emulated().wants_memory_ranges()) { EXPECT_EQ(r.memory_bytes, r.planned_bytes); }
    EXPECT_EQ(r.planned_bytes, 3 * 96 * 4 + (mode == Mode::full ? 3 * 4 + 1024 : 0));
  }
}

TEST(sweep_modes, judge_gradients_by_what_the_op_wrote_this_time) {
  ModeCase which(mean(), {{"hidden", 96}}, Mode::backward, emulated(), 1, false);
  const ModeCase::Part& backward = *which.timed()[0];
  const TensorView out = mean().tensor(which.parts()[0]->sets->args(0), size_t(mean().tensor_index("out")));
  for (const float factor : {1.f, 3.f}) {
    for (i64 t = 0; t < 3; ++t) static_cast<float*>(out.data)[t] *= factor;
    which.restore(0);
    run(*backward.op, backward.sets->args(0), backward.options);
    const Verdict v = which.judge(0, 0);
    EXPECT_TRUE(v.comparison.ok) << factor << ": " << v.comparison.message;
  }
}

/// A reduction over a block that is right for 2, 4 and 32 warps and wrong for 3 and 24: what sizes that are powers of two do not show.
TEST(sweep_judges, a_reduction_that_loses_warps_before_it_is_timed) {
  for (const i64 hidden : {64, 96, 128, 768, 1024}) {
    const bool lost = hidden == 96 || hidden == 768;
    const SweepResult kit =
        bench_point(mean(), at(mean(), "hidden=" + std::to_string(hidden)), Mode::forward, {"quern"}, emulated(), {}, quick())[0];
    EXPECT_TRUE(kit.ok && kit.timed()) << hidden << ": " << kit.message;
    const SweepResult halving = bench_point(mean(), at(mean(), "hidden=" + std::to_string(hidden), {{"halving", 1}}), Mode::forward,
                                            {"quern"}, emulated(), {}, quick(true))[0];
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
  const std::vector<SweepResult> results =
      bench_point(mean(), at(mean(), "hidden=96"), Mode::forward, {"quern", "wrong", "right"}, emulated(), {}, quick(true));
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
  EXPECT_EQ(error_of([] { check_provider("absent"); }),
            "`provider` is absent, which is not here, expected the package absent: pip install absent");
  EXPECT_THAT(error_of([] { check_provider("torch"); }),
              HasSubstr("`provider` is torch, which this program does not have, expected the `quern` of the Python package"));
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
  for (const size_t row : {0, 1, 3}) static_cast<float*>(host.tensor(x).data)[row * 64] = NAN;
  EXPECT_FALSE(ok(4)) << "no row is compared";
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

}  // namespace
}  // namespace quern::bench
