// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/device/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>
#include <tuple>

#include "quern/base/error.h"
#include "quern/device/emulated.h"

namespace quern {
namespace {

using testing::HasSubstr;

std::string error_of(auto&& call) {
  try {
    call();
  } catch (const Error& error) { return std::string(name(error.kind())) + ": " + error.what(); }
  return "no error";
}

TEST(device_arch, parses_what_it_prints) {
  for (const Arch& arch : known_archs()) EXPECT_EQ(Arch::parse(arch.name()), arch) << arch.name();
  EXPECT_EQ(Arch::parse("90a"), (Arch{90, 1}));
  EXPECT_EQ(Arch::parse("sm_90"), (Arch{90, 1}));
  EXPECT_EQ(Arch::parse("80"), (Arch{80, 0}));
}

TEST(device_arch, rejects_others_by_listing_the_known) {
  for (const char* text : {"sm_70", "sm_80a", "", "sm_", "a", "90b", "sm_100f"})
    EXPECT_THAT(error_of([&] { Arch::parse(text); }),
                HasSubstr("expected one of sm_80, sm_86, sm_89, sm_90a, sm_100a, sm_103a, sm_120a, sm_121a"))
        << text;
}

TEST(device_info, is_known_for_every_arch) {
  for (const Arch& arch : known_archs()) {
    const DeviceInfo info = device_info_of(arch);
    EXPECT_EQ(info.arch, arch);
    EXPECT_GT(info.sms, 0) << arch.name();
    EXPECT_LT(info.smem_block, info.smem_sm) << arch.name();
    EXPECT_EQ(info.threads_sm, info.smem_sm > (128 << 10) ? 2048 : 1536) << arch.name();
    EXPECT_EQ(info.emulated, 0);
  }
}

TEST(device_info, of_hopper_is_the_default) {
  const DeviceInfo info = device_info_of({90, 1}), standard;
  EXPECT_EQ(info.sms, standard.sms);
  EXPECT_EQ(info.smem_block, standard.smem_block);
  EXPECT_EQ(info.smem_sm, standard.smem_sm);
  EXPECT_EQ(info.threads_sm, standard.threads_sm);
  EXPECT_EQ(info.l2_bytes, standard.l2_bytes);
  EXPECT_EQ(info.memory_bytes, standard.memory_bytes);
  EXPECT_STREQ(info.name, standard.name);
}

TEST(device_info, rates_are_those_of_the_arch) {
  for (const Arch& arch : known_archs()) {
    const Rates rates = device_info_of(arch).rates;
    EXPECT_EQ(rates.memory, rates_of(arch.number).memory);
    EXPECT_GT(rates.memory, 0) << arch.name();
    EXPECT_EQ(emulated_device_info(arch).rates.memory, rates.memory) << arch.name();
  }
  EXPECT_GT(device_info_of({90, 1}).rates.l2, device_info_of({90, 1}).rates.memory);
  EXPECT_LT(device_info_of({80, 0}).rates.memory, device_info_of({90, 1}).rates.memory);
  EXPECT_EQ(rates_of(91).memory, rates_of(90).memory) << "an arch without a row: the one before it";
  EXPECT_EQ(rates_of(70).memory, rates_of(80).memory);
  EXPECT_EQ(DeviceInfo{}.rates.memory, rates_of(90).memory);
}

TEST(device, fills_rows_and_leaves_what_is_between_them) {
  const std::unique_ptr<Device> device = make_emulated_device(device_info_of({90, 1}), {});
  std::vector<u8> memory(40, 1);
  device->fill_rows(memory.data() + 2, 9, 3, 4, 8, {});
  for (size_t i = 0; i < memory.size(); ++i) EXPECT_EQ(memory[i], i >= 2 && (i - 2) % 8 < 3 && i < 32 ? 9 : 1) << i;
}

TEST(device_names, give_one_device_each) {
  Device& emulated = device_from_name("emu:sm_80");
  EXPECT_EQ(emulated.info().arch, (Arch{80, 0}));
  EXPECT_EQ(emulated.info().emulated, 1);
  EXPECT_EQ(&emulated, &device_from_name("emu:80"));
  EXPECT_EQ(&device_from_name("emu"), &device_of({}));
  Device* seen[4] = {};
  std::vector<std::thread> threads;
  for (Device*& slot : seen) threads.emplace_back([&slot] { slot = &device_from_name("emu:sm_120a"); });
  for (std::thread& thread : threads) thread.join();
  for (const Device* device : seen) EXPECT_EQ(device, seen[0]);
}

TEST(device_names, that_are_wrong_are_errors) {
  for (const char* text : {"gpu", "cuda:", "cuda:x", "cuda:-1", "emu:", "emu:sm_1", "cpu"})
    EXPECT_THAT(error_of([&] { device_from_name(text); }), HasSubstr("value: ")) << text;
  EXPECT_THAT(error_of([&] { device_from_name("gpu"); }), HasSubstr("is 'gpu', expected cuda, cuda:N, emu or emu:ARCH"));
  EXPECT_THAT(error_of([&] { device_from_name("cuda:99"); }), HasSubstr("device: "));
}

/// Making the device that QN_DEVICE names reads other variables: each is blamed for itself.
TEST(device_names, of_the_environment_blame_the_variable_that_is_wrong) {
  setenv("QN_DEVICE", "emu:sm_86", 1);
  for (const auto& [name, value, text] : {std::tuple{"QN_EMU_SMS", "0", "`QN_EMU_SMS` is '0', expected 1 to 1024"},
                                          {"QN_EMU_THREADS", "-3", "`QN_EMU_THREADS` is '-3', expected 0 to 1024"},
                                          {"QN_EMU_ASYNC", "soon", "`QN_EMU_ASYNC` is 'soon', expected one of eager, lazy, random"},
                                          {"QN_EMU_CHECKED", "maybe", "`QN_EMU_CHECKED` is 'maybe', expected 0 or 1"},
                                          {"QN_DEVICE", "emu:sm_1", "`QN_DEVICE` is 'emu:sm_1', expected one of "}}) {
    setenv(name, value, 1);
    EXPECT_THAT(error_of([] { device_from_name(""); }), HasSubstr(text));
    unsetenv(name);
  }
  unsetenv("QN_DEVICE");
}

TEST(device_names, of_a_type_that_is_none_and_devices_that_cannot_be) {
  EXPECT_THAT(error_of([] { device_of({DeviceType(7), 0}); }), HasSubstr("`device` has the type 7, expected 1 (host) or 2 (cuda)"));
  DeviceInfo info = device_info_of(Arch{});
  EmulatedOptions soon, fewer;
  soon.async = AsyncPolicy(9), fewer.os_threads = -1;
  EXPECT_THAT(error_of([&] { make_emulated_device(info, soon); }), HasSubstr("`async` is 9, expected an AsyncPolicy, 0 to 2"));
  EXPECT_THAT(error_of([&] { make_emulated_device(info, fewer); }), HasSubstr("`os_threads` is -1, expected 0 (one a CPU) or more"));
  info.sms = 0;
  EXPECT_THAT(error_of([&] { make_emulated_device(info, {}); }), HasSubstr("`sms` is 0, expected 1 or more"));
}

TEST(device_names, say_why_there_is_no_gpu) {
  std::string why;
  if (cuda_device_count(&why) > 0) GTEST_SKIP() << "needs a machine without a GPU";
  EXPECT_NE(why, "");
  EXPECT_THAT(error_of([&] { device_from_name("cuda"); }), HasSubstr(why));
}

}  // namespace
}  // namespace quern
