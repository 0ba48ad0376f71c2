// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// With batch_invariant a row of gemm.scaled has the same bits alone, in any batch and by any kernel of its kind, whatever the scales are
// for.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "quern/device/emulated.h"
#include "quern/op/schema.h"
#include "quern/ops/gemm/scaled.h"

namespace quern::gemm {
namespace {

class gemm_scaled_invariant : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::string why;
    on_gpu_ = std::string(GetParam()) == "cuda";
    if (on_gpu_ && cuda_device_count(&why) == 0) GTEST_SKIP() << "needs a GPU: " << why;
    DeviceInfo small = device_info_of(Arch::parse("sm_90a"));
    small.emulated = 1;
    small.sms = 8;  // so that a block has several tiles
    if (!on_gpu_) emulated_ = make_emulated_device(small, emulated_options_from_env());
    device_ = on_gpu_ ? &device_from_name("cuda") : emulated_.get();
    if (device_->info().arch.number != 90) GTEST_SKIP() << "needs a GPU of sm_90";
  }
  void TearDown() override {
    for (void* p : allocated_) device_->release(p);
  }
  template <class T>
  TensorView filled(DType dtype, i64 rows, i64 columns, T (*value)(Random&)) {
    std::vector<T> v(size_t(rows * columns));
    for (T& x : v) x = value(random_);
    void* const to = allocated_.emplace_back(device_->allocate(v.size() * sizeof(T), "test"));
    device_->copy(to, v.data(), v.size() * sizeof(T), {});
    device_->synchronize({});
    TensorView view(to, dtype, {rows, columns});
    if (on_gpu_) view.device = device_->id();
    return view;
  }
  /// The last m rows.
  static TensorView last_rows(TensorView v, i64 m) {
    if (v.shape[0] == 1) return v;
    v.data = static_cast<u8*>(v.data) + (v.shape[0] - m) * v.strides[0] * size_of(v.dtype);
    v.shape[0] = m;
    return v;
  }

  /// Rows of every tile of the kernels for few rows, beside the same rows by the one for many. Columns of scales: those of k, or 1.
  void same_bits(i64 n, i64 k, i64 rows, i64 rows_a, i64 columns_a, i64 rows_b, i64 columns_b) {
    const auto value = [](Random& random) { return u8(random.below(0x70) + random.below(2) * 0x80); };  // up to 240, no NaN
    // Zeros of both signs and what underflows among them: results have signs of zero to keep
    const auto scale = [](Random& random) {
      const float x = float(1 + random.below(1 << 20)) / (1 << 20) * (random.below(2) ? 1.f : -1.f);
      const auto kind = random.below(8);
      return kind == 0 ? std::copysign(0.f, x) : kind == 1 ? x * 0x1p-140f : x;
    };
    const TensorView a = filled<u8>(DType::e4m3, rows, k, value), b = filled<u8>(DType::e4m3, n, k, value);
    const TensorView scales_a = filled<float>(DType::f32, rows_a, columns_a, scale),
                     scales_b = filled<float>(DType::f32, rows_b, columns_b, scale);
    const TensorView out = filled<float>(DType::f32, rows, n, scale);
    const auto run_rows = [&](const char* variant, i64 m) {
      device_->fill(out.data, 0xff, size_t(4 * rows * n), {});
      ScaledArgs args{.out = out, .a = last_rows(a, m), .scales_a = last_rows(scales_a, m), .b = b, .scales_b = scales_b};
      args.out.shape[0] = m;
      scaled(args, {.device = device_, .variant = variant, .batch_invariant = true});
      std::vector<u32> bits(size_t(m * n));
      device_->copy(bits.data(), out.data, bits.size() * 4, {});
      device_->synchronize({});
      return bits;
    };
    for (const char* few : {"portable", "swap_ab_sm90", "narrow_sm90", "warp_specialised_sm90"}) {
      const std::vector<u32> all = run_rows(few[0] == 'p' ? few : "warp_specialised_sm90", rows);
      EXPECT_NE(all[0], 0xffffffffu);
      for (const i64 m : {1, 16, 17, 33, 64, 65, 128, 129}) {
        if (few[0] == 'n' && m > 128) continue;  // narrow tiles have no more rows
        const std::vector<u32> part = run_rows(few, m);
        EXPECT_TRUE(std::equal(part.begin(), part.end(), all.end() - i64(part.size())))
            << few << ", m=" << m << " n=" << n << " k=" << k << ", scales " << rows_a << " x " << columns_a << " and " << rows_b << " x "
            << columns_b;
      }
    }
  }

  Random random_{7};
  Device* device_ = nullptr;
  std::unique_ptr<Device> emulated_;
  std::vector<void*> allocated_;
  bool on_gpu_ = false;
};

/// 9 stages: two batches and one; the last of 32 columns.
TEST_P(gemm_scaled_invariant, rows_have_the_same_bits_for_every_m) {
  const i64 n = 136, k = 8 * 128 + 32, rows = 200, groups = 9;
  for (const i64 columns_a : {groups, i64(1)})
    for (const i64 rows_b : {n, i64(2), i64(1)})
      for (const i64 columns_b : {groups, i64(1)}) same_bits(n, k, rows, rows, columns_a, rows_b, columns_b);
  same_bits(n, k, rows, 1, 1, 1, 1);
}

/// Of half of the rows there are tiles of 128. The last of seven of 256 begins 88 rows earlier, the last one along n has 64 columns; then
/// there is only one, with 136 rows.
TEST_P(gemm_scaled_invariant, tiles_of_256_rows_give_the_bits_of_those_of_128) {
  for (const auto& [m, n, k] : {std::array<i64, 3>{1704, 1856, 2560}, {136, 12680, 2432}}) {
    const auto value = [](Random& random) { return u8(random.below(0x70) + random.below(2) * 0x80); };
    const auto scale = [](Random& random) { return float(1 + random.below(1 << 20)) / (1 << 20); };
    ScaledArgs args{.out = filled<u16>(DType::bf16, m, n, [](Random&) { return u16(0xffff); }),
                    .a = filled<u8>(DType::e4m3, m, k, value),
                    .scales_a = filled<float>(DType::f32, m, k / 128, scale),
                    .b = filled<u8>(DType::e4m3, n, k, value),
                    .scales_b = filled<float>(DType::f32, (n + 127) / 128, k / 128, scale)};
    const auto run_rows = [&](i64 first, i64 rows) {
      ScaledArgs part = args;
      for (TensorView* v : {&part.out, &part.a, &part.scales_a}) v->shape[0] = first + rows, *v = last_rows(*v, rows);
      device_->fill(args.out.data, 0xff, size_t(2 * m * n), {});
      scaled(part, {.device = device_, .variant = "warp_specialised_sm90"});
      std::vector<u16> bits(size_t(rows * n));
      device_->copy(bits.data(), part.out.data, bits.size() * 2, {});
      device_->synchronize({});
      return bits;
    };
    const std::vector<u16> all = run_rows(0, m), upper = run_rows(0, m / 2), lower = run_rows(m / 2, m / 2);
    EXPECT_TRUE(std::none_of(all.begin(), all.end(), [](u16 x) { return (x & 0x7fff) > 0x7f80; }));
    EXPECT_TRUE(std::equal(upper.begin(), upper.end(), all.begin())) << m;
    EXPECT_TRUE(std::equal(lower.begin(), lower.end(), all.begin() + i64(upper.size()))) << m;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, gemm_scaled_invariant, ::testing::Values("emu", "cuda"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace quern::gemm
