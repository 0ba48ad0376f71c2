// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What is chosen for more than 128 rows on Hopper, and candidates by their names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "quern/base/error.h"
#include "quern/op/random.h"
#include "quern/op/schema.h"
#include "quern/op/variants.h"
#include "quern/ops/gemm/dense/sm90.h"
#include "quern/testing/case_args.h"

namespace quern::gemm {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Problem problem_of(const Case& which) {
  const Op& op = find_op("gemm.dense");
  const Case full = quern::testing::derived(op, which);
  const quern::testing::ArgsStorage args = quern::testing::fake_args(op, full);
  return bind(op, args.get(), quern::testing::options_of(op, full));
}
DeviceInfo with_sms(i32 sms) {
  DeviceInfo device = device_info_of(Arch::parse("sm_90a"));
  device.sms = sms;
  return device;
}

/// GPUs of the arch with 114 and 78 multiprocessors too, which choose among the kernels that 132 meet, so that one list serves all; 78 lose
/// most by it. Of the kernels that a weight meets the chosen one has the least time by estimate; these are few, yet with hardly more time
/// than the best of all kernels has.
TEST(gemm_dense, chosen_for_more_than_128_rows_is_what_takes_least_by_estimate) {
  Random random(49);
  for (const i32 sms : {132, 114, 78}) {
    const DeviceInfo device = with_sms(sms);
    double lost = 0;
    int problems = 0;
    for (int weight = 0; weight < 12; ++weight) {
      const double n = 64. * double(8 + random.below(300)), k = 64. * double(8 + random.below(200));
      std::set<i32> met;
      std::vector<std::pair<Problem, ManyRowsChoice>> chosen;
      for (double m = 129; m <= 2048; m = std::floor(m * 1.07) + 1) {
        chosen.push_back({problem_of({{"m", m}, {"n", n}, {"k", k}}), {}});
        chosen.back().second = choose_dense_many_rows(chosen.back().first, device);
        met.insert(chosen.back().second.kernel);
      }
      EXPECT_LE(met.size(), 6u);
      for (const auto& [p, choice] : chosen) {
        const auto ns = [&, &p = p](size_t i, i32 parts) { return dense_many_rows_ns(p, dense_many_rows_kernels()[i], parts, device); };
        const double own = ns(size_t(choice.kernel), choice.parts);
        double least = 1e300, of_one_wave = 1e300;
        for (size_t i = 0; i < dense_many_rows_kernels().size(); ++i)
          for (const i32 parts : {1, 2, 4}) {
            const Sm90Kernel& kernel = dense_many_rows_kernels()[i];
            const i64 waves = waves_of(kernel, dense_product_of(p), parts, device);
            if (parts > 1 && (kernel.kind == Sm90Kind::tiles || waves > 1 || p[Axis::k] <= 128 * (parts - 1))) continue;
            if (met.contains(i32(i)) && sms == kSm90Sms) {
              EXPECT_LE(own, ns(i, parts)) << p[Axis::m] << " x " << n << " x " << k << " on " << sms << ": " << i << " in " << parts;
            }
            least = std::min(least, ns(i, parts));
            if (waves == 1) of_one_wave = std::min(of_one_wave, ns(i, parts));
          }
        lost += std::log(own / least), ++problems;
        if (waves_of(dense_many_rows_kernels()[size_t(choice.kernel)], dense_product_of(p), choice.parts, device) == 2) {
          EXPECT_LE(own, (sms == 78 ? 1.7 : 1.4) * of_one_wave) << p[Axis::m] << " x " << n << " x " << k << " on " << sms;
        }
      }
    }
    EXPECT_LT(std::exp(lost / problems), sms == 78 ? 1.065 : 1.04) << sms;
  }
}

/// A candidate is run as it is named, by any number of rows, and refused where it cannot.
TEST(gemm_dense, candidates_are_called_by_name) {
  const DeviceInfo h200 = with_sms(132);
  const auto named = [&](const char* variant, Case which) {
    which["variant"] = variant_index("gemm.dense", variant);
    return jit::print(make_plan(find_op("gemm.dense"), problem_of(which), h200).launches[0].spec);
  };
  EXPECT_THAT(named("swap_ab_sm90:160x128_parts2", {{"m", 160}, {"n", 512}, {"k", 1024}}),
              AllOf(HasSubstr("dense_swap_ab_sm90"), HasSubstr("tile_m=160, tile_n=128")));
  EXPECT_THAT(named("warp_specialised_sm90:128x192", {{"m", 64}, {"n", 512}, {"k", 1024}}),
              AllOf(HasSubstr("tile_n=192"), HasSubstr("alternate=0")));
  EXPECT_THAT(named("warp_specialised_sm90:128x144_turns", {{"m", 4000}, {"n", 512}, {"k", 1024}}),
              AllOf(HasSubstr("tile_n=144"), HasSubstr("alternate=1")));
  const auto refused = [&](const char* variant, const Case& which, const char* why) {
    try {
      named(variant, which);
      ADD_FAILURE() << "no error; expected: " << why;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::unsupported);
      EXPECT_THAT(e.what(), HasSubstr(why));
    }
  };
  refused("swap_ab_sm90:64x64_parts4", {{"m", 160}, {"n", 512}, {"k", 384}}, "k=384, wants more than 384 for so many parts");
  refused("swap_ab_sm90:64x64_parts2", {{"m", 160}, {"n", 4096}, {"k", 4096}, {"batch_invariant", 1}},
          "parts of K=2, wants 1 with batch_invariant");
  refused("swap_ab_sm90:160x64", {{"m", 160}, {"n", 512}, {"k", 512}, {"a.transposed", 1}}, "a=M-major, wants K-major");
  refused("warp_specialised_sm90:128x144_turns", {{"m", 160}, {"n", 512}, {"k", 512}, {"b.transposed", 1}}, "b=N-major, wants K-major");
  refused("warp_specialised_sm90:192x128_swapped", {{"m", 160}, {"n", 512}, {"k", 512}, {"out_f32", 1}},
          "out=f32, wants 16 bits where tiles are swapped");
  refused("warp_specialised_sm90:192x128_swapped", {{"m", 160}, {"n", 512}, {"k", 512}, {"c.present", 1}},
          "c=one, wants none where tiles are swapped");
  refused("warp_specialised_sm90:256x128_swapped", {{"m", 160}, {"n", 2112}, {"k", 7168}, {"batch_invariant", 1}},
          "parts of K=2, wants 1 where tiles are swapped");
  refused("warp_specialised_sm90:128x256", {{"m", 160}, {"n", 2112}, {"k", 7168}, {"batch_invariant", 1}},
          "tile_n=256, wants at most 192 in halves");
}

}  // namespace
}  // namespace quern::gemm
