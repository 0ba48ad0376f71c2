// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// A kernel that uses an approximate instruction and states the error of an accurate one is wrong on the emulated device
// too. The op is this file's own; its attribute is the budget.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "quern/device/emulated.h"
#include "quern/jit/sources.h"
#include "quern/op/ref.h"
#include "quern/op/schema.h"
#include "quern/testing/check.h"

namespace quern::planted {

struct TanhArgs {
  TensorView out, x;
  i32 bits = 10;  ///< the relative error that the op states is 2^-bits
};
struct TanhConfig {
  i32 threads;
};
struct TanhParams {
  const float* x;  // [tokens, hidden], dense
  float* out;
  i64 count;
};

const jit::EmbeddedSource kSource = {"planted/tanh.cuh", R"(
#pragma once
#include "quern/kit/kit.cuh"
namespace quern::planted {
struct TanhConfig {
  i32 threads;
};
struct TanhParams {
  const float* x;
  float* out;
  i64 count;
};
template <TanhConfig C> QN_DEVICE void tanh_all(const TanhParams& p) {
  for (i64 i = threadIdx.x; i < p.count; i += C.threads) {
    f32 v[1];
    load_f32<float, 1>(p.x + i, v);
    v[0] = ptx::tanh_approx(v[0]);
    store_f32<float, 1>(p.out + i, v);
  }
}
}  // namespace quern::planted
)"};
[[maybe_unused]] const int kRegistered = (jit::register_sources(&kSource, 1), 0);

static const jit::Kernel<TanhConfig, TanhParams> kernel{"planted/tanh.cuh", "tanh_all"};

static TanhParams params(const Call<TanhArgs>& c) {
  return {static_cast<const float*>(c.args.x.data), static_cast<float*>(c.args.out.data),
          c.problem[Axis::tokens] * c.problem[Axis::hidden]};
}
static Plan plan(const Problem&, const DeviceInfo&) {
  Plan plan;
  plan.launch<params>(kernel, TanhConfig{64}, {.x = 1});
  return plan;
}
static void reference(const TanhArgs& a, const TanhArgs&) {
  const Ref x(a.x);
  const RefOut out(a.out);
  for (i64 t = 0; t < x.dim(0); ++t)
    for (i64 h = 0; h < x.dim(1); ++h) out.set(std::tanh(x(t, h)), t, h);
}

QN_OP(tanh, TanhArgs, "planted.tanh")
    .doc("out = tanh(x)")
    .attr("bits", &TanhArgs::bits)
    .in("x", &TanhArgs::x, "tokens hidden", {DType::f32})
    .out("out", &TanhArgs::out, "tokens hidden", like("x"))
    .plan(plan)
    .reference<reference>()
    .budget([](const Problem& p) { return Budget{.of_value = std::exp2(-double(p.attr(&TanhArgs::bits)))}; })
    .cases({{"tokens", {3}}, {"hidden", {64}}, {"bits", {10, 21}}});

}  // namespace quern::planted

namespace quern::testing {
namespace {

using ::testing::HasSubstr;

CheckResult checked(int bits, const EmulatedOptions& options = {}) {
  const std::unique_ptr<Device> device = make_emulated_device(device_info_of(Arch{}), options);
  return check_case({.op = &find_op("planted.tanh"), .given = {{"bits", double(bits)}}, .seed = 1, .devices = {{device.get(), ""}}}).at(0);
}

TEST(testing_planted_budget, of_an_accurate_tanh_is_wrong_for_an_approximate_one) {
  const CheckResult r = checked(21);
  EXPECT_EQ(r.verdict, CheckResult::Verdict::wrong);
  EXPECT_GT(r.error, 900) << "2^-11 is 1024 times 2^-21";
  EXPECT_THAT(r.message, HasSubstr("times the tolerance"));
}

TEST(testing_planted_budget, of_the_approximate_one_is_right) {
  const CheckResult r = checked(10);
  EXPECT_EQ(r.verdict, CheckResult::Verdict::right) << r.message;
  EXPECT_GT(r.error, 0.45) << "the error is made in full";
}

TEST(testing_planted_budget, a_seed_repeats_its_errors_and_another_makes_others) {
  EXPECT_EQ(checked(10, {.seed = 1}).error, checked(10, {.schedule = SchedulePolicy::shuffled, .seed = 1}).error);
  EXPECT_EQ(checked(10, {.seed = 7}).error, checked(10, {.seed = 7, .checked = true}).error);
  EXPECT_NE(checked(10, {.seed = 1}).error, checked(10, {.seed = 2}).error);
}

}  // namespace
}  // namespace quern::testing
