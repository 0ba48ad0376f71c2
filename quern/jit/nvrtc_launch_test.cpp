// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// A kernel from NVRTC through CudaDevice: load, launch attributes, capture, several threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "quern/base/error.h"
#include "quern/jit/compiler_nvrtc.h"

namespace quern::jit {
namespace {

using testing::HasSubstr;

struct Params {
  u32* out;
  u32 value;
  u32 smem;
};
constexpr char kSource[] = R"(
struct Params { unsigned* out; unsigned value, smem; };
// out[block] = value + the last word of the block's dynamic shared memory + the number of blocks of its cluster
extern "C" __global__ void mark(const __grid_constant__ Params p) {
  extern __shared__ unsigned shared[];
  unsigned blocks = 1;
#if __CUDA_ARCH__ >= 900
  asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(blocks));
#endif
  if (threadIdx.x == 0) shared[p.smem / 4 - 1] = p.smem;
  __syncthreads();
  if (threadIdx.x == blockDim.x - 1) p.out[blockIdx.x] = p.value + shared[p.smem / 4 - 1] + blocks;
})";

TEST(jit_nvrtc_mark, compiles_for_every_arch) {
  for (const Arch& arch : known_archs()) {
    NvrtcCompiler* compiler = NvrtcCompiler::get(arch);
    if (!compiler) GTEST_SKIP() << "needs NVRTC";
    const CompileRequest request = {.name = "mark", .source = kSource, .headers = {}, .arch = arch, .extra_options = {}};
    EXPECT_GT(compiler->compile(request).registers, 0) << arch.name();
  }
}

class jit_nvrtc_launch : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "needs a GPU";
    device_ = &device_from_name("cuda");
    NvrtcCompiler* compiler = NvrtcCompiler::get(device_->info().arch);
    if (!compiler) GTEST_SKIP() << "needs NVRTC";
    image_ = compiler->compile({.name = "mark", .source = kSource, .headers = {}, .arch = device_->info().arch, .extra_options = {}}).image;
    stream_ = device_->create_stream();
    out_ = static_cast<u32*>(device_->allocate(kBlocks * 4, "out"));
    device_->fill(out_, 0, kBlocks * 4, stream_);
  }
  void TearDown() override {
    if (!out_) return;
    device_->release(out_);
    device_->destroy(stream_);
  }
  Function load(int smem) { return device_->load(ImageKind::cubin, image_, "", "mark", smem); }
  void launch(Function function, const LaunchConfig& config, u32 value, u32 at = 0) {
    const Params params{out_ + at, value, config.smem};
    device_->launch(function, config, &params, sizeof params, stream_);
  }
  std::vector<u32> read() {
    std::vector<u32> all(kBlocks);
    device_->copy(all.data(), out_, kBlocks * 4, stream_);
    device_->synchronize(stream_);
    return all;
  }
  static constexpr u32 kBlocks = 16;
  Device* device_ = nullptr;
  std::vector<char> image_;
  Stream stream_;
  u32* out_ = nullptr;
};

TEST_F(jit_nvrtc_launch, passes_parameters_and_shared_memory) {
  const int smem = device_->info().smem_block;
  const Function function = load(smem);
  launch(function, {.grid = {kBlocks, 1, 1}, .threads = 128, .smem = u32(smem)}, 1000);
  EXPECT_EQ(read(), std::vector<u32>(kBlocks, 1001 + u32(smem)));
  device_->unload(function);
}

TEST_F(jit_nvrtc_launch, makes_clusters_and_programmatic_launches) {
  if (device_->info().arch.number < 90) GTEST_SKIP() << "needs a GPU with clusters";
  const Function function = load(64);
  for (const u32 cluster : {1u, 2u, 4u, 8u}) {
    launch(function, {.grid = {kBlocks, 1, 1}, .cluster = cluster, .threads = 64, .smem = 64}, 5);
    EXPECT_EQ(read(), std::vector<u32>(kBlocks, 5 + 64 + cluster));
    // Each writes half: the kernel does not wait for its predecessor.
    const LaunchConfig half = {.grid = {kBlocks / 2, 1, 1}, .cluster = cluster, .threads = 64, .smem = 64, .pdl = true};
    launch(function, half, 7);
    launch(function, half, 7, kBlocks / 2);
    EXPECT_EQ(read(), std::vector<u32>(kBlocks, 7 + 64 + cluster));
  }
  device_->unload(function);
}

TEST_F(jit_nvrtc_launch, is_captured_and_loads_leave_the_capture_valid) {
  const Function function = load(64);
  device_->begin_capture(stream_);
  launch(function, {.grid = {kBlocks, 1, 1}, .threads = 32, .smem = 64, .pdl = device_->info().arch.number >= 90}, 3);
  const Function second = load(64);
  launch(second, {.grid = {1, 1, 1}, .threads = 32, .smem = 64}, 4);
  void* graph = device_->end_capture(stream_);
  EXPECT_EQ(read(), std::vector<u32>(kBlocks, 0));
  device_->replay(graph, stream_);
  std::vector<u32> expected(kBlocks, 3 + 64 + 1);
  expected[0] = 4 + 64 + 1;
  EXPECT_EQ(read(), expected);
  device_->destroy_graph(graph);
  device_->unload(second);
  device_->unload(function);
}

TEST_F(jit_nvrtc_launch, errors_name_the_kernel) {
  const auto error_of = [](auto&& call) -> std::string {
    try {
      call();
    } catch (const Error& error) { return error.what(); }
    return "no error";
  };
  const Function function = load(64);
  EXPECT_THAT(error_of([&] { launch(function, {.grid = {1, 1, 1}, .threads = 5000, .smem = 64}, 1); }),
              testing::AllOf(HasSubstr("cuLaunchKernelEx of mark (grid 1x1x1"), HasSubstr("5000 threads"), HasSubstr("CUDA_ERROR_")));
  EXPECT_THAT(error_of([&] { device_->load(ImageKind::cubin, image_, "", "absent", 0); }), HasSubstr("cuModuleGetFunction of absent"));
  EXPECT_THAT(error_of([&] { load(1 << 20); }), HasSubstr("of mark (1048576 B of shared memory)"));
  device_->unload(function);
}

TEST_F(jit_nvrtc_launch, works_from_many_threads_and_is_cheap) {
  const Function function = load(64);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) launch(function, {.grid = {kBlocks, 1, 1}, .threads = 32, .smem = 64}, 8);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(read(), std::vector<u32>(kBlocks, 8 + 64 + 1));
  const auto microseconds = [&] {
    device_->synchronize(stream_);
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 500; ++i) launch(function, {.grid = {kBlocks, 1, 1}, .threads = 32, .smem = 64}, 8);
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() / 500;
  };
  microseconds();
  RecordProperty("launch_us", std::to_string(microseconds()));
  device_->unload(function);
}

}  // namespace
}  // namespace quern::jit
