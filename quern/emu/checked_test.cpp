// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Checked mode finds each planted fault with every compiler and under every policy, and says nothing of correct
// kernels.
#include <gmock/gmock.h>

#include <map>

#include "quern/base/error.h"
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
};

constexpr AsyncPolicy kAsync[] = {AsyncPolicy::eager, AsyncPolicy::lazy, AsyncPolicy::random};
constexpr SchedulePolicy kSchedules[] = {SchedulePolicy::warp_first, SchedulePolicy::fifo, SchedulePolicy::shuffled};

/// The report's text, or empty.
std::string run(const std::string& path, const Sample& sample, const EmulatedOptions& options) {
  const auto device = make_emulated_device(DeviceInfo{}, options);
  const Function function = device->load(ImageKind::shared_object, {}, path, "planted", int(sample.smem));
  const i64 blocks = sample.blocks;
  std::vector<float> in(size_t(80 * blocks), 0.5f), out(size_t(blocks), 0.0f), scratch(64, 0.0f);
  std::vector<u32> flags(64, 0);
  TensorView rows(in.data(), DType::f32, {blocks, 64});
  rows.strides[0] = 80;
  using Access = MemoryRange::Access;
  const MemoryRange ranges[] = {{rows, "in", Access::read},
                                {TensorView(out.data(), DType::f32, {blocks}), "out", Access::write},
                                {TensorView(scratch.data(), DType::f32, {64}), "scratch", Access::scratch},
                                {TensorView(flags.data(), DType::i32, {64}), "flags", Access::read_write}};
  const Params params{in.data(), out.data(), scratch.data(), flags.data(), 64};
  LaunchConfig config;
  config.grid[0] = sample.blocks;
  config.threads = sample.threads;
  config.smem = sample.smem;
  std::string report;
  device->begin_call(ranges, sample.name);
  try {
    device->launch(function, config, &params, sizeof(params), {});
  } catch (const Error& error) {
    report = error.what();
  }
  device->end_call();
  device->unload(function);
  return report;
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

void expect_no_reports(const std::vector<Sample>& samples, const std::string& compiler) {
  for (const Sample& sample : samples) {
    const conform::Folder folder;
    const std::string path = conform::build_emulated(folder, planted::text_of(sample, sample.body), compiler, true);
    for (u64 seed = 1; seed <= 25; ++seed)
      for (const AsyncPolicy async : kAsync)
        EXPECT_EQ(run(path, sample, options_of(async, kSchedules[seed % 3], seed)), "")
            << sample.name << " seed " << seed;
  }
}

void expect_reports(const std::vector<Sample>& samples, const std::string& compiler) {
  for (const Sample& sample : samples)
    for (const Mutation& mutation : sample.mutations) {
      std::string body = sample.body;
      const size_t at = body.find(mutation.from);
      ASSERT_NE(at, std::string::npos) << sample.name << ": " << mutation.name;
      body.replace(at, std::string(mutation.from).size(), mutation.to);
      const conform::Folder folder;
      const std::string path = conform::build_emulated(folder, planted::text_of(sample, body), compiler, true);
      for (const AsyncPolicy async : kAsync)
        for (const SchedulePolicy schedule : kSchedules) {
          const std::string report = run(path, sample, options_of(async, schedule, 7));
          const std::string kind = report.substr(0, report.find_first_of(" :"));
          EXPECT_THAT(mutation.kinds, ::testing::Contains(kind))
              << sample.name << ": " << mutation.name << ", async " << int(async) << " schedule " << int(schedule)
              << ", reported: " << report;
        }
    }
}

TEST_P(Planted, correct_kernels_are_not_reported) { expect_no_reports(planted::samples(), GetParam()); }
TEST_P(Planted, every_fault_is_reported_under_every_policy) { expect_reports(planted::samples(), GetParam()); }
TEST_P(Planted, correct_kernels_of_warpgroups_are_not_reported) { expect_no_reports(planted::wgmma_samples(), GetParam()); }
TEST_P(Planted, every_fault_of_warpgroups_is_reported_under_every_policy) { expect_reports(planted::wgmma_samples(), GetParam()); }

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
