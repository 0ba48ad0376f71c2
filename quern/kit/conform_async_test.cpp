// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// mbarriers, the copy engine, tensor maps and clusters against their specification, computed here by plain indexing, in
// every world that has them.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

#include "quern/kit/conform/runner.h"
#include "quern/kit/conform/tensors.h"

namespace quern::conform {
namespace {

bool has_no_copy_engine(const World& world) { return world.compiler.empty() && device_of({DeviceType::cuda, 0}).info().arch.number < 90; }
class Async : public Conform {
 protected:
  void SetUp() override {
    if (has_no_copy_engine(GetParam())) GTEST_SKIP() << "needs a GPU of sm_90";
  }
};
INSTANTIATE_TEST_SUITE_P(Worlds, Async, ::testing::ValuesIn(worlds(1)), world_name);

/// A test a world and rank of tensors.
class Tensors : public ::testing::TestWithParam<std::tuple<World, int>> {
 protected:
  void SetUp() override {
    if (has_no_copy_engine(world())) GTEST_SKIP() << "needs a GPU of sm_90";
  }
  const World& world() const { return std::get<0>(GetParam()); }
  int rank() const { return std::get<1>(GetParam()); }
};
std::vector<std::tuple<World, int>> worlds_and_ranks() {
  std::vector<std::tuple<World, int>> all;
  for (int rank = 1; rank <= 5; ++rank)
    for (const World& world : worlds(size_t(rank))) all.emplace_back(world, rank);
  return all;
}
INSTANTIATE_TEST_SUITE_P(Worlds, Tensors, ::testing::ValuesIn(worlds_and_ranks()), [](const auto& info) {
  return std::get<0>(info.param).name + "_rank_" + std::to_string(std::get<1>(info.param));
});

template <class T>
std::vector<T> counted(size_t n, u32 factor = 2654435761u) {
  std::vector<T> out(n);
  for (size_t i = 0; i < n; ++i) out[i] = T((u32(i) + 1) * factor >> 7);
  return out;
}

TEST_P(Async, mbarriers) {
  const std::vector<u32> in = counted<u32>(32);
  Kernel kernel(GetParam(), kernel_text("mbarrier.cuh", "mbarrier_all", 128), 128, 2048);
  kernel.under_every_policy([&] {
    std::vector<u32> out(5 * 128, 0xffffffff);
    kernel.run(in, out, 0);
    for (u32 t = 0; t < 128; ++t) {
      EXPECT_EQ(out[t], 3 * ((t + 45) % 128)) << t;
      EXPECT_EQ(out[128 + t], 5 * (t >= 32 && t < 64 ? t ^ 1 : 32 + t % 32)) << t;
      EXPECT_EQ(out[256 + t], t == 64 ? 2u : 1u) << t;
      EXPECT_EQ(out[384 + t], in[t % 12]) << t;
      EXPECT_EQ(out[512 + t], 7u) << t;
    }
  });
}

TEST_P(Async, dependent_launches_add_up) {
  const std::vector<u32> in(1);
  std::vector<u32> out(256, 5);
  Kernel kernel(GetParam(), kernel_text("mbarrier.cuh", "dependent_launches", 64), 64, 0);
  kernel.config.grid[0] = 4;
  kernel.config.pdl = true;
  kernel.launches = 6;
  kernel.run(in, out, 0);
  for (const u32 value : out) EXPECT_EQ(value, 11u);
}

TEST_P(Async, bulk_copies_keep_every_byte) {
  const std::vector<u8> in = counted<u8>(4096);
  Kernel kernel(GetParam(), kernel_text("bulk.cuh", "bulk_copies", 32), 32, 8192 + 16);
  kernel.under_every_policy([&] {
    std::vector<u8> out(4096, 0xff);
    kernel.run(in, out, 0);
    for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], in[(255 - i / 16) * 16 + i % 16]) << "byte " << i;
  });
}

// ---- formats of which only small integers are used: exact in every order of sums ------------------------------------

