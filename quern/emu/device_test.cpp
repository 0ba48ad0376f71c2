// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include <gmock/gmock.h>

#include "quern/base/error.h"
#include "quern/emu/memory_map.h"
#include "quern/kit/conform/runner.h"

namespace quern::emu {
namespace {

using ::testing::HasSubstr;

template <class Call>
Error error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) { return error; }
  ADD_FAILURE() << "no error";
  return Error(ErrorKind::internal, "");
}

struct Counter {
  std::unique_ptr<conform::Kernel> kernel;
  u32* out;
  conform::Params params;
  Counter() {
    const char* text =
        "#include \"quern/kit/conform/params.h\"\n#include \"quern/kit/world.cuh\"\n"
        "QN_ENTRY(counter, quern::conform::Params, 32, 1, quern::ptx::atomic_add(static_cast<quern::u32*>(p.out), "
        "p.n))\n";
    kernel = std::make_unique<conform::Kernel>(conform::World{"plain", conform::host_compilers().at(0), {}}, text, 32, 0);
    out = static_cast<u32*>(kernel->device().allocate(4, "out"));
    *out = 0;
    params = {nullptr, out, 1};
  }
  ~Counter() { kernel->device().release(out); }
  void launch(LaunchConfig config, Stream stream = {}) {
    kernel->device().launch(kernel->function(), config, &params, sizeof(params), stream);
  }
};

TEST(emu_device, impossible_launches_are_errors) {
  Counter counter;
  LaunchConfig config = counter.kernel->config;
  config.threads = 64;
  EXPECT_THAT(error_of([&] { counter.launch(config); }).what(), HasSubstr("64 threads, the kernel was compiled for 32"));
  config = counter.kernel->config;
  config.grid[1] = 0;
  EXPECT_THAT(error_of([&] { counter.launch(config); }).what(), HasSubstr("an empty grid"));
  config = counter.kernel->config;
  config.smem = 300000;
  EXPECT_THAT(error_of([&] { counter.launch(config); }).what(), HasSubstr("300000 B of shared memory"));
  config = counter.kernel->config;
  config.grid[0] = 3, config.cluster = 2;
  EXPECT_THAT(error_of([&] { counter.launch(config); }).what(), HasSubstr("clusters of 2"));
  config.grid[1] = 3, config.cluster = {1, 2};
  EXPECT_THAT(error_of([&] { counter.launch(config); }).what(), HasSubstr("clusters of 1x2x1 blocks in a grid of 3x3x1"));
  config.grid[1] = 8, config.grid[2] = 3, config.cluster = {1, 8, 3};
  EXPECT_THAT(error_of([&] { counter.launch(config); }).what(), HasSubstr("clusters of 1x8x3"));
  EXPECT_EQ(*counter.out, 0u);
}

TEST(emu_device, a_captured_graph_replays_with_the_parameters_of_capture) {
  Counter counter;
  Device& device = counter.kernel->device();
  const Stream stream = device.create_stream();
  device.begin_capture(stream);
  EXPECT_TRUE(device.capturing(stream));
  EXPECT_FALSE(device.capturing({}));
  device.fill(counter.out, 0, 4, stream);
  counter.launch(counter.kernel->config, stream);
  EXPECT_EQ(error_of([&] { device.allocate_async(16, stream); }).kind(), ErrorKind::frozen);
  void* graph = device.end_capture(stream);
  counter.params.n = 100;  // changes nothing
  EXPECT_EQ(*counter.out, 0u) << "capturing runs nothing";
  *counter.out = 7;
  device.replay(graph, stream);
  device.replay(graph, stream);
  EXPECT_EQ(*counter.out, 32u);
  device.destroy_graph(graph);
  device.destroy(stream);
}

