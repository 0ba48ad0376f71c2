// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Checked mode finds each planted fault with every compiler and under every policy, and says nothing of correct
// kernels.
#include <gmock/gmock.h>

#include <map>

#include "quern/base/error.h"
#include "quern/emu/planted_copies.h"
#include "quern/emu/planted_kernels.h"
#include "quern/emu/planted_wgmma.h"
#include "quern/kit/conform/runner.h"

namespace quern::emu {
namespace {

using planted::Mutation;
using planted::Sample;

struct Params {
  const float* in;
  float* out;
  float* scratch;
  u32* flags;
  i32 n;
  TensorMap rows, results;
};

constexpr AsyncPolicy kAsync[] = {AsyncPolicy::eager, AsyncPolicy::lazy, AsyncPolicy::random};
constexpr SchedulePolicy kSchedules[] = {SchedulePolicy::warp_first, SchedulePolicy::fifo, SchedulePolicy::shuffled};

/// The report's text, or empty.
std::string run(const std::string& path, const Sample& sample, const EmulatedOptions& options) {
  const auto device = make_emulated_device(DeviceInfo{}, options);
  const Function function = device->load(ImageKind::shared_object, {}, path, "planted", int(sample.smem));
  const i64 blocks = sample.blocks;
  std::vector<float> in(size_t(80 * blocks), 0.5f), out(size_t(blocks), 0.0f);
  struct alignas(256) {
    float values[64];
  } scratch{};
  std::vector<u32> flags(64, 0);
  TensorView rows(in.data(), DType::f32, {blocks, 64});
  rows.strides[0] = 80;
  using Access = MemoryRange::Access;
  const MemoryRange ranges[] = {{rows, "in", Access::read},
                                {TensorView(out.data(), DType::f32, {blocks}), "out", Access::write},
                                {TensorView(scratch.values, DType::f32, {64}), "scratch", Access::scratch},
                                {TensorView(flags.data(), DType::i32, {64}), "flags", Access::read_write}};
  const TensorMap map_of_rows =
      device->make_tensor_map({DType::f32, 2, in.data(), {64, blocks}, {320}, {32, 1}, Swizzle::none});
  const TensorMap map_of_results =
      device->make_tensor_map({DType::f32, 2, scratch.values, {32, 2}, {128}, {32, 1}, Swizzle::none});
  const Params params{in.data(), out.data(), scratch.values, flags.data(), 64, map_of_rows, map_of_results};
  LaunchConfig config;
  config.grid[0] = sample.blocks;
  config.threads = sample.threads;
  config.smem = sample.smem;
  config.cluster = sample.cluster;
  config.pdl = sample.dependent_launches > 0;
  std::string report;
  device->begin_call(ranges, sample.name);
  try {
    for (int i = 0; i < std::max(1, sample.dependent_launches); ++i)
      device->launch(function, config, &params, sizeof(params), {});
  } catch (const Error& error) {
    report = error.what();
  }
  device->end_call();
  device->unload(function);
  return report;
}

std::vector<const Sample*> all_samples() {
  std::vector<const Sample*> all;
  for (const auto* samples : {&planted::samples(), &planted::copy_samples(), &planted::wgmma_samples()})
    for (const Sample& sample : *samples) all.push_back(&sample);
  return all;
}

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
                         ::testing::Combine(::testing::ValuesIn(conform::host_compilers()),
                                            ::testing::ValuesIn(all_samples())),
                         [](const auto& info) {
                           return std::get<1>(info.param)->name + std::string("_") +
                                  (std::get<0>(info.param)[0] == 'g' ? "gcc" : "clang");
                         });

TEST_P(PlantedIn, the_correct_kernel_is_not_reported) {
  const conform::Folder folder;
  const std::string path = conform::build_emulated(folder, planted::text_of(sample(), sample().body), compiler(), true);
  for (u64 seed = 1; seed <= 25; ++seed)
    for (const AsyncPolicy async : kAsync)
      EXPECT_EQ(run(path, sample(), options_of(async, kSchedules[seed % 3], seed)), "") << "seed " << seed;
}

TEST_P(PlantedIn, every_fault_is_reported_under_every_policy) {
  for (const Mutation& mutation : sample().mutations) {
    std::string body = sample().body;
    const size_t at = body.find(mutation.from);
    ASSERT_NE(at, std::string::npos) << mutation.name;
    body.replace(at, std::string(mutation.from).size(), mutation.to);
    const conform::Folder folder;
    const std::string path = conform::build_emulated(folder, planted::text_of(sample(), body), compiler(), true);
    for (const AsyncPolicy async : kAsync)
      for (const SchedulePolicy schedule : kSchedules) {
        const std::string report = run(path, sample(), options_of(async, schedule, 7));
        const std::string kind = report.substr(0, report.find_first_of(" :"));
        EXPECT_THAT(mutation.kinds, ::testing::Contains(kind))
            << mutation.name << ", async " << int(async) << " schedule " << int(schedule) << ", reported: " << report;
      }
  }
}

TEST_P(Planted, a_race_names_both_places_and_the_buffer) {
  const Sample& sample = planted::samples()[0];
  std::string body = sample.body;
  const std::string from = "if (threadIdx.x == 0) p.out";
  body.replace(body.find(from), from.size(), "p.out");
  const conform::Folder folder;
  const std::string path = conform::build_emulated(folder, planted::text_of(sample, body), GetParam(), true);
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
  const conform::Folder folder;
  const std::string path = conform::build_emulated(folder, planted::text_of(sample, body), GetParam(), false);
  EmulatedOptions options = options_of(AsyncPolicy::lazy, SchedulePolicy::fifo, 1);
  options.checked = false;
  const std::string report = run(path, sample, options);
  EXPECT_THAT(report, ::testing::StartsWith("DEADLOCK"));
  EXPECT_THAT(report,
              ::testing::HasSubstr("32 threads of block (0,0,0) warp  1: mbarrier smem+0x200, parity 0 [phase 0, "
                                   "0 of 1 arrivals and 128 bytes missing]"));
}

TEST_P(Planted, a_missing_proxy_fence_names_the_store) {
  const Sample& sample = planted::copy_samples()[1];
  std::string body = sample.body;
  const std::string from = "    ptx::fence_proxy_async_shared();\n";
  body.erase(body.find(from), from.size());
  const conform::Folder folder;
  const std::string path = conform::build_emulated(folder, planted::text_of(sample, body), GetParam(), true);
  const std::string report = run(path, sample, options_of(AsyncPolicy::eager, SchedulePolicy::warp_first, 1));
  EXPECT_THAT(report,
              ::testing::HasSubstr("tma_store reads smem+0x0, which thread 0 (warp 0 lane 0) wrote by an ordinary "
                                   "store, and no proxy fence lies between"));
  EXPECT_THAT(report, ::testing::HasSubstr("; the other access at"));
}

TEST_P(Planted, a_launch_that_never_waits_does_not_order_what_is_behind_it) {
  const std::string text = std::string("#include \"quern/kit/world.cuh\"") + planted::kPrelude + R"(
  if (p.n == 1) p.flags[threadIdx.x] = 1;
  if (p.n >= 3) ptx::grid_dependency_wait();
  if (p.n == 4) p.flags[32 + threadIdx.x] = p.flags[threadIdx.x];
}
QN_ENTRY(planted, P, 32, 1, body(p))
)";
  const conform::Folder folder;
  const std::string path = conform::build_emulated(folder, text, GetParam(), true);
  const auto report_of = [&](std::vector<i32> launches) -> std::string {
    const auto device =
        make_emulated_device(DeviceInfo{}, options_of(AsyncPolicy::eager, SchedulePolicy::warp_first, 1));
    const Function function = device->load(ImageKind::shared_object, {}, path, "planted", 0);
    std::vector<u32> flags(64, 0);
    const MemoryRange range{TensorView(flags.data(), DType::i32, {64}), "flags", MemoryRange::Access::read_write};
    device->begin_call({&range, 1}, "chain");
    std::string report;
    try {
      for (const i32 what : launches) {
        Params params{};
        params.flags = flags.data();
        params.n = what;
        device->launch(function, {.threads = 32, .pdl = true}, &params, sizeof(params), {});
      }
    } catch (const Error& error) {
      report = error.what();
    }
    device->end_call();
    device->unload(function);
    return report;
  };
  EXPECT_EQ(report_of({1, 3, 4}), "");
  EXPECT_EQ(report_of({1, 4}), "");
  EXPECT_THAT(report_of({1, 2, 4}), ::testing::StartsWith("RACE"));
  EXPECT_THAT(report_of({1, 2, 4}), ::testing::HasSubstr("by a kernel launched before"));
}

TEST_P(Planted, an_object_without_hooks_is_refused_in_checked_mode) {
  const Sample& sample = planted::samples()[0];
  const conform::Folder folder;
  const std::string path = conform::build_emulated(folder, planted::text_of(sample, sample.body), GetParam(), false);
  EmulatedOptions options;
  options.checked = true;
  const auto device = make_emulated_device(DeviceInfo{}, options);
  try {
    device->load(ImageKind::shared_object, {}, path, "planted", 0);
    FAIL() << "loaded";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::internal);
  }
}

}  // namespace
}  // namespace quern::emu