u16 bf16_of(int value) {
  const float wide = float(value);
  u32 bits;
  std::memcpy(&bits, &wide, 4);
  return u16(bits >> 16);
}
u16 f16_of(int value) {
  if (value == 0) return 0;
  const u32 sign = value < 0 ? 0x8000 : 0;
  u32 magnitude = u32(std::abs(value));
  int exponent = 0;
  while (magnitude >> (exponent + 1)) ++exponent;
  return u16(sign | u32(exponent + 15) << 10 | (magnitude << 10 >> exponent & 0x3ff));
}
void put(std::vector<u8>& bytes, size_t element, DType type, int value) {
  if (type == DType::f32) {
    const float wide = float(value);
    std::memcpy(&bytes[4 * element], &wide, 4);
  } else if (type == DType::u8) {
    bytes[element] = u8(value);
  } else {
    const u16 half = type == DType::bf16 ? bf16_of(value) : f16_of(value);
    std::memcpy(&bytes[2 * element], &half, 2);
  }
}

TEST_P(Async, bulk_reductions_add_every_element) {
  constexpr int kBlocks = 5;
  std::vector<u8> in(2048), before(2048), expected(2048);
  for (int i = 0; i < 256; ++i) {
    const DType types[] = {DType::f32, DType::bf16, DType::f16};
    const size_t begins[] = {0, 512, 768};  // in elements of each type
    for (int k = 0; k < 3; ++k) {
      const int value = i % 23 - 11, first = i % 7;
      put(in, begins[k] + i, types[k], value);
      put(before, begins[k] + i, types[k], first);
      put(expected, begins[k] + i, types[k], first + kBlocks * value);
    }
  }
  Kernel kernel(GetParam(), kernel_text("bulk.cuh", "bulk_reductions", 32), 32, 2048);
  kernel.config.grid[0] = kBlocks;
  kernel.under_every_policy([&] {
    std::vector<u8> out = before;
    kernel.run(in, out, kBlocks);
    for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], expected[i]) << "byte " << i;
  });
}

// ---- tensors --------------------------------------------------------------------------------------------------------

const Tensor kTensors[] = {
    {DType::f32, 1, {100}, {32}, 0},
    {DType::bf16, 1, {200}, {64}, 0},
    {DType::f16, 2, {50, 9}, {16, 8}, 0},
    {DType::bf16, 2, {100, 21}, {32, 16}, 16},
    {DType::bf16, 2, {150, 37}, {64, 24}, 32},
    {DType::u8, 2, {300, 20}, {128, 16}, 0},
    {DType::f32, 3, {40, 7, 5}, {32, 4, 3}, 16},
    {DType::f16, 4, {20, 5, 4, 3}, {16, 3, 2, 2}, 0},
    {DType::f32, 5, {12, 3, 3, 3, 3}, {8, 2, 2, 2, 2}, 0},
    {DType::bf16, 5, {70, 4, 3, 3, 2}, {64, 2, 2, 2, 2}, 48},
};
Swizzle widest(const Tensor& tensor) {
  const int inner = tensor.box[0] * size_of(tensor.type);
  return inner == 32 ? Swizzle::b32 : inner == 64 ? Swizzle::b64 : inner == 128 ? Swizzle::b128 : Swizzle::none;
}

std::string print(const Tensor& tensor, Swizzle swizzle, const char* what) {
  return std::string(what) + " rank " + std::to_string(tensor.rank) + " box " + std::to_string(tensor.box[0]) + " type " +
         std::to_string(int(tensor.type)) + " swizzle " + std::to_string(int(swizzle));
}

