// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/bench/time_call.h"

#include <gmock/gmock.h>

#include <set>
#include <thread>

#include "quern/base/error.h"
#include "quern/bench/ceiling.h"
#include "quern/bench/stream.h"
#include "quern/jit/build.h"

namespace quern::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(bench_timing, quantiles_lie_between_runs) {
  EXPECT_EQ(quantile({}, 0.5), 0);
  EXPECT_EQ(quantile({7}, 0.9), 7);
  EXPECT_DOUBLE_EQ(quantile({1, 2, 3, 4}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile({0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100}, 0.1), 10);
  const Timing t = timing_of({30, 10, 20}, "a timer");
  EXPECT_EQ(t.median_us, 20);
  EXPECT_DOUBLE_EQ(t.p10_us, 12);
  EXPECT_DOUBLE_EQ(t.p90_us, 28);
  EXPECT_EQ(t.min_us, 10);
  EXPECT_EQ(t.runs, 3);
  EXPECT_STREQ(t.timer, "a timer");
}

// Two kernels a call, the second begun before the first ended; a flush before each when cold.
TEST(bench_timing, a_call_lasts_from_its_first_kernel_to_its_last_end) {
  const std::vector<KernelRecord> cold = {{"flush_l2__accesses8_threads512", 0, 900},     {"a", 1000, 3000}, {"b", 2500, 2900},
                                          {"flush_l2__accesses8_threads512", 4000, 4900}, {"a", 5000, 6000}, {"b", 5900, 9000}};
  EXPECT_THAT(call_spans(cold, 2, true), ElementsAre(2, 4));
  const std::vector<KernelRecord> hot = {{"a", 1000, 3000}, {"b", 2500, 2900}, {"a", 5000, 6000}, {"b", 5900, 9000}};
  EXPECT_THAT(call_spans(hot, 2, false), ElementsAre(2, 4));
  EXPECT_THAT(call_spans(hot, 4, false), ElementsAre(2, 0.4, 1, 3.1));
}

TEST(bench_timing, records_that_do_not_fit_the_calls_are_an_error) {
  const std::vector<KernelRecord> odd = {{"a", 0, 1}, {"a", 2, 3}, {"a", 4, 5}};
  const auto message = [&](const std::vector<KernelRecord>& records, int runs, bool cold) -> std::string {
    try {
      call_spans(records, runs, cold);
      return "";
    } catch (const Error& e) { return e.what(); }
  };
  EXPECT_THAT(message(odd, 2, false), HasSubstr("3 kernels in 2 calls: the calls differ"));
  EXPECT_THAT(message(odd, 3, true), HasSubstr("before the first flush"));
  EXPECT_THAT(message({}, 3, false), HasSubstr("0 kernels in 3 calls"));
  EXPECT_THAT(message({{kFlushSymbol, 0, 1}}, 1, true), HasSubstr("launched none"));
}

TEST(bench_timing, runs_count_up_and_keep_to_the_budget) {
  Device& device = device_from_name("emu");
  std::vector<int> seen;
  const std::function<void(int)> call = [&](int run) {
    seen.push_back(run);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  };
  const Timing t = time_call(device, call, {.budget_ms = 20});
  EXPECT_STREQ(t.timer, "wall clock");
  EXPECT_GE(t.runs, 3);
  EXPECT_LE(t.runs, 10);
  EXPECT_GE(t.min_us, 2000);
  ASSERT_GE(seen.size(), size_t(t.runs));
  const std::vector<int> timed(seen.end() - t.runs, seen.end());
  for (int i = 0; i < t.runs; ++i) EXPECT_EQ(timed[size_t(i)], i);
  EXPECT_LE(time_call(device, [] {}, {.max_runs = 7}).runs, 7);
}

TEST(bench_ceilings, the_longer_of_bytes_and_operations_is_the_floor) {
  Ceilings c;
  EXPECT_EQ(c.floor_us({100, 100}), 0);
  c.bytes_per_us = 4e6, c.read_bytes_per_us = 5e6;
  EXPECT_DOUBLE_EQ(c.floor_us({5e6, 1e30}), 1);  // no matrix rate: operations are not counted
  EXPECT_TRUE(c.bandwidth_bound({5e6, 1e6}));
  EXPECT_FALSE(c.bandwidth_bound({5e6, 1e12}));
  c.flops_per_us = 7e8;
  EXPECT_DOUBLE_EQ(c.floor_us({5e6, 14e8}), 2);
  EXPECT_FALSE(c.bandwidth_bound({5e6, 14e8}));
}

TEST(bench_ceilings, an_emulated_device_says_why_it_has_no_matrix_rate) {
  const Ceilings c = measure_ceilings(device_from_name("emu"));
  EXPECT_GT(c.bytes_per_us, 0);
  EXPECT_EQ(c.flops_per_us, 0);
  EXPECT_THAT(c.flops_source, HasSubstr("emulated"));
}

// Whole chunks, a part of one, and fewer vectors than a block has threads.
TEST(bench_stream, copies_every_byte_and_no_other) {
  Device& device = device_from_name("emu");
  for (const i64 bytes : {i64(16), i64(16 * 63), i64(16 * 64 * 4 * 3), i64(16 * (64 * 4 * 5 + 1))})
    for (const int blocks_an_sm : {0, 1}) {
      std::vector<u64> from(size_t(bytes / 8)), to(size_t(bytes / 8) + 2, 7);
      for (size_t i = 0; i < from.size(); ++i) from[i] = i * 0x9E3779B97F4A7C15ull + 1;
      alignas(16) u64 sink[2] = {7, 7};
      const StreamShape shape{.accesses = 4, .threads = 64, .blocks_an_sm = blocks_an_sm};
      const DeviceMemory source(device, size_t(bytes), "from"), target(device, size_t(bytes) + 16, "to");
      device.copy(source.data(), from.data(), size_t(bytes), {});
      device.copy(target.data(), to.data(), size_t(bytes) + 16, {});
      launch_stream(device, StreamPass::copy, shape, source.data(), target.data(), bytes, {});
      launch_stream(device, StreamPass::read, shape, source.data(), sink, bytes, {});
      device.synchronize({});
      device.copy(to.data(), target.data(), size_t(bytes) + 16, {});
      EXPECT_TRUE(std::equal(from.begin(), from.end(), to.begin())) << bytes;
      EXPECT_EQ(to[from.size()], 7u);
      EXPECT_EQ(sink[0], 7u);
    }
  EXPECT_THROW(launch_stream(device, StreamPass::read, {}, nullptr, nullptr, 8, {}), Error);
}

// The loads of a chunk are in flight together: each needs registers of its own.
TEST(bench_stream, compiles_for_every_gpu_without_spills) {
  for (const Arch& arch : known_archs())
    for (const StreamPass pass : {StreamPass::copy, StreamPass::read, StreamPass::flush_l2}) {
      const jit::Compiled c = jit::build(stream_kernel(pass, {.accesses = 8, .threads = 512}), {.arch = arch});
      EXPECT_EQ(c.spill_bytes + c.stack_bytes, 0) << arch.name();
      EXPECT_GE(c.registers, 36) << arch.name();
      EXPECT_LE(c.registers, 64) << arch.name() << ": 2 blocks an SM want 64 at most";
      EXPECT_EQ(c.entry.rfind(kFlushSymbol, 0) == 0, pass == StreamPass::flush_l2) << c.entry;
    }
}

}  // namespace
}  // namespace quern::bench
