// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What the benchmarks take from NVIDIA's libraries: kernel times, the cuBLASLt peer, clocks.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "quern/base/error.h"
#include "quern/bench/cublas.h"
#include "quern/bench/gpu_timer.h"
#include "quern/bench/nvml.h"
#include "quern/bench/stream.h"

namespace quern {
namespace {

#define QN_NEEDS_GPU() \
  if (cuda_device_count() == 0) GTEST_SKIP() << "needs a GPU"

TEST(bench_peers, say_why_they_are_missing) {
  if (cuda_device_count() > 0) GTEST_SKIP() << "needs a machine without a GPU";
  std::string why;
  EXPECT_FALSE(cupti_available(&why));
  EXPECT_NE(why, "");
  EXPECT_STREQ(KernelTimer::name(), "CUDA events");
  EXPECT_FALSE(cublaslt_available(&why));
  EXPECT_NE(why, "");
  Device& emulated = device_of({});
  EXPECT_THROW(KernelTimer(emulated, {}), Error);
  EXPECT_THROW(CublasLtMatmul(emulated, 16, 16, 16, DType::bf16, DType::bf16), Error);
  EXPECT_THROW(gpu_state(emulated), Error);
}

TEST(bench_nvml, names_throttle_reasons) {
  EXPECT_EQ(throttle_text(0), "");
  EXPECT_EQ(throttle_text(0x44), "power cap, thermal (hardware)");
  EXPECT_EQ(text({.sm_mhz = 1980,
                  .sm_max_mhz = 1980,
                  .memory_mhz = 3201,
                  .memory_max_mhz = 3201,
                  .power_w = 612.4,
                  .power_limit_w = 700,
                  .temperature_c = 54,
                  .throttle_bits = 4,
                  .throttle = "power cap"}),
            "1980 of 1980 MHz, memory 3201 of 3201 MHz, 612 of 700 W, 54 C, power cap");
}

TEST(bench_nvml, tells_the_state_of_the_gpu) {
  QN_NEEDS_GPU();
  std::string why;
  ASSERT_TRUE(nvml_available(&why)) << why;
  const GpuState state = gpu_state(device_from_name("cuda"));
  EXPECT_GT(state.sm_max_mhz, 500u);
  EXPECT_GT(state.memory_mhz, 0u);
  EXPECT_NE(nvml_driver_version(), "");
  RecordProperty("state", text(state));
}

// Ones times ones: every element of d is k, whatever the layout; a[0, :] = 2 tells rows from columns.
TEST(bench_cublaslt, multiplies_and_is_timed_by_kernel) {
  QN_NEEDS_GPU();
  std::string why;
  if (!cublaslt_available(&why)) GTEST_SKIP() << "needs cuBLASLt: " << why;
  Device& device = device_from_name("cuda");
  constexpr i64 m = 256, n = 512, k = 128;
  constexpr u16 kOne = 0x3f80, kTwo = 0x4000;  // bf16
  std::vector<u16> a(m * k, kOne), b(n * k, kOne);
  for (i64 i = 0; i < k; ++i) a[size_t(i)] = kTwo;
  std::vector<float> d(m * n);
  void* on_device[] = {device.allocate(a.size() * 2, "a"), device.allocate(b.size() * 2, "b"), device.allocate(d.size() * 4, "d"),
                       device.allocate(CublasLtMatmul::kWorkspaceBytes, "workspace")};
  const Stream stream = device.create_stream();
  device.copy(on_device[0], a.data(), a.size() * 2, stream);
  device.copy(on_device[1], b.data(), b.size() * 2, stream);
  CublasLtMatmul matmul(device, m, n, k, DType::bf16, DType::f32);
  matmul.run(on_device[0], on_device[1], on_device[2], on_device[3], stream);

  KernelTimer timer(device, stream);
  timer.start();
  for (int i = 0; i < 5; ++i) matmul.run(on_device[0], on_device[1], on_device[2], on_device[3], stream);
  const std::vector<KernelRecord> records = timer.stop();
  if (cupti_available(&why)) {
    EXPECT_GE(records.size(), 5u);
  } else {
    EXPECT_EQ(records.size(), 1u) << why;
  }
  for (const KernelRecord& record : records) {
    EXPECT_GT(record.us(), 0.5) << record.name;
    EXPECT_LT(record.us(), 1000) << record.name;
  }

  device.copy(d.data(), on_device[2], d.size() * 4, stream);
  device.synchronize(stream);
  for (i64 row = 0; row < m; ++row)
    for (i64 column = 0; column < n; ++column) ASSERT_EQ(d[size_t(row * n + column)], row == 0 ? 2 * k : k) << row << ", " << column;
  for (void* pointer : on_device) device.release(pointer);
  device.destroy(stream);
}

/// Small integers, so that sums are exact.
TEST(bench_cublaslt, takes_every_layout) {
  QN_NEEDS_GPU();
  std::string why;
  if (!cublaslt_available(&why)) GTEST_SKIP() << "needs cuBLASLt: " << why;
  Device& device = device_from_name("cuda");
  constexpr i64 m = 64, n = 128, k = 192;
  const auto element = [](i64 row, i64 column) { return float((5 * row + 3 * column) % 11) - 5; };
  const bench::DeviceMemory workspace(device, CublasLtMatmul::kWorkspaceBytes, "workspace"), d(device, m * n * 4, "d");
  for (const Major a_major : {Major::k, Major::mn})
    for (const Major b_major : {Major::k, Major::mn}) {
      const auto upload = [&](i64 rows, Major major) {
        std::vector<u16> host(size_t(rows * k));
        for (i64 r = 0; r < rows; ++r)
          for (i64 x = 0; x < k; ++x)
            host[size_t(major == Major::k ? r * k + x : x * rows + r)] = u16(std::bit_cast<u32>(element(r, x)) >> 16);
        bench::DeviceMemory memory(device, host.size() * 2, "operand");
        device.copy(memory.data(), host.data(), host.size() * 2, {});
        device.synchronize({});
        return memory;
      };
      const bench::DeviceMemory a = upload(m, a_major), b = upload(n, b_major);
      CublasLtMatmul(device, m, n, k, DType::bf16, DType::f32, a_major, b_major).run(a.data(), b.data(), d.data(), workspace.data(), {});
      std::vector<float> result(size_t(m * n));
      device.copy(result.data(), d.data(), result.size() * 4, {});
      device.synchronize({});
      for (i64 i = 0; i < m; ++i)
        for (i64 j = 0; j < n; ++j) {
          float sum = 0;
          for (i64 x = 0; x < k; ++x) sum += element(i, x) * element(j, x);
          ASSERT_EQ(result[size_t(i * n + j)], sum) << i << ", " << j << " majors " << int(a_major) << int(b_major);
        }
    }
}

}  // namespace
}  // namespace quern
