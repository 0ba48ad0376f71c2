// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What plain mode does beside computing: co-residency, reports of threads that cannot go on, faults.
#include <gmock/gmock.h>

#include <cfenv>
#include <csignal>
#include <thread>

#include "quern/base/error.h"
#include "quern/kit/conform/runner.h"

namespace quern::emu {
namespace {

using conform::Kernel;
using conform::World;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// A kernel whose body is `body`, for threads of a block and bytes of shared memory.
std::string kernel_of(const std::string& body, u32 threads) {
  return "#include \"quern/kit/conform/params.h\"\n#include \"quern/kit/world.cuh\"\nusing namespace quern;\n"
         "QN_DEVICE void body(const conform::Params& p) {\n" +
         body + "\n}\nQN_ENTRY(scheduler, conform::Params, " + std::to_string(threads) + ", 1, body(p))\n";
}
World plain() { return {"plain", conform::host_compilers().at(0), {}}; }

std::string report_of(const std::string& body, u32 threads = 64, u32 smem = 1024, u32 blocks = 1) {
  Kernel kernel(plain(), kernel_of(body, threads), threads, smem);
  kernel.config.grid[0] = blocks;
  std::vector<u32> in(64), out(64);
  try {
    kernel.run(in, out, 0);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
    return error.what();
  }
  return "";
}

#if defined(__x86_64__)
/// A thread that flushes subnormals and rounds up calls: the kernel sees neither, and the thread keeps both.
TEST(emu_scheduler, the_callers_way_with_numbers_is_not_the_kernels) {
  Kernel kernel(plain(),
                kernel_of(R"(
    const f32* in = static_cast<const f32*>(p.in);
    f32* out = static_cast<f32*>(p.out);
    out[threadIdx.x] = in[threadIdx.x] * f32(0.75f);
    out[threadIdx.x] = out[threadIdx.x] + in[threadIdx.x + 64];
  )",
                          64),
                64, 0);
  std::vector<u32> in(128), expected(64), out(64);
  for (u32 i = 0; i < 64; ++i) in[i] = 1000 + i, in[64 + i] = 3;  // subnormals
  kernel.run(in, expected, 0);
  EXPECT_EQ(expected[0], 753u);
  std::thread([&] {
    constexpr u32 kFlushes = 0x8040;  // flush to zero, subnormals are zeros
    std::fesetround(FE_UPWARD);
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | kFlushes);
    kernel.run(in, out, 0);
    EXPECT_EQ(std::fegetround(), FE_UPWARD);
    EXPECT_EQ(__builtin_ia32_stmxcsr() & kFlushes, kFlushes);
  }).join();
  EXPECT_EQ(out, expected);
}
#endif

TEST(emu_scheduler, thirty_two_blocks_of_1024_threads_meet_at_a_grid_barrier) {
  Kernel kernel(plain(),
                kernel_of(R"(
    u32* out = static_cast<u32*>(p.out);
    ptx::sync_block();
    if (threadIdx.x == 0) {
      ptx::atomic_add_acq_rel_gpu(out, 1);
      while (ptx::ld_acquire_gpu(out) != gridDim.x) {}
    }
    ptx::sync_block();
    if (threadIdx.x == 1023) ptx::atomic_add(out + 1, ptx::ld_acquire_gpu(out));
  )",
                          1024),
                1024, 0);
  kernel.config.grid[0] = 32;
  std::vector<u32> in(1), out(2);
  kernel.run(in, out, 0);
  EXPECT_EQ(out[1], 32u * 32u);
}

TEST(emu_scheduler, more_waiting_blocks_than_the_device_holds_are_a_livelock) {
  DeviceInfo info;
  info.sms = 1;
  info.threads_sm = 128;
  Kernel kernel(plain(),
                kernel_of(R"(
    u32* out = static_cast<u32*>(p.out);
    if (threadIdx.x == 0) {
      ptx::atomic_add(out, 1u);
      while (ptx::ld_acquire_gpu(out) != gridDim.x) {}
    }
  )",
                          64),
                64, 0, info);
  kernel.config.grid[0] = 8;
  std::vector<u32> in(1), out(1);
  try {
    kernel.run(in, out, 0);
    FAIL() << "ran";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), StartsWith("LIVELOCK"));
    EXPECT_THAT(error.what(), HasSubstr("blocks of the grid have not started: the device holds 2 at once"));
  }
}

TEST(emu_scheduler, a_deadlock_names_warps_and_reasons) {
  const std::string report = report_of("if (threadIdx.x >= 32) ptx::bar_sync(3, 64); else ptx::bar_sync(4, 64);");
  EXPECT_THAT(report, StartsWith("DEADLOCK: no thread can go on:"));
  EXPECT_THAT(report, HasSubstr("32 threads of block (0,0,0) warp  0: barrier 4"));
  EXPECT_THAT(report, HasSubstr("32 threads of block (0,0,0) warp  1: barrier 3"));
  EXPECT_THAT(report, HasSubstr("[32 of 64 threads arrived]"));
}

TEST(emu_scheduler, a_lane_missing_from_a_collective_is_named) {
  const std::string report = report_of("if (ptx::lane_id() != 5) ptx::ballot(true); else ptx::sync_block();", 32);
  EXPECT_THAT(report, HasSubstr("ballot with mask ffffffff [lanes 00000020 have not arrived]"));
}

TEST(emu_scheduler, two_barriers_in_one_warp_are_a_divergence) {
  EXPECT_THAT(report_of("if (threadIdx.x & 1)\n ptx::sync_block();\n else\n ptx::sync_block();"), StartsWith("BARRIER"));
}