/// Loads a box at `from`, looks at shared memory, stores it at `to`.
void copy_box(Kernel& kernel, const Tensor& tensor, Swizzle swizzle, const int* from, const int* to, bool add) {
  SCOPED_TRACE(print(tensor, swizzle, add ? "add" : "copy"));
  const int element = size_of(tensor.type), box_bytes = tensor.box_elements() * element;
  std::vector<u8> in(size_t(tensor.bytes())), before(size_t(box_bytes + tensor.bytes()), 0xa5);
  for (size_t i = 0; i < in.size() / size_t(element); ++i) put(in, i, tensor.type, int(i * 7 % 61) - 30);
  if (add)
    for (size_t i = 0; i < size_t(tensor.bytes()) / size_t(element); ++i)
      put(before, size_t(box_bytes) / size_t(element) + i, tensor.type, int(i % 13));
  std::vector<u8> expected = before;
  std::vector<u8> box(size_t(box_bytes), 0);
  for (int i = 0; i < tensor.box_elements(); ++i) {
    const i64 source = tensor.byte_of(i, from), destination = tensor.stored_byte_of(i, to);
    if (source >= 0) std::memcpy(&box[size_t(i * element)], &in[size_t(source)], size_t(element));
    for (int b = 0; b < element; ++b) expected[size_t(swizzled_place(swizzle, i * element + b))] = box[size_t(i * element + b)];
    if (destination < 0) continue;
    if (add) {
      const int was = int(destination / element) % 13, loaded = source < 0 ? 0 : int(source / element * 7 % 61) - 30;
      put(expected, size_t((box_bytes + destination) / element), tensor.type, was + loaded);
    } else {
      std::memcpy(&expected[size_t(box_bytes + destination)], &box[size_t(i * element)], size_t(element));
    }
  }
  std::vector<u8> out = before;
  kernel.run_with(in, out, [&](const void* in_memory, void* out_memory) {
    TensorParams p{};
    p.from = kernel.device().make_tensor_map(tensor.spec(in_memory, swizzle));
    p.to = kernel.device().make_tensor_map(tensor.spec(static_cast<u8*>(out_memory) + box_bytes, swizzle));
    p.in = in_memory;
    p.out = out_memory;
    for (int d = 0; d < tensor.rank; ++d) p.at[d] = from[d], p.store[d] = to[d];
    p.bytes = box_bytes;
    return p;
  });
  for (size_t i = 0; i < out.size(); ++i)
    ASSERT_EQ(out[i], expected[i]) << (int(i) < box_bytes ? "shared memory byte " : "stored byte ")
                                   << (int(i) < box_bytes ? int(i) : int(i) - box_bytes);
}

void copy_boxes(Kernel& kernel, int rank, bool add) {
  const int begin[5] = {0, 0, 0, 0, 0};
  for (const Tensor& tensor : kTensors) {
    if (tensor.rank != rank || (add && tensor.type == DType::u8)) continue;
    int inside[5], low[5], high[5];
    for (int d = 0; d < tensor.rank; ++d) {
      const int unit = d ? 1 : 16 / size_of(tensor.type);  // of a row, boxes begin at multiples of 16 bytes
      inside[d] = (tensor.shape[d] - tensor.box[d]) / 2 / unit * unit;
      low[d] = -(tensor.box[d] / 2) / unit * unit + (d ? 1 : 0);
      high[d] = (tensor.shape[d] - tensor.box[d] / 2 - d % 2) / unit * unit;
    }
    for (const Swizzle swizzle : {Swizzle::none, widest(tensor)}) {
      copy_box(kernel, tensor, swizzle, begin, inside, add);
      copy_box(kernel, tensor, swizzle, inside, high, add);
      copy_box(kernel, tensor, swizzle, high, begin, add);
      copy_box(kernel, tensor, swizzle, low, inside, add);  // only loads begin below 0
      if (swizzle == widest(tensor)) break;
    }
  }
}
std::string tma_copy_text(int rank, bool add) {
  return kernel_text("tma.cuh", "tma_copy<" + std::to_string(rank) + (add ? ", true>" : ", false>"), 32, "TensorParams");
}
TEST_P(Tensors, boxes_are_copied_with_every_swizzle) {
  Kernel kernel(world(), tma_copy_text(rank(), false), 32, 16384);
  kernel.under_every_policy([&] { copy_boxes(kernel, rank(), false); });
}
TEST_P(Tensors, boxes_are_added_with_every_swizzle) {
  Kernel kernel(world(), tma_copy_text(rank(), true), 32, 16384);
  kernel.under_every_policy([&] { copy_boxes(kernel, rank(), true); });
}

