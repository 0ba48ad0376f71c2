// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// `quern check` on the emulated device also compiles what it runs for a GPU: green on a laptop is green for NVRTC.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli_process.h"
#include "quern/base/fs.h"
#include "quern/jit/compiler_nvrtc.h"
#include "quern/jit/sources.h"

namespace quern {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

class GpuCompileCommand : public ::testing::Test {
 protected:
  void SetUp() override { root_ = make_private_folder(::testing::TempDir() + "quern-test."); }
  void TearDown() override { remove_folder(root_); }

  /// Two cases of one kernel.
  ProcessResult check(std::vector<std::string> words = {}, std::vector<std::string> variables = {}, const char* device = "emu") const {
    words.insert(words.begin(), {"check", "norm.rms_norm", "tokens=1,3", "hidden=96", "x.dtype=bf16", "x.pad=0", "out.pad=0",
                                 "out.in_place=false", "fp8=0", "weight_bias=0", "wide_weight=0", "--device", device});
    variables.push_back("QN_CACHE_DIR=" + root_ + "/cache");
    return command(words, variables);
  }
  /// The kernel calls a function that is constexpr alone: the host's in CUDA.
  std::string with_a_host_function() const {
    const std::string name = "quern/ops/norm/norm_row/kernel.cuh", from = "const i64 step = i64(gridDim.x)";
    std::string text = jit::source_text(name);
    const size_t at = text.find(from), first = text.find("\ntemplate ");
    EXPECT_NE(at, std::string::npos) << name << " does not hold '" << from << "'";
    if (at == std::string::npos) return "";
    text.replace(at, from.size(), "const i64 step = of_host(i64(gridDim.x))");
    text.insert(first, "\nconstexpr i64 of_host(i64 x) { return x; }\n");
    make_folders(root_ + "/source/quern/ops/norm/norm_row");
    write_file(root_ + "/source/" + name, text);
    return "QN_SOURCE_DIR=" + root_ + "/source";
  }
  static size_t count_of(const std::string& text, const std::string& part) {
    size_t count = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
    return count;
  }

  std::string root_;
};

TEST_F(GpuCompileCommand, a_kernel_that_nvrtc_refuses_is_found_once) {
  if (!jit::NvrtcCompiler::get(Arch{90, true})) GTEST_SKIP() << "needs NVRTC";
  const std::vector<std::string> changed = {with_a_host_function()};
  const ProcessResult r = check({}, changed);
  EXPECT_EQ(r.status, 1) << r.output;
  EXPECT_THAT(r.output, HasSubstr("COMPILE norm.rms_norm portable "));
  EXPECT_EQ(count_of(r.output, "COMPILE "), 1u) << r.output;
  EXPECT_THAT(r.output, HasSubstr("sm_90a"));
  EXPECT_THAT(r.output, HasSubstr("of_host"));
  EXPECT_THAT(r.output, Not(HasSubstr("WRONG"))) << "what ran is right";
  const Json results = Json::parse(check({"--json"}, changed).output);
  ASSERT_EQ(results.size(), 3u);
  size_t refused = 0;
  for (const Json& x : results) {
    EXPECT_EQ(x["gpu_arch"], "sm_90a");
    if (x["verdict"] == "right") continue;
    ++refused;
    EXPECT_EQ(x["verdict"], "compile");
    EXPECT_FALSE(x["ok"]);
    EXPECT_THAT(x["kernels"].get<std::string>(), HasSubstr("norm_row<"));
    EXPECT_THAT(x["message"].get<std::string>(), HasSubstr("of_host"));
  }
  EXPECT_EQ(refused, 1u);
  const ProcessResult left_out = check({"--no-nvrtc"}, changed);
  EXPECT_EQ(left_out.status, 0) << left_out.output;
  EXPECT_THAT(left_out.output, Not(HasSubstr("for a GPU")));
}

TEST_F(GpuCompileCommand, a_kernel_that_was_compiled_is_looked_up) {
  if (!jit::NvrtcCompiler::get(Arch{90, true})) GTEST_SKIP() << "needs NVRTC";
  for (const size_t compiles : {1u, 0u}) {
    const ProcessResult r = check({}, {"QN_JIT_VERBOSE=1"});
    EXPECT_EQ(r.status, 0) << r.output;
    EXPECT_EQ(count_of(r.output, " for sm_90a in "), compiles) << r.output;
    EXPECT_THAT(r.output, HasSubstr("; 1 kernel also compiled for a GPU\n"));
  }
  const ProcessResult other = check({}, {"QN_JIT_VERBOSE=1"}, "emu:sm_80");
  EXPECT_EQ(count_of(other.output, " for sm_80 in "), 1u) << other.output;
}

TEST_F(GpuCompileCommand, says_in_one_line_that_there_is_no_nvrtc) {
  const std::vector<std::string> without = {with_a_host_function(), "QN_JIT_NVRTC=" + root_ + "/libnvrtc.so.13"};
  const ProcessResult r = check({}, without);
  EXPECT_EQ(r.status, 0) << r.output;
  EXPECT_EQ(count_of(r.output, "no NVRTC was found: kernels were not compiled for a GPU\n"), 1u) << r.output;
  EXPECT_THAT(check({"--no-nvrtc"}, without).output, Not(HasSubstr("no NVRTC")));
  const Json results = Json::parse(check({"--json"}, without).output);
  for (const Json& x : results) EXPECT_EQ(x["gpu_arch"], "");
}

}  // namespace
}  // namespace quern