TEST(emu_device, fresh_memory_is_nan) {
  Counter counter;
  u8* memory = static_cast<u8*>(counter.kernel->device().allocate(100, "x"));
  EXPECT_EQ(reinterpret_cast<u64>(memory) % 256, 0u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(memory[i], 0xff);
  counter.kernel->device().release(memory);
}

TEST(emu_device, unusable_images_are_errors) {
  Counter counter;
  Device& device = counter.kernel->device();
  EXPECT_EQ(error_of([&] { device.load(ImageKind::cubin, {}, "", "x", 0); }).kind(), ErrorKind::device);
  EXPECT_EQ(error_of([&] { device.load(ImageKind::shared_object, {}, "/nowhere.so", "x", 0); }).kind(), ErrorKind::unsupported);
}

TEST(emu_device, refuses_tensor_maps_that_cuda_would_refuse) {
  const auto device = make_emulated_device(DeviceInfo{}, EmulatedOptions{});
  alignas(16) static float data[64 * 64];
  const TensorMapSpec good{DType::f32, 2, data, {64, 64}, {256}, {32, 8}, Swizzle::b128};
  EXPECT_NO_THROW(device->make_tensor_map(good));
  const auto problem = [&](auto change) {
    TensorMapSpec spec = good;
    change(spec);
    return std::string(error_of([&] { device->make_tensor_map(spec); }).what());
  };
  EXPECT_NE(problem([](TensorMapSpec& s) { s.box[0] = 64; }).find("inner extent exceeds the swizzle"), std::string::npos);
  EXPECT_NE(problem([](TensorMapSpec& s) { s.stride_bytes[0] = 260; }).find("not a multiple of 16"), std::string::npos);
  EXPECT_NE(problem([](TensorMapSpec& s) { s.base = data + 1; }).find("base address"), std::string::npos);
  EXPECT_NE(problem([](TensorMapSpec& s) { s.rank = 6; }).find("rank 6"), std::string::npos);
}

// ---- the memory of a call -------------------------------------------------------------------------------------------

TEST(emu_memory_map, gaps_between_rows_are_outside) {
  float data[40];
  TensorView rows(data, DType::f32, {3, 8});
  rows.strides[0] = 12;
  const MemoryRange range{rows, "x", MemoryRange::Access::read};
  MemoryMap map({&range, 1}, "op");
  const u64 base = reinterpret_cast<u64>(data);
  MemoryMap::Region* region = map.find(base);
  ASSERT_NE(region, nullptr);
  for (u64 i = 0; i < 32 * 4; ++i) EXPECT_EQ(bool(region->states[i] & kInside), i / 4 % 12 < 8) << i;
  EXPECT_EQ(region->high - region->low, 32u * 4u);
  EXPECT_EQ(map.find(base + 32 * 4), nullptr);
  EXPECT_EQ(map.describe(base + 32 * 4), "0 bytes past the end of 'x' f32 [3, 8]");
  EXPECT_EQ(map.describe(base - 4), "4 bytes before 'x' f32 [3, 8]");
  EXPECT_EQ(map.describe(base + 20), "'x' f32 [3, 8] + 0x14");
  EXPECT_EQ(region->cells, nullptr) << "inputs cannot race";
}

TEST(emu_memory_map, interleaved_tensors_share_a_region) {
  u16 data[64] = {};
  TensorView keys(data, DType::bf16, {4, 8}), values(data + 8, DType::bf16, {4, 8});
  keys.strides[0] = values.strides[0] = 16;
  const MemoryRange ranges[] = {{keys, "k", MemoryRange::Access::read}, {values, "v", MemoryRange::Access::write}};
  MemoryMap map(ranges, "op");
  MemoryMap::Region* region = map.find(reinterpret_cast<u64>(data));
  ASSERT_NE(region, nullptr);
  for (u64 i = 0; i < 120; ++i) {
    const bool is_value = i / 16 % 2;
    EXPECT_EQ(bool(region->states[i] & kWritable), is_value);
    EXPECT_EQ(bool(region->states[i] & kInitialised), !is_value);
  }
  map.mark_initialised(data + 8, 4);
  EXPECT_TRUE(region->states[16] & kInitialised);
  EXPECT_FALSE(region->states[20] & kInitialised);
}

TEST(emu_memory_map, absent_and_empty_tensors_are_no_ranges) {
  float data[4];
  const MemoryRange ranges[] = {{TensorView(), "a", MemoryRange::Access::read},
                                {TensorView(data, DType::f32, {0, 4}), "b", MemoryRange::Access::write}};
  MemoryMap map(ranges, "op");
  EXPECT_EQ(map.find(reinterpret_cast<u64>(data)), nullptr);
}

// ---- clocks ---------------------------------------------------------------------------------------------------------

TEST(emu_clock, barriers_lanes_and_publications) {
  std::vector<ThreadClock> clocks(128);
  std::vector<ThreadClock*> all;
  for (u32 i = 0; i < 128; ++i) {
    clocks[i].thread = i;
    all.push_back(&clocks[i]);
  }
  const Epoch first = clocks[3].epoch();
  EXPECT_FALSE(clocks[90].covers(first));
  synchronise(all.data(), 32, 128);  // a warp
  EXPECT_TRUE(clocks[31].covers(first));
  EXPECT_FALSE(clocks[32].covers(first));
  EXPECT_FALSE(clocks[31].covers(clocks[3].epoch())) << "after the meeting";
  synchronise(all.data(), 128, 128);
  EXPECT_TRUE(clocks[90].covers(first));
  // Another block learns through a publication what thread 5 knew.
  ThreadClock foreign;
  foreign.known.block = 9;
  const Epoch second = clocks[5].epoch();
  foreign.known.join(clocks[5].published());
  ++clocks[5].now;
  EXPECT_TRUE(foreign.covers(second));
  EXPECT_TRUE(foreign.covers(first));
  EXPECT_FALSE(foreign.covers(clocks[5].epoch()));
  EXPECT_FALSE(foreign.covers(clocks[6].epoch()));
}

TEST(emu_clock, an_epoch_keeps_its_parts) {
  const Epoch epoch(0xabcdef, 16383, 0x1cba987, true);
  EXPECT_EQ(epoch.block(), 0xabcdefu);
  EXPECT_EQ(epoch.thread(), 16383u);
  EXPECT_EQ(epoch.clock(), 0x1cba987u);
  EXPECT_TRUE(epoch.atomic());
  EXPECT_TRUE(epoch.same_thread(Epoch(0xabcdef, 16383, 1)));
  EXPECT_FALSE(epoch.same_thread(Epoch(0xabcdef, 16382, 0x1cba987, true)));
}

}  // namespace
}  // namespace quern::emu
