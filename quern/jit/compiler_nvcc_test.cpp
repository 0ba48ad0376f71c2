// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/jit/compiler_nvcc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>

#include "quern/base/fs.h"
#include "quern/jit/denied_compilers.h"

namespace quern::jit {
namespace {

using testing::HasSubstr;
using testing::Not;

class jit_nvcc : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = make_private_folder(testing::TempDir() + "quern-test.");
    if (const char* path = std::getenv("QN_TEST_NVCC"); path && *path) setenv("QN_JIT_NVCC", path, 1);
  }
  void TearDown() override {
    deny_compilers_for_test({});
    for (const char* name : {"QN_JIT_NVCC", "QN_JIT_COMPILER"}) unsetenv(name);
    remove_folder(folder_);
  }
  /// A program that answers --version with such a release and compiles nothing.
  std::string fake(const std::string& version) {
    const std::string path = folder_ + "/nvcc";
    write_file(path, "#!/bin/sh\necho 'Cuda compilation tools, release x, V" + version + "'\n");
    ::chmod(path.c_str(), 0755);
    return path;
  }
  std::string folder_;
};

#define QN_NEEDS_NVCC() \
  if (!NvccCompiler::get()) GTEST_SKIP() << "needs CUDA's headers, of a toolkit with nvcc: tools/install_nvcc.sh"

const Header kHeaders[] = {{"quern_test/params.h", "#pragma once\nstruct Params { float* out; int count; };\n"}};

CompileRequest request_of(const char* source) {
  return {.name = "fill", .source = source, .headers = kHeaders, .arch = {80, 0}, .extra_options = {}};
}
constexpr char kFill[] =
    "#include \"quern_test/params.h\"\n"
    "extern \"C\" __global__ void fill(const __grid_constant__ Params p) {\n"
    "  if (threadIdx.x < p.count) p.out[threadIdx.x] = 1;\n"
    "}\n";

std::string error_of(const CompileRequest& request) {
  try {
    NvccCompiler::get()->compile(request);
  } catch (const Error& error) { return std::string(name(error.kind())) + ": " + error.what(); }
  return "no error";
}

