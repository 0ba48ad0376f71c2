// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// With batch_invariant a row of gemm.dense has the same bits alone, in any batch and by any kernel of its kind. The layout of a and
// b never changes a bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "quern/device/emulated.h"
#include "quern/op/schema.h"
#include "quern/ops/gemm/dense.h"

namespace quern::gemm {
namespace {

class gemm_dense_invariant : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::string why;
    on_gpu_ = std::string(GetParam()) == "cuda";
    if (on_gpu_ && cuda_device_count(&why) == 0) GTEST_SKIP() << "needs a GPU: " << why;
    DeviceInfo small = device_info_of(Arch::parse("sm_90a"));
    small.emulated = 1;
    small.sms = 8;  // few enough for the portable kernel to fold its splits
    if (!on_gpu_) emulated_ = make_emulated_device(small, emulated_options_from_env());
    device_ = on_gpu_ ? &device_from_name("cuda") : emulated_.get();
    if (device_->info().arch.number != 90) GTEST_SKIP() << "needs a GPU of sm_90";
  }
  void TearDown() override {
    for (void* p : allocated_) device_->release(p);
  }
  void* allocate(i64 bytes) { return allocated_.emplace_back(device_->allocate(size_t(bytes), "test")); }
  /// bf16 of about 0.008 to 2 and both signs.
  u16* random_bf16(i64 count, Random& random) {
    std::vector<u16> v(static_cast<size_t>(count));
    for (u16& x : v) x = u16(0x3c00 + random.below(0x400) + random.below(2) * 0x8000);
    void* const to = allocate(2 * count);
    device_->copy(to, v.data(), size_t(2 * count), {});
    return static_cast<u16*>(to);
  }

  /// Those of out = a b^T as f32, [m, n], every one of them written.
  std::vector<u32> bits_of(Device& device, const char* variant, bool batch_invariant, const u16* a, const u16* b, i64 m, i64 n, i64 k) {
    void* const out = device.allocate(size_t(4 * m * n), "test");
    device.fill(out, 0xff, size_t(4 * m * n), {});
    DenseArgs args{.out = TensorView(out, DType::f32, {m, n}),
                   .a = TensorView(const_cast<u16*>(a), DType::bf16, {m, k}),
                   .b = TensorView(const_cast<u16*>(b), DType::bf16, {n, k})};
    if (on_gpu_) args.out.device = args.a.device = args.b.device = device.id();
    dense(args, {.device = &device, .variant = variant, .batch_invariant = batch_invariant});
    std::vector<u32> bits(size_t(m * n));
    device.copy(bits.data(), out, bits.size() * 4, {});
    device.synchronize({});
    device.release(out);
    expect_numbers(bits);
    return bits;
  }
  static void expect_numbers(const std::vector<u32>& bits) {
    EXPECT_TRUE(std::none_of(bits.begin(), bits.end(), [](u32 x) { return (x & 0x7fffffff) > 0x7f800000; }));
  }

  /// Rows of every tile of the kernels for few rows, beside the same rows by the one for many.
  void same_bits(i64 n, i64 k, i64 rows, const std::vector<i64>& counts,
                 const std::vector<const char*>& variants = {"portable", "swap_ab_sm90", "narrow_sm90"}) {
    Random random(7);
    u16* const a = random_bf16(rows * k, random);
    u16* const b = random_bf16(n * k, random);
    const auto run_rows = [&](const char* variant, i64 first, i64 m) {
      return bits_of(*device_, variant, true, a + first * k, b, m, n, k);
    };
    for (const char* few : variants) {
      const std::vector<u32> all = run_rows(few[0] == 'p' ? few : "warp_specialised_sm90", 0, rows);
      for (const i64 m : counts) {
        if (few[0] == 'n' && m > 128) continue;  // narrow tiles have no more rows
        const std::vector<u32> part = run_rows(few, rows - m, m);
        EXPECT_TRUE(std::equal(part.begin(), part.end(), all.end() - i64(part.size()))) << few << ", m=" << m << " n=" << n << " k=" << k;
      }
    }
  }

  /// An operand in memory of its own, rows or (transposed) columns `gap` elements further apart than they must, NaN between them.
  TensorView laid(const std::vector<u16>& values, i64 rows, i64 columns, bool transposed, i64 gap) {
    TensorView v(nullptr, DType::bf16, {rows, columns});
    v.strides[0] = transposed ? 1 : columns + gap;
    v.strides[1] = transposed ? rows + gap : 1;
    std::vector<u16> memory(size_t(v.extent()), 0xffff);
    for (i64 i = 0; i < rows; ++i)
      for (i64 j = 0; j < columns; ++j) memory[size_t(i * v.strides[0] + j * v.strides[1])] = values[size_t(i * columns + j)];
    v.data = allocate(2 * v.extent());
    device_->copy(v.data, memory.data(), memory.size() * 2, {});
    device_->synchronize({});
    if (on_gpu_) v.device = device_->id();
    return v;
  }

