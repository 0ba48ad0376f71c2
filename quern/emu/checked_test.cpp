// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Checked mode finds each planted fault with every compiler and under every policy, and says nothing of correct
// kernels.
#include <gmock/gmock.h>

#include <cmath>

#include "quern/emu/planted_run.h"
#include "tests/full_sweep.h"

namespace quern::emu {
namespace {

using planted::Mutation;
using planted::run;
using planted::Sample;

constexpr AsyncPolicy kAsync[] = {AsyncPolicy::eager, AsyncPolicy::lazy, AsyncPolicy::random};
constexpr SchedulePolicy kSchedules[] = {SchedulePolicy::warp_first, SchedulePolicy::fifo, SchedulePolicy::shuffled};

EmulatedOptions options_of(AsyncPolicy async, SchedulePolicy schedule, u64 seed) {
  EmulatedOptions options;
  options.async = async;
  options.schedule = schedule;
  options.seed = seed;
  options.checked = true;
  return options;
}

class Planted : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Compilers, Planted, ::testing::ValuesIn(conform::host_compilers()),
                         [](const auto& info) { return info.param[0] == 'g' ? "gcc" : "clang"; });

/// One test a sample and compiler: each mutation is a compile of its own.
class PlantedIn : public ::testing::TestWithParam<std::tuple<std::string, const Sample*>> {
 protected:
  const std::string& compiler() const { return std::get<0>(GetParam()); }
  const Sample& sample() const { return *std::get<1>(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Kernels, PlantedIn,
                         ::testing::Combine(::testing::ValuesIn(conform::host_compilers()), ::testing::ValuesIn(planted::all_samples())),
                         [](const auto& info) {
                           return std::get<1>(info.param)->name + std::string("_") + (std::get<0>(info.param)[0] == 'g' ? "gcc" : "clang");
                         });

/// In one object, but for what takes more stack than all have.
planted::Bodies bodies_of(const Sample& sample) {
  return {sample, [](const Mutation& mutation) { return mutation.kinds[0] != "STACK"; }};
}

/// Every completion with every schedule in turn; in the full sweep each seed has all completions.
TEST_P(PlantedIn, the_correct_kernel_is_not_reported) {
  const std::string& path = planted::object_of(bodies_of(sample()).text(), compiler(), {.checked = true});
  for (u64 seed = 1; seed <= 25; ++seed)
    for (const AsyncPolicy async : kAsync) {
      if (!full_sweep() && kAsync[seed / 3 % 3] != async) continue;
      EXPECT_EQ(run(path, sample(), options_of(async, kSchedules[seed % 3], seed)), "") << "seed " << seed;
    }
}

/// Under every completion, with a schedule that differs from one to the next and between the compilers; in the full sweep
/// under all of them.
void expect_reported(const std::string& path, const Sample& sample, const Mutation& mutation, int which, size_t turn) {
  for (const AsyncPolicy async : kAsync)
    for (const SchedulePolicy schedule : kSchedules) {
      if (!full_sweep() && kSchedules[(turn + size_t(async)) % 3] != schedule) continue;
      const bool mixed = async == AsyncPolicy::random || schedule == SchedulePolicy::shuffled;
      if (!mixed && mutation.order == (async == AsyncPolicy::lazy ? planted::HiddenBy::last_first : planted::HiddenBy::first_first))
        continue;
      if (mixed && mutation.order != planted::HiddenBy::none) {  // some of the seeds show it
        std::vector<std::string> reported;
        for (u64 seed = 1; seed <= 8; ++seed)
          if (const std::string report = run(path, sample, options_of(async, schedule, seed), which); !report.empty())
            reported.push_back(planted::kind_of(report));
        EXPECT_GE(reported.size(), 2u) << mutation.name;
        EXPECT_THAT(reported, ::testing::Each(::testing::AnyOfArray(mutation.kinds))) << mutation.name;
        continue;
      }
      const std::string report = run(path, sample, options_of(async, schedule, 7), which);
      EXPECT_THAT(mutation.kinds, ::testing::Contains(planted::kind_of(report)))
          << mutation.name << ", async " << int(async) << " schedule " << int(schedule) << ", reported: " << report;
    }
}

TEST_P(PlantedIn, every_fault_is_reported_under_every_policy) {
  const planted::Bodies bodies = bodies_of(sample());
  const size_t turn = compiler() == "g++" ? 0 : 1;
  const std::string& path = planted::object_of(bodies.text(), compiler(), {.checked = true});
  for (size_t i = 0; i < bodies.mutations.size(); ++i) expect_reported(path, sample(), *bodies.mutations[i], int(i + 1), turn + i);
  for (const Mutation& mutation : sample().mutations) {
    if (mutation.kinds[0] != "STACK") continue;
    const std::string text = planted::text_of(sample(), planted::mutated(sample(), mutation));
    expect_reported(planted::object_of(text, compiler(), {.checked = true}), sample(), mutation, 0, turn);
  }
}

TEST_P(Planted, a_race_names_both_places_and_the_buffer) {
  const Sample& sample = planted::samples()[0];
  std::string body = sample.body;
  const std::string from = "if (threadIdx.x == 0) p.out";
  body.replace(body.find(from), from.size(), "p.out");
  const std::string path = planted::object_of(planted::text_of(sample, body), GetParam(), {.checked = true});
  const std::string report = run(path, sample, options_of(AsyncPolicy::eager, SchedulePolicy::warp_first, 1));
  EXPECT_THAT(report, ::testing::HasSubstr("'out' f32 [3] + 0x0"));
  EXPECT_THAT(report, ::testing::HasSubstr("not ordered after the write by thread"));
  EXPECT_THAT(report, ::testing::HasSubstr("kernel.cu:"));
  EXPECT_THAT(report, ::testing::HasSubstr("; the other access at"));
}

TEST_P(Planted, a_deadlock_at_an_mbarrier_names_phase_arrivals_and_bytes) {
  const Sample& sample = planted::copy_samples()[0];
  std::string body = sample.body;
  const std::string from = "full + 8 * s, 128)";
  body.replace(body.find(from), from.size(), "full + 8 * s, 256)");
  const std::string path = planted::object_of(planted::text_of(sample, body), GetParam(), {});
  EmulatedOptions options = options_of(AsyncPolicy::lazy, SchedulePolicy::fifo, 1);
  options.checked = false;
  options.os_threads = 1;
  const std::string report = run(path, sample, options);
  EXPECT_THAT(report, ::testing::StartsWith("DEADLOCK"));
  EXPECT_THAT(report, ::testing::HasSubstr("32 threads of block (1,0,0) warp  1: mbarrier smem+0x200, parity 0 [phase 0, "
                                           "0 of 1 arrivals and 128 bytes missing]"));
}

TEST_P(Planted, a_missing_proxy_fence_names_the_store) {
  const Sample& sample = planted::copy_samples()[1];
  std::string body = sample.body;
  const std::string from = "    ptx::fence_proxy_async_shared();\n";
  body.erase(body.find(from), from.size());
  const std::string path = planted::object_of(planted::text_of(sample, body), GetParam(), {.checked = true});
  const std::string report = run(path, sample, options_of(AsyncPolicy::eager, SchedulePolicy::warp_first, 1));
  EXPECT_THAT(report, ::testing::HasSubstr("tma_store reads smem+0x0, which thread 0 (warp 0 lane 0) wrote by an ordinary "
                                           "store, and no proxy fence lies between"));
  EXPECT_THAT(report, ::testing::HasSubstr("; the other access at"));
}

TEST_P(Planted, a_launch_that_never_waits_does_not_order_what_is_behind_it) {
  const Sample chain{"chain", 32, 1, 0, R"(
  u32 early = 0;
  if (p.n == 1) p.flags[threadIdx.x] = 1;
  if (p.n == 5) early = p.flags[threadIdx.x];
  if (p.n >= 3) ptx::grid_dependency_wait();
  if (p.n == 4) p.flags[32 + threadIdx.x] = p.flags[threadIdx.x];
  if (p.n == 5) p.flags[32 + threadIdx.x] = early;
)", {}};
  const std::string path = planted::object_of(planted::text_of(chain, chain.body), GetParam(), {.checked = true});
  const auto report_of = [&](std::vector<i32> launches) -> std::string {
    const auto device = make_emulated_device(DeviceInfo{}, options_of(AsyncPolicy::eager, SchedulePolicy::warp_first, 1));
    const Function function = device->load(ImageKind::shared_object, {}, path, "planted", 0);
    std::vector<u32> flags(64, 0);
    const MemoryRange range{TensorView(flags.data(), DType::i32, {64}), "flags", MemoryRange::Access::read_write};
    device->begin_call({&range, 1}, "chain");
    std::string report;
    try {
      for (const i32 what : launches) {
        planted::Params params{};
        params.flags = flags.data();
        params.n = what;
        device->launch(function, {.threads = 32, .pdl = true}, &params, sizeof(params), {});
      }
    } catch (const Error& error) { report = error.what(); }
    device->end_call();
    device->unload(function);
    return report;
  };
  EXPECT_EQ(report_of({1, 3, 4}), "");
  EXPECT_EQ(report_of({1, 4}), "");
  EXPECT_THAT(report_of({1, 2, 4}), ::testing::StartsWith("RACE"));
  EXPECT_THAT(report_of({1, 2, 4}), ::testing::HasSubstr("by a kernel launched before"));
  EXPECT_THAT(report_of({1, 2, 3, 4}), ::testing::StartsWith("RACE"));  // the wait of 3 covers 2 alone
  // Each of a chain may begin as soon as the one before has begun: what is read ahead of the wait may be of any of them
  EXPECT_EQ(report_of({3, 3, 3, 5}), "");
  EXPECT_THAT(report_of({1, 5}), ::testing::StartsWith("RACE"));
  EXPECT_THAT(report_of({1, 3, 3, 5}), ::testing::StartsWith("RACE"));
}

/// Registers that a kernel does not initialise hold anything on a GPU. Zeros would hide it.
TEST_P(Planted, what_is_not_initialised_is_no_number_of_the_data) {
  const Sample sum{"sum", 32, 1, 0, R"(
  f32 sums[4];
  for (int i = 0; i < 8; ++i) sums[i % 4] = ptx::fma(p.in[threadIdx.x], f32(i), sums[i % 4]);
  if (threadIdx.x == 0) p.out[0] = sums[p.which];
)", {}};
  for (const bool checked : {false, true}) {
    const std::string& path = planted::object_of(planted::text_of(sum, sum.body), GetParam(), {.checked = checked});
    for (int run = 0; run < 2; ++run) {
      EmulatedOptions options;
      options.checked = checked;
      const auto device = make_emulated_device(DeviceInfo{}, options);
      const Function function = device->load(ImageKind::shared_object, {}, path, "planted", 0);
      std::vector<float> in(64, 0.5f), out(1, 7.0f);
      const MemoryRange ranges[] = {{TensorView(in.data(), DType::f32, {64}), "in", MemoryRange::Access::read},
                                    {TensorView(out.data(), DType::f32, {1}), "out", MemoryRange::Access::write}};
      planted::Params params{};
      params.in = in.data();
      params.out = out.data();
      device->begin_call(ranges, "sum");
      device->launch(function, {.threads = 32}, &params, sizeof(params), {});
      device->end_call();
      EXPECT_FALSE(std::fabs(out[0]) < 1e30f) << "checked " << checked << ": " << out[0];
      device->unload(function);
    }
  }
}

TEST_P(Planted, an_object_without_hooks_is_refused_in_checked_mode) {
  const Sample& sample = planted::samples()[0];
  const std::string path = planted::object_of(planted::text_of(sample, sample.body), GetParam(), {});
  EmulatedOptions options;
  options.checked = true;
  const auto device = make_emulated_device(DeviceInfo{}, options);
  try {
    device->load(ImageKind::shared_object, {}, path, "planted", 0);
    FAIL() << "loaded";
  } catch (const Error& error) { EXPECT_EQ(error.kind(), ErrorKind::internal); }
}

}  // namespace
}  // namespace quern::emu