TEST_F(jit_nvcc, compiles_from_headers_in_memory_and_reads_its_log) {
  QN_NEEDS_NVCC();
  CompileRequest request = request_of(kFill);
  request.want_ptx = true;
  request.debug = 1;
  const CompileResult result = NvccCompiler::get()->compile(request);
  EXPECT_EQ(std::string(result.image.data(), 4),
            "\x7f"
            "ELF");
  EXPECT_THAT(std::string(result.image.begin(), result.image.end()), HasSubstr(".text.fill"));
  EXPECT_GT(result.registers, 2) << result.log;
  EXPECT_EQ(result.spill_bytes, 0);
  EXPECT_EQ(result.compiler, "nvcc");
  EXPECT_THAT(result.version, testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
  EXPECT_THAT(result.ptx, HasSubstr(".target sm_80"));
  EXPECT_THAT(result.ptx, HasSubstr(".loc")) << "debug 1 is line information";
  request.debug = 0;
  const std::vector<char> image = NvccCompiler::get()->compile(request).image;
  EXPECT_THAT(std::string(image.begin(), image.end()), Not(HasSubstr("quern-nvcc."))) << "a path of this machine";
}

TEST_F(jit_nvcc, reports_spills) {
  QN_NEEDS_NVCC();
  CompileRequest request = request_of(
      "extern \"C\" __global__ void fill(float* p) {\n"
      "  float v[64];\n"
      "  for (int i = 0; i < 64; ++i) v[i] = p[i * 64 + threadIdx.x];\n"
      "  __syncthreads();\n"
      "  for (int i = 0; i < 64; ++i) p[(63 - i) * 64 + threadIdx.x] = v[i] * v[(i * 7 + 3) % 64];\n"
      "}\n");
  request.extra_options = {"--maxrregcount=24"};
  const CompileResult result = NvccCompiler::get()->compile(request);
  EXPECT_GT(result.spill_bytes, 0) << result.log;
  EXPECT_LE(result.registers, 24);
}

TEST_F(jit_nvcc, error_names_phase_kernel_line_and_remedy) {
  QN_NEEDS_NVCC();
  const std::string text = error_of(request_of("extern \"C\" __global__ void fill(float* p) {\n  p[0] = undefined_name;\n}\n"));
  EXPECT_THAT(text, HasSubstr("compile: nvcc "));
  EXPECT_THAT(text, HasSubstr(", sm_80, kernel fill: it ended with "));
  EXPECT_THAT(text, HasSubstr("kernel.cu(2): error: identifier \"undefined_name\" is undefined"));
  EXPECT_THAT(text, HasSubstr("QN_JIT_DUMP"));
}

TEST_F(jit_nvcc, takes_no_options_but_those_of_the_key) {
  QN_NEEDS_NVCC();
  setenv("NVCC_APPEND_FLAGS", "--no-such-option", 1);
  const std::string text = error_of(request_of(kFill));
  unsetenv("NVCC_APPEND_FLAGS");
  EXPECT_EQ(text, "no error");
}

TEST_F(jit_nvcc, places_in_order_each_with_its_reason) {
  SearchPlaces places;
  places.chosen = {{"CUDA_HOME", folder_ + "/home"}};
  places.installed = {{"/usr/local/cuda", folder_ + "/local"}};
  places.pip_roots = {folder_ + "/site"};
  std::vector<std::string> origins;
  for (const NvccCandidate& c : nvcc_candidates("", places, 0)) {
    origins.push_back(c.origin);
    if (c.origin != "PATH") { EXPECT_EQ(c.reason, "not found"); }
  }
  EXPECT_THAT(origins, testing::ElementsAre("CUDA_HOME", "PATH", "/usr/local/cuda", "pip", "pip"));

  const auto reason = [&](const std::string& path, int driver = 0) {
    const std::vector<NvccCandidate> one = nvcc_candidates(path, places, driver);
    EXPECT_EQ(one.size(), 1u);
    EXPECT_EQ(one[0].accepted, one[0].reason.empty());
    return one[0].reason;
  };
  EXPECT_EQ(reason(fake("13.0.88")), "");
  EXPECT_EQ(reason(fake("12.8")), "");
  EXPECT_EQ(reason(fake("12.6.20")), "is 12.6.20, older than 12.8");
  EXPECT_EQ(reason(fake("what")), "does not answer --version as nvcc does");
  EXPECT_EQ(reason(fake("13.0.88"), 12080), "is 13.0.88, the driver supports CUDA 12.8 and would not load its kernels");
  const DeniedCompiler table[] = {{"13.0", "13.0", "it drops barriers"}};
  deny_compilers_for_test(table);
  EXPECT_EQ(reason(fake("13.0.88")), "is 13.0.88, which is denied: it drops barriers");
}

TEST_F(jit_nvcc, a_missing_one_is_an_error_with_the_places) {
  setenv("QN_JIT_COMPILER", "nvcc", 1);
  setenv("QN_JIT_NVCC", "/nowhere/nvcc", 1);
  EXPECT_EQ(find_gpu_compiler({80, 0}), nullptr);
  try {
    gpu_compiler({80, 0});
    FAIL() << "there is one";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::compile);
    EXPECT_THAT(e.what(), HasSubstr("QN_JIT_NVCC: /nowhere/nvcc not found"));
    EXPECT_THAT(e.what(), HasSubstr("Install a CUDA toolkit of 12.8 or later"));
  }
  setenv("QN_JIT_COMPILER", "gcc", 1);
  EXPECT_THROW(find_gpu_compiler({80, 0}), Error);
}

TEST_F(jit_nvcc, builds_are_told_apart) {
  const NvccCompiler one(nvcc_candidates(fake("13.0.88"), {}, 0)[0]), two(nvcc_candidates(fake("13.0.89"), {}, 0)[0]);
  EXPECT_NE(one.provenance(), two.provenance());
}

}  // namespace
}  // namespace quern::jit