  /// Every layout by one variant beside nt. Rows and columns begin at multiples of 16 bytes, and `odd` elements behind them.
  void same_bits_in_every_layout(const char* variant, i64 m, i64 n, i64 k, bool batch_invariant, i64 odd = 0) {
    Random random(11);
    const auto values = [&](i64 count) {
      std::vector<u16> v(static_cast<size_t>(count));
      for (u16& x : v) x = u16(0x3c00 + random.below(0x400) + random.below(2) * 0x8000);
      return v;
    };
    const std::vector<u16> a = values(m * k), b = values(n * k);
    const auto gap = [&](i64 dense) { return round_up<i64>(dense, 8) - dense + 8 + odd; };
    void* const out = allocate(4 * m * n);
    std::vector<u32> expected;
    for (int layout = 0; layout < 4; ++layout) {
      const bool a_t = layout & 1, b_t = layout >> 1;
      DenseArgs args{
          .out = TensorView(out, DType::f32, {m, n}), .a = laid(a, m, k, a_t, gap(a_t ? m : k)), .b = laid(b, n, k, b_t, gap(b_t ? n : k))};
      if (on_gpu_) args.out.device = device_->id();
      device_->fill(out, 0xff, size_t(4 * m * n), {});
      dense(args, {.device = device_, .variant = variant, .batch_invariant = batch_invariant});
      std::vector<u32> bits(size_t(m * n));
      device_->copy(bits.data(), out, bits.size() * 4, {});
      device_->synchronize({});
      if (layout == 0) expected = bits;
      expect_numbers(bits);
      EXPECT_EQ(bits, expected) << variant << ", a " << (a_t ? "M" : "K") << "-major, b " << (b_t ? "N" : "K") << "-major, m=" << m
                                << " n=" << n << " k=" << k;
    }
  }

  bool on_gpu_ = false;
  std::unique_ptr<Device> emulated_;
  Device* device_ = nullptr;
  std::vector<void*> allocated_;
};

/// K in parts, which the portable kernel's second launch and its blocks add up, a cluster, and a block of the one for many rows; in one,
/// which narrow tiles want.
TEST_P(gemm_dense_invariant, rows_have_the_same_bits_for_every_m) {
  same_bits(136, 4160, 200, {1, 16, 17, 33, 64, 65, 129, 200}, {"portable", "swap_ab_sm90", "warp_specialised_sm90"});
  same_bits(4104, 192, 140, {1, 16, 17, 64, 65, 128}, {"narrow_sm90"});
  same_bits(10568, 64, 140, {65, 128}, {"narrow_sm90"});     // pairs of tiles by two warpgroups each
  same_bits(23248, 64, 128, {1, 17, 128}, {"narrow_sm90"});  // two tiles a block, one, two pairs
  same_bits(33800, 64, 64, {17, 64}, {"narrow_sm90"});       // three
  same_bits(16904, 1088, 20, {17}, {"narrow_sm90"});         // two, of nine steps in a ring of six stages
}

/// Without the option rows of up to 16, which narrow tiles have one kernel for; with k = 4096 tiles begin at places of K that follow from
/// their columns, whatever the number of multiprocessors.
TEST_P(gemm_dense_invariant, few_rows_have_the_same_bits_without_it) {
  Random random(13);
  const i64 shapes[][2] = {{200, 1984}, {5288, 320}, {5288, 4096}};
  for (const auto& [n, k] : shapes) {
    const u16 *a = random_bf16(16 * k, random), *b = random_bf16(n * k, random);
    const std::vector<u32> all = bits_of(*device_, "narrow_sm90", false, a, b, 16, n, k);
    for (const i64 m : {1, 3, 8, 15}) {
      const std::vector<u32> part = bits_of(*device_, "narrow_sm90", false, a + (16 - m) * k, b, m, n, k);
      EXPECT_TRUE(std::equal(part.begin(), part.end(), all.end() - i64(part.size()))) << "m=" << m << " n=" << n << " k=" << k;
    }
    if (on_gpu_) continue;
    DeviceInfo other = device_->info();
    for (const i32 sms : {6, 132}) {
      other.sms = sms;
      const std::unique_ptr<Device> device = make_emulated_device(other, emulated_options_from_env());
      EXPECT_EQ(bits_of(*device, "narrow_sm90", false, a, b, 3, n, k), std::vector<u32>(all.begin(), all.begin() + 3 * n))
          << sms << " multiprocessors, n=" << n << " k=" << k;
    }
  }
}

/// Of a size for the emulated device only in a hurry: K in two parts, in one, and tiles of 192 and 256 columns.
TEST_P(gemm_dense_invariant, rows_of_models_have_the_same_bits_for_every_m) {
  if (!on_gpu_) GTEST_SKIP() << "needs a GPU: minutes on the emulated device";
  same_bits(2112, 7168, 4000, {1, 17, 64, 128, 1000, 4000}, {"portable", "swap_ab_sm90"});
  same_bits(24576, 1536, 2000, {3, 100, 2000});
  same_bits(4096, 4096, 4096, {1, 128, 200});
  same_bits(28672, 4096, 128, {1, 64, 65, 128}, {"narrow_sm90"});  // also pairs
}

/// Tiles that end within the operands, and the end of K within a stage; with batch_invariant also K in parts.
TEST_P(gemm_dense_invariant, every_layout_has_the_same_bits) {
  for (const i64 m : {1, 17, 65, 129}) same_bits_in_every_layout("portable", m, 136, 203, false);
  for (const i64 odd : {4, 2, 1}) same_bits_in_every_layout("portable", 70, 77, 131, false, odd);
  same_bits_in_every_layout("portable", 5, 77, 131, false, 1);
  for (const i64 m : {1, 17, 33, 129}) same_bits_in_every_layout("swap_ab_sm90", m, 200, 203, false);
  for (const i64 m : {100, 130}) same_bits_in_every_layout("warp_specialised_sm90", m, 264, 203, false);
  for (const char* variant : {"portable", "swap_ab_sm90", "warp_specialised_sm90"}) same_bits_in_every_layout(variant, 65, 72, 4163, true);
}

INSTANTIATE_TEST_SUITE_P(Devices, gemm_dense_invariant, ::testing::Values("emu", "cuda"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace quern::gemm
