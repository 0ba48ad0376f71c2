// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The disk cache and the digests, from the outside: damaged entries, edited sources, racing threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "cache_processes.h"
#include "quern/base/fs.h"
#include "quern/jit/build.h"
#include "quern/jit/denied_compilers.h"
#include "quern/jit/sources.h"
#include "quern/op/schema.h"

namespace quern {
namespace {

namespace fs = std::filesystem;
using cache_test::rms_norm_spec;

class jit_cache : public ::testing::Test {
 protected:
  void SetUp() override {
    root = make_private_folder(::testing::TempDir() + "quern-test.");
    setenv("QN_CACHE_DIR", (root + "/cache").c_str(), 1);
  }
  void TearDown() override {
    unsetenv("QN_CACHE_DIR");
    for (const char* name : {"QN_SOURCE_DIR", "QN_JIT_COMPILER", "QN_JIT_NVCC"}) unsetenv(name);
    remove_folder(root);
  }
  static jit::Target emulated() {
    jit::Target target;
    target.arch = Arch::parse("sm_90a");
    target.emulated = true;
    return target;
  }
  std::string root;
};

TEST_F(jit_cache, serves_the_second_build_from_disk) {
  const jit::Compiled first = jit::build(rms_norm_spec(4096), emulated()), second = jit::build(rms_norm_spec(4096), emulated());
  EXPECT_FALSE(first.from_cache);
  EXPECT_TRUE(second.from_cache);
  EXPECT_EQ(first.folder, second.folder);
  for (const char* file : {"kernel.cu", "kernel.so", "meta.json"}) EXPECT_TRUE(fs::exists(second.folder + "/" + file)) << file;
  const auto digests = jit::digests(rms_norm_spec(4096), emulated());
  EXPECT_EQ(fs::path(second.folder).filename().string(), "norm_row." + digests.identity + "." + digests.provenance);
}

TEST_F(jit_cache, compiles_again_when_an_entry_is_damaged) {
  const jit::Compiled good = jit::build(rms_norm_spec(4096), emulated());
  const auto damage = [&](const std::string& file, const std::function<void(const std::string&)>& how) {
    how(good.folder + "/" + file);
    EXPECT_FALSE(jit::build(rms_norm_spec(4096), emulated()).from_cache) << file;
    EXPECT_TRUE(jit::build(rms_norm_spec(4096), emulated()).from_cache) << file;
  };
  damage("kernel.so", [](const std::string& p) { fs::resize_file(p, fs::file_size(p) / 2); });
  damage("kernel.so", [](const std::string& p) {
    std::fstream f(p, std::ios::in | std::ios::out | std::ios::binary);
    f.seekp(5000);
    f.put('\x5a');
  });
  damage("kernel.so", [](const std::string& p) { fs::remove(p); });
  damage("meta.json", [](const std::string& p) { fs::resize_file(p, 40); });
  damage("meta.json", [](const std::string& p) { fs::remove(p); });
}

TEST_F(jit_cache, does_not_serve_an_entry_of_another_key) {
  const jit::Compiled small = jit::build(rms_norm_spec(128), emulated()), large = jit::build(rms_norm_spec(4096), emulated());
  fs::remove_all(large.folder);
  fs::copy(small.folder, large.folder);  // a foreign entry under this name
  EXPECT_FALSE(jit::build(rms_norm_spec(4096), emulated()).from_cache);
}

/// Another process may be between publishing the entry and opening its binary.
TEST_F(jit_cache, keeps_a_whole_entry_that_somebody_published_first) {
  const jit::Compiled first = jit::build(rms_norm_spec(4096), emulated());
  fs::create_hard_link(first.image_path, root + "/first.so");
  const jit::Compiled second = jit::build(rms_norm_spec(4096), emulated(), true);
  EXPECT_EQ(second.image_path, first.image_path);
  EXPECT_TRUE(fs::equivalent(second.image_path, root + "/first.so"));
  EXPECT_EQ(std::distance(fs::directory_iterator(root + "/cache"), fs::directory_iterator()), 2)
      << "the entry and .quern-locks, nothing else";
}

TEST_F(jit_cache, works_where_the_folder_cannot_be_written) {
  write_file(root + "/file", "not a folder");
  setenv("QN_CACHE_DIR", (root + "/file/cache").c_str(), 1);
  const jit::Compiled c = jit::build(rms_norm_spec(4096), emulated());
  EXPECT_TRUE(fs::exists(c.image_path));
  remove_folder(c.folder);
}

TEST_F(jit_cache, threads_that_want_one_kernel_compile_it_once) {
  int compiled = 0;
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      const bool fresh = !jit::build(rms_norm_spec(4096), emulated()).from_cache;
      std::lock_guard lock(mutex);
      compiled += fresh;
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(compiled, 1);
}

TEST_F(jit_cache, key_changes_with_what_decides_the_code_and_with_nothing_else) {
  const auto identity = [](const jit::KernelSpec& s, const jit::Target& t) { return jit::digests(s, t).identity; };
  const std::string base = identity(rms_norm_spec(4096), emulated());
  EXPECT_NE(identity(rms_norm_spec(128), emulated()), base);
  jit::Target checked = emulated();
  checked.checked = true;
  EXPECT_NE(identity(rms_norm_spec(4096), checked), base);
  setenv("QN_CACHE_DIR", (root + "/elsewhere").c_str(), 1);
  EXPECT_EQ(identity(rms_norm_spec(4096), emulated()), base);
}

TEST_F(jit_cache, an_edited_source_recompiles_exactly_its_dependents) {
  for (const std::string& name : jit::source_names()) {
    const fs::path path = root + "/src/" + name;
    fs::create_directories(path.parent_path());
    write_file(path.string(), jit::source_text(name));
  }
  setenv("QN_SOURCE_DIR", (root + "/src").c_str(), 1);
  const auto identity = [&] { return jit::digests(rms_norm_spec(4096), emulated()).identity; };
  const auto edit = [&](const std::string& name) {
    std::ofstream(root + "/src/" + name, std::ios::app) << "\n// edited\n";
    return identity();
  };
  const std::string before = identity();
  EXPECT_EQ(edit("quern/ops/activation/activate_row/kernel.cuh"), before) << "another op's kernel";
  EXPECT_EQ(edit("quern/kit/ptx/mma.cuh"), before) << "the other world's instructions";
  const std::string after_kit = edit("quern/kit/reduce.cuh");
  EXPECT_NE(after_kit, before);
  EXPECT_NE(edit("quern/ops/norm/norm_row/kernel.cuh"), after_kit);
}

TEST_F(jit_cache, nvcc_makes_the_same_kernel_under_a_key_of_its_own) {
  const char* nvcc = std::getenv("QN_TEST_NVCC");
  if (nvcc && *nvcc) setenv("QN_JIT_NVCC", nvcc, 1);
  for (const char* arch : {"sm_80", "sm_90a"}) {
    jit::Target gpu;
    gpu.arch = Arch::parse(arch);
    unsetenv("QN_JIT_COMPILER");
    const jit::Digests of_nvrtc = jit::digests(rms_norm_spec(4096), gpu);
    const jit::Compiled by_nvrtc = jit::build(rms_norm_spec(4096), gpu);
    setenv("QN_JIT_COMPILER", "nvcc", 1);
    const jit::Digests of_nvcc = jit::digests(rms_norm_spec(4096), gpu);
    if (of_nvcc.provenance.empty()) GTEST_SKIP() << "needs CUDA's headers, of a toolkit with nvcc: tools/install_nvcc.sh";
    const jit::Compiled made = jit::build(rms_norm_spec(4096), gpu), cached = jit::build(rms_norm_spec(4096), gpu);
    EXPECT_THAT(of_nvcc.key_text, testing::HasSubstr(std::string("options nvcc -cubin --gpu-architecture=") + arch + " -std=c++20\n"));
    EXPECT_NE(of_nvcc.identity, of_nvrtc.identity);
    EXPECT_NE(of_nvcc.provenance, of_nvrtc.provenance);
    EXPECT_FALSE(made.from_cache);
    EXPECT_TRUE(cached.from_cache);
    EXPECT_EQ(cached.image, made.image);
    EXPECT_THAT(cached.compiler, testing::MatchesRegex("nvcc [0-9]+\\.[0-9]+\\.[0-9]+"));
    EXPECT_GT(cached.registers, 8);
    EXPECT_EQ(made.entry, by_nvrtc.entry);
    for (const jit::Compiled* c : {&made, &by_nvrtc})
      EXPECT_NE(std::string(c->image.begin(), c->image.end()).find(".text." + made.entry), std::string::npos) << c->compiler;

    const std::string version = made.compiler.substr(5);
    const jit::DeniedCompiler table[] = {{version.c_str(), version.c_str(), "it drops barriers"}};
    jit::deny_compilers_for_test(table);
    EXPECT_THROW(jit::build(rms_norm_spec(4096), gpu), Error) << "neither its kernels nor itself are used";
    jit::deny_compilers_for_test({});
  }
}

/// Else kernels that nobody edited would run, and say that all is right.
TEST_F(jit_cache, a_source_folder_that_can_only_be_a_mistake_is_refused) {
  const auto refused = [&](const std::string& folder, const char* expected) {
    setenv("QN_SOURCE_DIR", folder.c_str(), 1);
    try {
      jit::build(rms_norm_spec(4096), emulated());
      FAIL() << "it was built with " << folder;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::value);
      EXPECT_EQ(e.what(), "QN_SOURCE_DIR is '" + folder + "', expected " + expected);
    }
  };
  const fs::path path = root + "/src/quern/ops/norm/norm_row/kernel.cuh";
  fs::create_directories(path.parent_path());
  write_file(path.string(), jit::source_text("quern/ops/norm/norm_row/kernel.cuh"));
  refused(root + "/nowhere", "a folder");
  refused(root + "/src/quern", "the folder that quern/ lies in");
  setenv("QN_SOURCE_DIR", (root + "/src").c_str(), 1);
  EXPECT_NO_THROW(jit::build(rms_norm_spec(4096), emulated()));
}

TEST_F(jit_cache, a_compile_error_names_phase_lines_and_remedy) {
  const fs::path path = root + "/src/quern/ops/norm/norm_row/kernel.cuh";
  fs::create_directories(path.parent_path());
  write_file(path.string(), jit::source_text("quern/ops/norm/norm_row/kernel.cuh") + "\nint broken = no_such_name;\n");
  setenv("QN_SOURCE_DIR", (root + "/src").c_str(), 1);
  try {
    jit::build(rms_norm_spec(4096), emulated());
    FAIL() << "it compiled";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::compile);
    EXPECT_THAT(e.what(), testing::AllOf(testing::HasSubstr("norm_row<"), testing::HasSubstr("did not compile with"),
                                         testing::HasSubstr("no_such_name"), testing::HasSubstr("QN_JIT_DUMP")));
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(root + "/cache"), fs::directory_iterator()), 1)
      << "a failed compile leaves nothing but .quern-locks";
}

}  // namespace
}  // namespace quern
