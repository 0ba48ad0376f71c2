// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Checked mode finds each planted fault with every compiler and under every policy, and says nothing of correct
// kernels.
#include <gmock/gmock.h>

#include "quern/emu/planted_run.h"

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

TEST_P(Planted, correct_kernels_are_not_reported) {
  for (const Sample& sample : planted::samples()) {
    const conform::Folder folder;
    const std::string path = conform::build_emulated(folder, planted::text_of(sample, sample.body), GetParam(), {.checked = true});
    for (u64 seed = 1; seed <= 25; ++seed)
      for (const AsyncPolicy async : kAsync)
        EXPECT_EQ(run(path, sample, options_of(async, kSchedules[seed % 3], seed)), "")
            << sample.name << " seed " << seed;
  }
}

TEST_P(Planted, every_fault_is_reported_under_every_policy) {
  for (const Sample& sample : planted::samples())
    for (const Mutation& mutation : sample.mutations) {
      const conform::Folder folder;
      const std::string text = planted::text_of(sample, planted::mutated(sample, mutation));
      const std::string path = conform::build_emulated(folder, text, GetParam(), {.checked = true});
      for (const AsyncPolicy async : kAsync)
        for (const SchedulePolicy schedule : kSchedules) {
          const std::string report = run(path, sample, options_of(async, schedule, 7));
          EXPECT_THAT(mutation.kinds, ::testing::Contains(planted::kind_of(report)))
              << sample.name << ": " << mutation.name << ", async " << int(async) << " schedule " << int(schedule)
              << ", reported: " << report;
        }
    }
}

TEST_P(Planted, a_race_names_both_places_and_the_buffer) {
  const Sample& sample = planted::samples()[0];
  std::string body = sample.body;
  const std::string from = "if (threadIdx.x == 0) p.out";
  body.replace(body.find(from), from.size(), "p.out");
  const conform::Folder folder;
  const std::string path = conform::build_emulated(folder, planted::text_of(sample, body), GetParam(), {.checked = true});
  const std::string report = run(path, sample, options_of(AsyncPolicy::eager, SchedulePolicy::warp_first, 1));
  EXPECT_THAT(report, ::testing::HasSubstr("'out' f32 [3] + 0x0"));
  EXPECT_THAT(report, ::testing::HasSubstr("not ordered after the write by thread"));
  EXPECT_THAT(report, ::testing::HasSubstr("kernel.cu:"));
  EXPECT_THAT(report, ::testing::HasSubstr("; the other access at"));
}

TEST_P(Planted, an_object_without_hooks_is_refused_in_checked_mode) {
  const Sample& sample = planted::samples()[0];
  const conform::Folder folder;
  const std::string path = conform::build_emulated(folder, planted::text_of(sample, sample.body), GetParam(), {});
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
