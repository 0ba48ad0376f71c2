// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/device/cuda_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "quern/base/error.h"

namespace quern {
namespace {

using testing::HasSubstr;

class device_cuda : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "needs a GPU";
    device_ = &device_from_name("cuda");
    stream_ = device_->create_stream();
  }
  void TearDown() override {
    if (device_) device_->destroy(stream_);
  }
  std::string error_of(auto&& call) {
    try {
      call();
    } catch (const Error& error) { return std::string(name(error.kind())) + ": " + error.what(); }
    return "no error";
  }
  Device* device_ = nullptr;
  Stream stream_;
};

TEST(device_cuda_missing, is_an_error_that_says_why) {
  if (cuda_device_count() > 0) GTEST_SKIP() << "needs a machine without a GPU";
  try {
    CudaDevice device(0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
    EXPECT_THAT(error.what(), HasSubstr("no usable CUDA GPU: "));
  }
}

TEST_F(device_cuda, describes_itself) {
  const DeviceInfo& info = device_->info();
  EXPECT_GE(info.arch.number, 70);
  EXPECT_GT(info.sms, 0);
  EXPECT_LT(info.smem_block, info.smem_sm);
  EXPECT_EQ(info.emulated, 0);
  RecordProperty("device", std::string(info.name) + " " + info.arch.name() + " sms " + std::to_string(info.sms) + " smem " +
                               std::to_string(info.smem_block) + "/" + std::to_string(info.smem_sm) + " l2 " +
                               std::to_string(info.l2_bytes) + " memory " + std::to_string(info.memory_bytes));
  for (const Arch& arch : known_archs()) {
    const DeviceInfo known = device_info_of(arch);
    if (std::string(known.name) != info.name) continue;
    EXPECT_EQ(known.arch, info.arch);
    EXPECT_EQ(known.sms, info.sms);
    EXPECT_EQ(known.smem_block, info.smem_block);
    EXPECT_EQ(known.smem_sm, info.smem_sm);
    EXPECT_EQ(known.threads_sm, info.threads_sm);
    EXPECT_EQ(known.l2_bytes, info.l2_bytes);
  }
}

TEST_F(device_cuda, copies_and_fills) {
  std::vector<u8> source(100000), back(source.size());
  for (size_t i = 0; i < source.size(); ++i) source[i] = u8(i * 7);
  void* one = device_->allocate(source.size(), "one");
  void* two = device_->allocate_async(source.size(), stream_);
  device_->copy(one, source.data(), source.size(), stream_);
  device_->copy(two, one, source.size(), stream_);
  device_->fill(two, 0xab, 1000, stream_);
  device_->copy(back.data(), two, back.size(), stream_);
  device_->synchronize(stream_);
  for (size_t i = 0; i < back.size(); ++i) ASSERT_EQ(back[i], i < 1000 ? 0xab : source[i]) << i;
  device_->release_async(two, stream_);
  device_->release(one);
}

TEST_F(device_cuda, times_with_events) {
  void* memory = device_->allocate(64 << 20, "memory");
  const Event from = device_->create_event(), to = device_->create_event();
  device_->record(from, stream_);
  for (int i = 0; i < 10; ++i) device_->fill(memory, 0, 64 << 20, stream_);
  device_->record(to, stream_);
  const double us = device_->elapsed_us(from, to);
  EXPECT_GT(us, 20);
  EXPECT_LT(us, 1e6);
  const Stream other = device_->create_stream();
  device_->wait(other, to);
  device_->synchronize(other);
  device_->destroy(other);
  device_->destroy(from);
  device_->destroy(to);
  device_->release(memory);
}

TEST_F(device_cuda, fills_rows_and_leaves_what_is_between_them) {
  std::vector<u8> seen(40);
  u8* memory = static_cast<u8*>(device_->allocate(seen.size(), "memory"));
  for (const i64 pitch : {8, 2}) {  // rows that overlap too
    device_->fill(memory, 1, seen.size(), stream_);
    device_->fill_rows(memory + 2, 9, 3, 4, pitch, stream_);
    device_->copy(seen.data(), memory, seen.size(), stream_);
    device_->synchronize(stream_);
    for (i64 i = 0; i < i64(seen.size()); ++i) {
      bool filled = false;
      for (i64 row = 0; row < 4; ++row) filled = filled || (i >= 2 + row * pitch && i < 5 + row * pitch);
      EXPECT_EQ(seen[size_t(i)], filled ? 9 : 1) << i << ", pitch " << pitch;
    }
  }
  device_->release(memory);
}

TEST_F(device_cuda, captures_and_replays) {
  u8* memory = static_cast<u8*>(device_->allocate(2, "memory"));
  device_->fill(memory, 1, 2, stream_);
  device_->synchronize(stream_);
  EXPECT_FALSE(device_->capturing(stream_));
  device_->begin_capture(stream_);
  EXPECT_TRUE(device_->capturing(stream_));
  device_->fill(memory, 9, 1, stream_);
  EXPECT_THAT(error_of([&] { device_->allocate_async(100, stream_); }), HasSubstr("frozen: a workspace of 100 bytes"));
  EXPECT_THAT(error_of([&] {
                u8 host = 0;
                device_->copy(memory, &host, 1, stream_);
              }),
              HasSubstr("cannot be captured"));
  void* graph = device_->end_capture(stream_);
  u8 seen[2];
  const auto read = [&] {
    device_->copy(seen, memory, 2, stream_);
    device_->synchronize(stream_);
    return seen[0] * 256 + seen[1];
  };
  EXPECT_EQ(read(), 0x0101) << "captured work does not run";
  device_->replay(graph, stream_);
  EXPECT_EQ(read(), 0x0901);
  device_->destroy_graph(graph);
  device_->release(memory);
  EXPECT_THAT(error_of([&] { device_->begin_capture({}); }), HasSubstr("the default stream cannot be captured"));
}

TEST_F(device_cuda, restores_the_context_of_each_thread) {
  const cuda::Driver& driver = cuda::driver();
  std::thread([&] {
    cuda::Context current = nullptr;
    driver.ctx_get_current(&current);
    EXPECT_EQ(current, nullptr);
    device_->release(device_->allocate(16, "memory"));
    driver.ctx_get_current(&current);
    EXPECT_EQ(current, nullptr);
    const CudaDevice::ContextGuard guard(cuda_device(*device_, "test"));
    driver.ctx_get_current(&current);
    EXPECT_NE(current, nullptr);
  }).join();
}

TEST_F(device_cuda, errors_name_the_call) {
  EXPECT_THAT(
      error_of([&] { device_->allocate(size_t(1) << 60, "huge"); }),
      testing::AllOf(HasSubstr("device: cuda:0: cuMemAlloc of "), HasSubstr("for `huge`"), HasSubstr("CUDA_ERROR_OUT_OF_MEMORY (")));
  EXPECT_THAT(error_of([&] { device_->load(ImageKind::cubin, std::vector<char>(64), "", "kernel", 0); }),
              HasSubstr("cuModuleLoadData of kernel failed: CUDA_ERROR_"));
}

TEST_F(device_cuda, makes_tensor_maps_and_names_the_broken_rule) {
  void* memory = device_->allocate(1 << 20, "memory");
  TensorMapSpec spec = {.dtype = DType::bf16,
                        .rank = 2,
                        .base = memory,
                        .shape = {512, 100},
                        .stride_bytes = {1024},
                        .box = {64, 64},
                        .swizzle = Swizzle::b128};
  EXPECT_NE(device_->make_tensor_map(spec).opaque[0], 0u);
  spec.stride_bytes[0] = 1020;
  EXPECT_THAT(error_of([&] { device_->make_tensor_map(spec); }), HasSubstr("a stride is not a multiple of 16 bytes"));
  spec.stride_bytes[0] = 1024;
  spec.box[0] = 128;
  EXPECT_THAT(error_of([&] { device_->make_tensor_map(spec); }), HasSubstr("inner extent exceeds the swizzle"));
  device_->release(memory);
}

}  // namespace
}  // namespace quern
