// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/jit/compiler_nvrtc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "quern/base/elf.h"
#include "quern/base/error.h"

namespace quern::jit {
namespace {

using testing::HasSubstr;
using testing::Not;

#define QN_NEEDS_NVRTC() \
  if (!NvrtcCompiler::get()) GTEST_SKIP() << "needs NVRTC"

constexpr char kScale[] =
    "#include \"quern_test/params.h\"\n"
    "extern \"C\" __global__ void scale(const __grid_constant__ Params p) {\n"
    "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < p.count) p.out[i] = p.x[i] * p.factor;\n"
    "}\n";
const Header kHeaders[] = {{"quern_test/params.h",
                            "#pragma once\n#include \"quern_test/scalar.h\"\n"
                            "struct Params { float* out; const float* x; int count; Scalar factor; };\n"},
                           {"quern_test/scalar.h", "#pragma once\nusing Scalar = float;\n"}};

CompileRequest scale_request(Arch arch) {
  return {.name = "scale", .source = kScale, .headers = kHeaders, .arch = arch, .extra_options = {}};
}

std::string error_of(const CompileRequest& request) {
  try {
    NvrtcCompiler::get()->compile(request);
  } catch (const Error& error) { return std::string(name(error.kind())) + ": " + error.what(); }
  return "no error";
}

class jit_nvrtc_arch : public testing::TestWithParam<Arch> {};
TEST_P(jit_nvrtc_arch, compiles_from_headers_in_memory) {
  NvrtcCompiler* compiler = NvrtcCompiler::get(GetParam());
  if (!compiler) GTEST_SKIP() << "needs NVRTC";
  const CompileResult result = compiler->compile(scale_request(GetParam()));
  EXPECT_EQ(std::string(result.image.data(), 4),
            "\x7f"
            "ELF");
  EXPECT_GT(result.registers, 4);
  EXPECT_EQ(result.spill_bytes, 0);
  EXPECT_EQ(result.stack_bytes, 0);
  EXPECT_TRUE(result.warnings.empty());
  EXPECT_TRUE(result.ptx.empty());
  EXPECT_GT(result.compile_ms, 0);
  EXPECT_EQ(result.provenance, compiler->provenance());
}
INSTANTIATE_TEST_SUITE_P(known, jit_nvrtc_arch, testing::ValuesIn(known_archs().begin(), known_archs().end()),
                         [](const auto& info) { return info.param.name(); });

TEST(jit_nvrtc, gives_ptx_when_asked) {
  QN_NEEDS_NVRTC();
  CompileRequest request = scale_request({90, 1});
  request.want_ptx = true;
  request.debug = 1;
  const CompileResult result = NvrtcCompiler::get()->compile(request);
  EXPECT_THAT(result.ptx, HasSubstr(".target sm_90a"));
  EXPECT_THAT(result.ptx, HasSubstr(".loc")) << "debug 1 is line information";
}

TEST(jit_nvrtc, debug_2_turns_optimisation_off) {
  QN_NEEDS_NVRTC();
  CompileRequest request = scale_request({80, 0});
  const size_t optimised = NvrtcCompiler::get()->compile(request).image.size();
  request.debug = 2;
  EXPECT_GT(NvrtcCompiler::get()->compile(request).image.size(), optimised);
}

TEST(jit_nvrtc, error_names_phase_kernel_line_and_remedy) {
  QN_NEEDS_NVRTC();
  CompileRequest request = scale_request({90, 1});
  request.source = "extern \"C\" __global__ void scale(float* p) {\n  p[0] = undefined_name;\n}\n";
  const std::string text = error_of(request);
  EXPECT_THAT(text, HasSubstr("compile: NVRTC "));
  EXPECT_THAT(text, HasSubstr(", sm_90a, kernel scale: NVRTC_ERROR_COMPILATION"));
  EXPECT_THAT(text, HasSubstr("scale.cu(2): error: identifier \"undefined_name\" is undefined"));
  EXPECT_THAT(text, HasSubstr("QN_JIT_DUMP"));
}

TEST(jit_nvrtc, error_of_the_assembler_is_shown) {
  QN_NEEDS_NVRTC();
  CompileRequest request = scale_request({80, 0});
  request.source =
      "extern \"C\" __global__ void scale(float* p) {\n  __shared__ float s[1 << 20];\n"
      "  s[threadIdx.x] = p[threadIdx.x];\n  __syncthreads();\n  p[threadIdx.x] = s[threadIdx.x ^ 1];\n}\n";
  EXPECT_THAT(error_of(request), HasSubstr("uses too much shared data"));
}

TEST(jit_nvrtc, error_for_an_unknown_arch_lists_the_candidates) {
  QN_NEEDS_NVRTC();
  const std::string text = error_of(scale_request({70, 0}));
  if (text == "no error") GTEST_SKIP() << "needs an NVRTC that dropped sm_70";
  EXPECT_THAT(text, HasSubstr("no NVRTC on this machine compiles for sm_70"));
  EXPECT_THAT(text, HasSubstr("QN_JIT_NVRTC"));
}

// 64 live values under a limit of 24 registers.
constexpr char kSpilling[] =
    "extern \"C\" __global__ void spill(float* p) {\n"
    "  float v[64];\n"
    "  for (int i = 0; i < 64; ++i) v[i] = p[i * 64 + threadIdx.x];\n"
    "  __syncthreads();\n"
    "  for (int i = 0; i < 64; ++i) p[(63 - i) * 64 + threadIdx.x] = v[i] * v[(i * 7 + 3) % 64];\n"
    "}\n";

TEST(jit_nvrtc, reports_spills) {
  QN_NEEDS_NVRTC();
  CompileRequest request = scale_request({90, 1});
  request.source = kSpilling;
  const CompileResult roomy = NvrtcCompiler::get()->compile(request);
  EXPECT_EQ(roomy.spill_bytes, 0);
  EXPECT_GT(roomy.registers, 64);
  request.extra_options = {"--maxrregcount=24"};
  const CompileResult tight = NvrtcCompiler::get()->compile(request);
  EXPECT_GT(tight.spill_bytes, 0) << tight.log;
  EXPECT_GT(tight.stack_bytes, 0);
  EXPECT_LE(tight.registers, 24);
}

TEST(jit_nvrtc, does_not_read_files_of_the_current_folder) {
  QN_NEEDS_NVRTC();
  namespace fs = std::filesystem;
  const fs::path before = fs::current_path();
  const fs::path folder = fs::path(testing::TempDir()) / ("nvrtc_cwd_" + std::to_string(getpid()));
  fs::create_directories(folder / "quern_test");
  std::ofstream(folder / "quern_test/params.h") << "#error from the current folder\n";
  fs::current_path(folder);
  const std::string text = error_of(scale_request({80, 0}));
  fs::current_path(before);
  fs::remove_all(folder);
  EXPECT_EQ(text, "no error");
}

TEST(jit_nvrtc, provenance_is_the_build_id_of_the_file) {
  QN_NEEDS_NVRTC();
  const std::string& provenance = NvrtcCompiler::get()->provenance();
  EXPECT_GE(provenance.size(), 16u);
  EXPECT_EQ(provenance.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_THAT(NvrtcCompiler::get()->description(), HasSubstr("libnvrtc"));
}

TEST(jit_nvrtc, candidates_are_accepted_or_have_a_reason) {
  bool any = false;
  for (const NvrtcCandidate& c : nvrtc_candidates()) {
    EXPECT_EQ(c.accepted, c.reason.empty()) << c.origin << " " << c.path << " " << c.reason;
    EXPECT_EQ(c.accepted, !c.archs.empty() && c.major >= 12) << c.path;
    any |= c.accepted;
  }
  EXPECT_EQ(any, NvrtcCompiler::get() != nullptr);
}

TEST(jit_nvrtc, compiles_on_several_threads_at_once) {
  QN_NEEDS_NVRTC();
  CompileRequest request = scale_request({90, 1});
  request.source = kSpilling;
  const auto seconds = [&](int threads, int each) {
    const auto begin = std::chrono::steady_clock::now();
    std::vector<std::thread> all;
    for (int t = 0; t < threads; ++t)
      all.emplace_back([&] {
        for (int i = 0; i < each; ++i) EXPECT_GT(NvrtcCompiler::get()->compile(request).registers, 0);
      });
    for (std::thread& thread : all) thread.join();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  seconds(1, 1);
  const double one = seconds(1, 8), two = seconds(2, 4);
  RecordProperty("speedup_of_two_threads", std::to_string(one / two));
}

}  // namespace
}  // namespace quern::jit