TEST(emu_scheduler, exited_threads_are_not_waited_for) {
  EXPECT_EQ(report_of("if (threadIdx.x >= 40) return; ptx::sync_block(); ptx::sync_warp(); ptx::ballot(true);", 64), "");
  EXPECT_EQ(report_of("ptx::sync_block(); ptx::shfl_xor(1.0f, 1);", 48), "") << "a partial warp";
}

TEST(emu_scheduler, sixteen_pairs_of_lanes_meet_at_once) {
  EXPECT_EQ(
      report_of("ptx::sync_warp(0x10001u << (ptx::lane_id() & 15)); ptx::shfl_xor(1u, 16, 32, 0x10001u << (ptx::lane_id() & 15));", 32),
      "");
}

TEST(emu_scheduler, matrix_operations_need_whole_warps) {
  EXPECT_THAT(report_of("f32 d[4]; u32 a[4], b[2]; ptx::mma_m16n8k16_bf16(d, a, b);", 48), StartsWith("DIVERGENCE"));
}

TEST(emu_scheduler, an_invalid_access_is_a_report_not_a_crash) {
  const std::string report = report_of("if (threadIdx.x == 37) *(volatile int*)16 = 1;");
  EXPECT_THAT(report, StartsWith("FAULT block (0,0,0) thread 37 (warp 1 lane 5): invalid access at 0x10"));
  EXPECT_THAT(report_of("static_cast<i32*>(p.out)[0] = 7 / p.n;"), StartsWith("FAULT"));
  EXPECT_THAT(report_of("QN_SMEM(s); s[1024 + threadIdx.x] = 1;"), HasSubstr("smem+1024; the block has 1024 bytes"));
  EXPECT_THAT(report_of("volatile u8 big[70000]; big[0] = 1; big[60000] = 1;"), StartsWith("STACK"));
  EXPECT_EQ(report_of("ptx::sync_block();"), "") << "the worker is usable again";
}

TEST(emu_scheduler, misaligned_accesses_are_reported) {
  EXPECT_THAT(report_of("ptx::ld_global<u32x4>(static_cast<const u8*>(p.in) + 8);"), StartsWith("MISALIGNED"));
  EXPECT_THAT(report_of("QN_SMEM(s); u32 r[4]; ptx::ldmatrix_x4(r, ptx::smem_address(s) + 4);"), StartsWith("MISALIGNED"));
  EXPECT_THAT(report_of("QN_SMEM(s); u32 r[4]; ptx::ldmatrix_x4(r, ptx::smem_address(s) + 1024);"), StartsWith("SMEM-OOB"));
}

TEST(emu_scheduler, shared_memory_starts_as_nan) {
  const std::string body =
      "QN_SMEM(s); static_cast<u32*>(p.out)[threadIdx.x] = ptx::ld_shared<u32>(s + 4 * threadIdx.x);"
      "ptx::sync_block(); ptx::st_shared<u32>(s + 4 * threadIdx.x, 0);";
  Kernel kernel(plain(), kernel_of(body, 64), 64, 1024);
  kernel.config.grid[0] = 3;
  std::vector<u32> in(1), out(64);
  kernel.run(in, out, 0);
  EXPECT_THAT(out, ::testing::Each(0xffffffffu));
}

TEST(emu_scheduler, indices_and_sizes) {
  Kernel kernel(plain(),
                kernel_of(R"(
    u32* out = static_cast<u32*>(p.out);
    if (threadIdx.x == 33) {
      const u32 linear = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
      out[linear] = blockIdx.x + 10 * blockIdx.y + 100 * blockIdx.z + 1000 * blockDim.x + 1000000 * ptx::warp_id();
    }
  )",
                          64),
                64, 0);
  kernel.config.grid[0] = 3, kernel.config.grid[1] = 2, kernel.config.grid[2] = 4;
  std::vector<u32> in(1), out(24);
  kernel.run(in, out, 0);
  for (u32 i = 0; i < 24; ++i) EXPECT_EQ(out[i], i % 3 + i / 3 % 2 * 10 + i / 6 * 100 + 64000 + 1000000);
}

TEST(emu_scheduler, one_seed_replays) {
  World world = plain();
  world.options = {AsyncPolicy::random, SchedulePolicy::shuffled, 5, false, 1};
  const std::string body = "u32* out = static_cast<u32*>(p.out); out[1 + ptx::atomic_add(out, 1u)] = threadIdx.x;";
  std::vector<std::vector<u32>> orders;
  for (const u64 seed : {5, 5, 6}) {
    world.options.seed = seed;
    Kernel kernel(world, kernel_of(body, 64), 64, 0);
    std::vector<u32> in(1), out(65);
    kernel.run(in, out, 0);
    orders.push_back(out);
  }
  EXPECT_EQ(orders[0], orders[1]);
  EXPECT_NE(orders[0], orders[2]);
}

TEST(emu_scheduler, launches_from_several_threads) {
  Kernel kernel(plain(), kernel_of("ptx::atomic_add(static_cast<u32*>(p.out), 1u); ptx::sync_block();", 64), 64, 0);
  kernel.config.grid[0] = 20;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int repeat = 0; repeat < 20; ++repeat) {
        std::vector<u32> in(1), out(1);
        kernel.run(in, out, 0);
        EXPECT_EQ(out[0], 20u * 64u);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(emu_scheduler, faults_outside_of_kernels_go_to_the_handler_before) {
  report_of("*(volatile int*)16 = 1;");  // installs the emulator's handler
  EXPECT_EXIT(
      {
        volatile int* nowhere = nullptr;
        *nowhere = 1;
      },
      ::testing::KilledBySignal(SIGSEGV), "");
}

}  // namespace
}  // namespace quern::emu
