// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What a profiler's user finds by "fp8_gemm", "bf16_gemm" and "reduce", in every call of the cases: the kernel that multiplies,
// once; and nothing in other families.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "quern/device/device.h"
#include "quern/op/schema.h"
#include "quern/testing/case_args.h"
#include "quern/testing/pairwise.h"

namespace quern::gemm {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// Calls see(problem, plan) for each call of the op's cases that launches something on the device, by each variant that runs it.
template <class See> void each_plan(const Op& op, const DeviceInfo& device, See see) {
  for (const Case& c : testing::pairwise(op.cases, [&](const Case& c) { return testing::runs(op, c, device); })) {
    const Case full = testing::derived(op, c);
    const testing::ArgsStorage args = testing::fake_args(op, full);
    Problem problem = bind(op, args.get(), testing::options_of(op, full));
    if (problem.empty) continue;
    problem.candidate = -1;  // a case may name one, of one variant
    for (size_t i = 0; i < op.variants.size(); ++i) {
      if (op.variants[i].rejects && op.variants[i].rejects(problem, device)) continue;
      problem.variant = i32(i);
      see(problem, make_plan(op, problem, device));
    }
  }
}

/// "fp8_gemm_" of a problem's first operand, told from its size and name alone.
std::string word_of(const Op& op, const Problem& problem) {
  for (size_t i = 0; i < op.tensors.size(); ++i)
    if (op.tensors[i].name == "a") {
      const DType dtype = problem.tensors[i].dtype;
      return size_of(dtype) == 1 ? "fp8_gemm_" : dtype == DType::f16 ? "fp16_gemm_" : std::string(name(dtype)) + "_gemm_";
    }
  ADD_FAILURE() << op.id << " has no a";
  return "";
}

TEST(gemm_symbols, one_kernel_of_a_call_multiplies_and_says_what) {
  std::set<std::string> kernels, words;
  for (const auto& [id, op] : registry()) {
    if (!id.starts_with("gemm.") || id.starts_with("gemm.linear_rowsum")) continue;  // the sums of a product's rows need no product
    for (const char* arch : {"sm_80", "sm_90a"})
      each_plan(*op, device_info_of(Arch::parse(arch)), [&, op = op, id = id](const Problem& problem, const Plan& plan) {
        const std::string word = word_of(*op, problem);
        int products = 0;
        for (i32 i = 0; i < plan.count; ++i) {
          const std::string entry = jit::entry_name(plan.launches[i].spec), kernel = plan.launches[i].spec.kernel->name;
          kernels.insert(kernel), words.insert(word);
          const size_t at = entry.find("gemm_");
          if (at != std::string::npos) {
            ++products;
            EXPECT_THAT(entry, StartsWith(kernel + "__" + word));
            EXPECT_LT(entry.find(word) + word.size(), 97u) << entry << ": torch's table of 100 columns cuts it off";
          } else if (kernel.ends_with("sum_splits")) {
            EXPECT_THAT(entry, StartsWith(kernel + "__reduce_"));
          } else {
            EXPECT_THAT(entry, Not(HasSubstr("reduce")));
          }
        }
        EXPECT_EQ(products, 1) << id;
      });
  }
  EXPECT_THAT(words, ::testing::ElementsAre("bf16_gemm_", "fp16_gemm_", "fp8_gemm_"));
  EXPECT_GE(kernels.size(), 19u) << ::testing::PrintToString(kernels) << ": the cases reach all that there are";
}

TEST(gemm_symbols, no_other_family_has_them) {
  const DeviceInfo h200 = device_info_of(Arch::parse("sm_90a"));
  for (const auto& [id, op] : registry())
    if (!id.starts_with("gemm."))
      each_plan(*op, h200, [&](const Problem&, const Plan& plan) {
        for (i32 i = 0; i < plan.count; ++i) EXPECT_THAT(jit::entry_name(plan.launches[i].spec), Not(HasSubstr("gemm")));
      });
}

}  // namespace
}  // namespace quern::gemm