TEST_P(Tensors, a_multicast_reaches_every_block) {
  const Tensor& tensor = *std::find_if(std::rbegin(kTensors), std::rend(kTensors), [&](const Tensor& t) { return t.rank == rank(); });
  const int element = size_of(tensor.type), box_bytes = tensor.box_elements() * element, each = 2 * box_bytes + 64;
  // The second box lies right behind the first: exchanged only if it begins where the pattern does.
  const Swizzle swizzle = box_bytes % 1024 == 0 ? widest(tensor) : Swizzle::none;
  const std::vector<u8> in = counted<u8>(size_t(tensor.bytes()));
  const int at[5] = {16 / element, 1, 1, 1, 1};
  // Both blocks load the same box, and the first bytes of the tensor.
  std::vector<u8> expected(size_t(each), 0);
  for (int i = 0; i < tensor.box_elements(); ++i)
    for (int b = 0; b < element && tensor.byte_of(i, at) >= 0; ++b)
      for (int block = 0; block < 2; ++block)
        expected[size_t(block * box_bytes + swizzled_place(swizzle, i * element + b))] = in[size_t(tensor.byte_of(i, at) + b)];
  std::copy_n(in.begin(), 64, expected.begin() + 2 * box_bytes);
  Kernel kernel(world(), kernel_text("tma.cuh", "tma_multicast<" + std::to_string(rank()) + ">", 32, "TensorParams"), 32, 8192);
  kernel.config.cluster = kernel.config.grid[0] = 2;
  kernel.under_every_policy([&] {
    std::vector<u8> out(size_t(2 * each), 0xff);
    kernel.run_with(in, out, [&](const void* from, void* to) {
      TensorParams p{};
      p.from = kernel.device().make_tensor_map(tensor.spec(from, swizzle));
      p.in = from;
      p.out = to;
      std::copy(at, at + 5, p.at);
      p.bytes = box_bytes;
      return p;
    });
    for (int i = 0; i < 2 * each; ++i)
      ASSERT_EQ(out[size_t(i)], expected[size_t(i % each)]) << "block " << i / each << " byte " << i % each;
  });
}

TEST_P(Async, tensor_maps_made_on_the_device) {
  // The host's map is of 32 x 16 elements; the device moves it 64 bytes on, to 24 x 6 elements in rows of 96 bytes.
  const Tensor host{DType::u8, 2, {32, 16}, {32, 8}, 0};
  const Tensor device{DType::u8, 2, {24, 6}, {32, 8}, 64};
  ASSERT_EQ(device.stride(1), 96);
  const std::vector<u8> in = counted<u8>(1024);
  Kernel kernel(GetParam(), kernel_text("tma.cuh", "tensormap_made_on_the_device", 32, "TensorParams"), 32, 2048);
  kernel.under_every_policy([&] {
    std::vector<u8> out(256 + 2 * 256, 0xff);
    kernel.run_with(in, out, [&](const void* from, void* to) {
      TensorParams p{};
      p.from = p.to = kernel.device().make_tensor_map(host.spec(from, Swizzle::none));
      p.in = from;
      p.out = to;
      p.at[0] = 16, p.at[1] = 1;
      p.store[0] = device.shape[0], p.store[1] = device.shape[1], p.store[2] = i32(device.stride(1));
      p.bytes = 256;
      p.n = 64;
      return p;
    });
    const int at[] = {16, 1};
    for (int i = 0; i < 256; ++i) {
      const i64 replaced = device.byte_of(i, at), original = host.byte_of(i, at);
      ASSERT_EQ(out[size_t(256 + i)], replaced < 0 ? 0 : in[size_t(64 + replaced)]) << "replaced, byte " << i;
      ASSERT_EQ(out[size_t(512 + i)], original < 0 ? 0 : in[size_t(original)]) << "original, byte " << i;
    }
  });
}

TEST_P(Async, bulk_loads_see_fenced_stores) {
  const std::vector<u32> in = counted<u32>(32);
  Kernel kernel(GetParam(), kernel_text("tma.cuh", "load_after_ordinary_stores", 32), 32, 512);
  kernel.under_every_policy([&] {
    std::vector<u32> out(32, 0xffffffff);
    kernel.run(in, out, 0);
    for (u32 t = 0; t < 32; ++t) EXPECT_EQ(out[t], 2 * in[t] + 1);
  });
}

