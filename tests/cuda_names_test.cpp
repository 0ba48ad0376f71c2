// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// A name of CUDA in a kernel is a compile error in both worlds, whose text has what to write instead (kit/cuda_names.cuh).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>

#include "quern/base/fs.h"
#include "quern/jit/compiler_host.h"
#include "quern/jit/compiler_nvrtc.h"
#include "quern/jit/sources.h"

namespace quern {
namespace {

using ::testing::HasSubstr;

/// {name: what to write instead}, as the header has them.
std::map<std::string, std::string> names() {
  const std::string text = jit::source_text("quern/kit/cuda_names.cuh");
  const std::regex line("\nQN_(?:NOT|HIDDEN)_IN_KERNELS\\((\\w+), \"([^\"]*)\"\\)");
  std::map<std::string, std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), line), end; at != end; ++at) found[(*at)[1]] = (*at)[2];
  return found;
}

/// A kernel whose body is `body`.
std::string kernel(const std::string& body) {
  return "#include \"quern/kit/kit.cuh\"\nnamespace quern::mine {\nstruct Params { float* out; };\nQN_DEVICE void fill(const Params& p) {\n  f32 x = p.out[0];\n" +
         body + "  p.out[0] = x;\n}\n}\nQN_ENTRY(fill, quern::mine::Params, 32, 1, quern::mine::fill(p))\n";
}

/// What g++ says of a kernel for the emulated device; empty: it compiled.
std::string emulated_errors(const std::string& source, bool clang = false) {
  const std::string folder = make_private_folder(::testing::TempDir() + "quern-names.");
  std::ofstream(folder + "/kernel.cu") << source;
  for (const jit::Source& s : jit::included_sources(source, true)) {
    const std::filesystem::path file = folder + "/source/" + s.name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << s.text;
  }
  std::string text;
  try {
    jit::HostCompiler::named(clang ? "clang++" : "g++").compile(folder, "fill", {});
  } catch (const Error& e) { text = e.what(); }
  remove_folder(folder);
  return text;
}

/// The same of NVRTC.
std::string gpu_errors(const std::string& source) {
  const std::vector<jit::Source> sources = jit::included_sources(source, false);
  std::vector<jit::Header> headers;
  for (const jit::Source& s : sources) headers.push_back({s.name.c_str(), s.text.c_str()});
  try {
    jit::NvrtcCompiler::get()->compile({.name = "fill", .source = source, .headers = headers, .arch = Arch{}, .extra_options = {}});
  } catch (const Error& e) { return e.what(); }
  return "";
}

/// Errors are cut after the first ones: a compile for each few names.
template <class Errors> void each_name_is_refused(const Errors& errors) {
  const auto all = names();
  ASSERT_GT(all.size(), 50u);
  EXPECT_EQ(errors(kernel("  x = x + f32(1.f);\n")), "");
  size_t at = 0;
  for (const auto& [name, instead] : all) {
    if (at++ % 6 != 0 && name != "exp" && name != "sqrt" && name != "round" && name != "expf" && name != "__expf" && name != "logf" &&
        name != "__syncthreads")
      continue;  // a compile each
    EXPECT_THAT(errors(kernel("  x = " + name + "(x);\n")),
                HasSubstr(name + " is CUDA's, which kernels and hooks do not call: write " + instead))
        << name;
  }
  EXPECT_THAT(errors(kernel("  x = ::expf(x);\n")), HasSubstr("expf is CUDA's")) << "by its full name";
}

TEST(cuda_names, are_refused_by_the_emulated_device) {
  each_name_is_refused([](const std::string& source) { return emulated_errors(source); });
}

TEST(cuda_names, are_refused_by_clang) {
  for (const char* name : {"expf", "exp"})
    EXPECT_THAT(emulated_errors(kernel("  x = " + std::string(name) + "(x);\n"), true),
                HasSubstr(std::string(name) + " is CUDA's, which kernels and hooks do not call: write ptx::exp2_approx"));
}

TEST(cuda_names, are_refused_by_nvrtc) {
  if (!jit::NvrtcCompiler::get()) GTEST_SKIP() << "needs NVRTC";
  each_name_is_refused(gpu_errors);
}

/// What is written instead compiles in both worlds, each expression of one argument.
TEST(cuda_names, have_functions_that_are_there) {
  std::string body;
  for (const auto& [name, instead] : names())
    if (const std::string first = instead.substr(0, instead.find(", or"));
        std::regex_search(first, std::regex("^ptx::\\w+\\(x\\)( \\* [0-9.f]+)?$|^ptx::\\w+\\(x \\* [0-9.f]+\\)$")) &&
        first.find("bits_of") == std::string::npos)
      body += "  x = " + first + ";\n";
  body +=
      "  f32 sine, cosine;\n  ptx::sincos(x, sine, cosine);\n  x = ptx::fma(ptx::div(sine, cosine), ptx::fmax(x, sine), ptx::fmin(x, ptx::fmax_nan(x, cosine)));\n  ptx::sync_warp();\n  ptx::sync_block();\n"
      "  x = x + ptx::shfl(x, 0) + ptx::shfl_xor(x, 1) + ptx::shfl_up(x, 1) + ptx::shfl_down(x, 1);\n  x = to_f32(from_f32<bf16>(x)) + to_f32(from_f32<f16>(x));\n";
  EXPECT_EQ(emulated_errors(kernel(body)), "") << body;
  if (jit::NvrtcCompiler::get()) { EXPECT_EQ(gpu_errors(kernel(body)), "") << body; }
}

}  // namespace
}  // namespace quern