TEST_P(Async, a_pipeline_streams_tiles) {
  const Tensor tensor{DType::f32, 2, {32, 7 * 8}, {32, 8}, 0}, half{DType::f32, 2, {32, 7 * 8}, {32, 4}, 0};
  std::vector<float> in(32 * 7 * 8);
  for (size_t i = 0; i < in.size(); ++i) in[i] = float(i * 7 % 1009) - 500;
  Kernel kernel(GetParam(), kernel_text("pipeline.cuh", "stream_tiles", 96, "TensorParams"), 96, 3 * 1024 + 1024 + pipeline_bytes(3));
  for (const u32 blocks : {1u, 2u, 7u}) {
    kernel.config.grid[0] = blocks;
    kernel.under_every_policy([&] {
      std::vector<float> out(in.size(), NAN);
      kernel.run_with(in, out, [&](const void* from, void* to) {
        TensorParams p{};
        p.from = kernel.device().make_tensor_map(tensor.spec(from, Swizzle::none));
        p.to = kernel.device().make_tensor_map(half.spec(to, Swizzle::none));
        p.n = 7;
        return p;
      });
      for (size_t i = 0; i < in.size(); ++i) ASSERT_EQ(out[i], 2 * in[i] + 1) << "element " << i;
    });
  }
}

TEST_P(Async, copies_arrive_by_themselves) {
  constexpr int kTiles = 11, kWords = 48;
  const std::vector<u32> in = counted<u32>(kTiles * kWords);
  Kernel kernel(GetParam(), kernel_text("pipeline.cuh", "announce_copies", 64), 64, 4 * 3 * kWords + 128 + pipeline_bytes(3));
  kernel.under_every_policy([&] {
    std::vector<u32> out(in.size() + 32, 0xffffffff);
    kernel.run(in, out, kTiles);
    for (size_t i = 0; i < in.size(); ++i) ASSERT_EQ(out[i], 3 * in[i] + 1) << "word " << i;
    for (size_t lane = 0; lane < 32; ++lane)
      ASSERT_EQ(out[in.size() + lane], in[lane] ^ in[(kTiles - 1) * kWords + lane]) << "lane " << lane;
  });
}

// ---- clusters -------------------------------------------------------------------------------------------------------

TEST_P(Async, clusters) {
  const std::vector<u32> in = counted<u32>(128, 40503);
  Kernel kernel(GetParam(), kernel_text("cluster.cuh", "cluster_all", 32), 32, 8192);
  kernel.config.grid[0] = 8;
  kernel.config.cluster = 4;
  kernel.under_every_policy([&] {
    std::vector<u32> out(8 * 8 * 32, 0xffffffff);
    kernel.run(in, out, 0);
    for (u32 block = 0; block < 8; ++block)
      for (u32 t = 0; t < 32; ++t) {
        const u32 rank = block % 4, next = (rank + 1) % 4, before = (rank + 3) % 4;
        const auto theirs = [&](u32 who, u32 i) { return 1000 * who + in[i]; };
        const u32 expected[] = {
            rank * 100 + 4 + 10000 * before,
            theirs(next, t),
            theirs(next, 2 * t) + 3 * theirs(next, 2 * t + 1) + 5 * theirs(next, 62 - 2 * t) + 7 * theirs(next, 63 - 2 * t),
            theirs(next, 4 * t) + 3 * theirs(next, 4 * t + 1) + 5 * theirs(next, 4 * t + 2) + 7 * theirs(next, 4 * t + 3),
            7 * (31 - t) + before + 3 * t + 5 * before,
            before + 3 * t + 5 * (t + before) + 7 * (t * before),
            9 * (31 - t) + before + 3 * t + 5 * before + 7 * (t + 1) + 11 * (3 * t),
            theirs(before, t) + 3 * theirs(before, 127 - t)};
        for (u32 k = 0; k < 8; ++k) ASSERT_EQ(out[(block * 8 + k) * 32 + t], expected[k]) << block << " " << k << " " << t;
      }
  });
}

}  // namespace
}  // namespace quern::conform
