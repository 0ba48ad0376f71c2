// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The key of a kernel from both sides: each thing that decides the code changes it alone, and nothing else does.
#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "cache_processes.h"
#include "quern/base/subprocess.h"
#include "quern/device/emulated.h"
#include "quern/jit/cache_entry.h"
#include "quern/jit/denied_compilers.h"
#include "quern/jit/nvrtc_library.h"
#include "quern/jit/sources.h"
#include "quern/testing/case_args.h"
#include "quern/testing/pairwise.h"

namespace quern::cache_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const jit::Target kEmulated{Arch{}, true, false, ""}, kH200{Arch{}, false, false, ""};

std::string identity(const jit::KernelSpec& spec, const jit::Target& target) { return jit::digests(spec, target).identity; }

/// One spec of each kernel that the cases of all ops reach.
std::vector<jit::KernelSpec> all_kernels() {
  std::map<std::string, jit::KernelSpec> found;
  const DeviceInfo h200 = device_info_of(Arch{});
  for (const auto& [id, op] : registry())
    for (const Case& c : testing::pairwise(op->cases, [&, op = op](const Case& c) { return testing::runs(*op, c, h200); })) {
      const Case full = testing::derived(*op, c);
      const testing::ArgsStorage args = testing::fake_args(*op, full);
      const Problem problem = bind(*op, args.get(), testing::options_of(*op, full));
      if (problem.empty) continue;
      const Plan plan = make_plan(*op, problem, h200);
      for (i32 i = 0; i < plan.count; ++i) found.emplace(plan.launches[i].spec.kernel->function, plan.launches[i].spec);
    }
  std::vector<jit::KernelSpec> specs;
  for (const auto& [name, spec] : found) specs.push_back(spec);
  return specs;
}

class cache_key : public ::testing::Test {
 protected:
  void SetUp() override { folder_ = make_private_folder(::testing::TempDir() + "quern-test."); }
  void TearDown() override {
    for (const char* name : {"QN_SOURCE_DIR", "QN_JIT_DEBUG", "QN_CACHE_DIR", "QN_CACHE_ROOTS"}) unsetenv(name);
    remove_folder(folder_);
  }
  void copy_sources() {
    for (const std::string& name : jit::source_names()) {
      const fs::path path = folder_ + "/" + name;
      fs::create_directories(path.parent_path());
      write_file(path.string(), jit::source_text(name));
    }
    setenv("QN_SOURCE_DIR", folder_.c_str(), 1);
  }
  std::string folder_;
};

TEST_F(cache_key, every_field_of_every_config_changes_it) {
  const std::vector<jit::KernelSpec> kernels = all_kernels();
  ASSERT_GE(kernels.size(), 8u);
  std::set<std::string> all;
  size_t count = 0;
  for (const jit::KernelSpec& spec : kernels) {
    all.insert(identity(spec, kH200)), ++count;
    for (u32 at = 0; at < spec.kernel->config_bytes; at += 4) {
      jit::KernelSpec changed = spec;
      i32 value;
      std::memcpy(&value, changed.config + at, 4);
      value = value > 0 ? value - 1 : 1;  // a DType stays one
      std::memcpy(changed.config + at, &value, 4);
      EXPECT_TRUE(all.insert(identity(changed, kH200)).second) << jit::print(spec) << ", byte " << at;
      ++count;
    }
  }
  EXPECT_EQ(all.size(), count);
}

/// Names of the files in a key: the lines "<name> <32 hex>".
std::vector<std::string> files_of(const jit::Digests& d) {
  std::vector<std::string> names;
  std::istringstream lines(d.key_text);
  for (std::string line; std::getline(lines, line);)
    if (line.rfind("quern/", 0) == 0) names.push_back(line.substr(0, line.find(' ')));
  return names;
}

TEST_F(cache_key, a_byte_of_any_included_file_changes_it) {
  copy_sources();
  for (const jit::KernelSpec& spec : all_kernels())
    for (const jit::Target& target : {kEmulated, kH200}) {
      const jit::Digests base = jit::digests(spec, target);
      const std::vector<std::string> files = files_of(base);
      EXPECT_THAT(files, ::testing::Contains(spec.kernel->header));
      EXPECT_THAT(files, ::testing::Contains("quern/kit/abi.h"));
      for (const std::string& file : files) {
        const std::string text = *read_file(folder_ + "/" + file);
        write_file(folder_ + "/" + file, text + " ");
        EXPECT_NE(identity(spec, target), base.identity) << file << " of " << spec.kernel->function;
        write_file(folder_ + "/" + file, text);
      }
      EXPECT_EQ(identity(spec, target), base.identity);
    }
}

TEST_F(cache_key, options_arch_and_abi_change_it) {
  const jit::KernelSpec spec = rms_norm_spec(4096);
  jit::Target checked = kEmulated, asan = kEmulated, clang = kEmulated, ampere = kH200, plain = kH200;
  checked.checked = true;
  asan.asan = true;
  clang.host_compiler = "clang++";
  ampere.arch = Arch::parse("sm_80");
  plain.arch = Arch{90, 0};
  std::set<std::string> all;
  for (const char* debug : {"0", "1", "2"}) {
    setenv("QN_JIT_DEBUG", debug, 1);
    for (const jit::Target& target : {kEmulated, checked, asan, clang, kH200, ampere, plain})
      for (const int abi : {1000, 1001}) EXPECT_TRUE(all.insert(jit::digests(spec, target, abi).identity).second) << debug;
  }
  unsetenv("QN_JIT_DEBUG");
  EXPECT_THAT(jit::digests(spec, kH200).key_text, HasSubstr("--gpu-architecture=sm_90a -std=c++20"));
  EXPECT_THAT(jit::digests(spec, kEmulated).key_text, HasSubstr("-ffp-contract=off"));
}

TEST_F(cache_key, the_text_of_hooks_changes_it_and_their_place_does_not) {
  jit::KernelSpec spec = rms_norm_spec(4096);
  const jit::Hooks a{"my::Hooks", "hooks", "struct A {};"}, same = a, b{"my::Hooks", "hooks", "struct B {};"};
  const auto with = [&](const jit::Hooks* hooks) {
    spec.hooks = hooks;
    return identity(spec, kH200);
  };
  EXPECT_EQ(with(&a), with(&same));
  EXPECT_NE(with(&a), with(&b));
  EXPECT_NE(with(&a), with(nullptr));
}

TEST_F(cache_key, what_does_not_decide_the_code_does_not_change_it) {
  const jit::KernelSpec spec = rms_norm_spec(4096);
  const std::string emulated = identity(spec, kEmulated), gpu = identity(spec, kH200);
  const auto same = [&](const char* what) {
    EXPECT_EQ(identity(spec, kEmulated), emulated) << what;
    EXPECT_EQ(identity(spec, kH200), gpu) << what;
  };
  copy_sources();
  same("the folder of the sources");
  unsetenv("QN_SOURCE_DIR");
  setenv("QN_CACHE_DIR", (folder_ + "/elsewhere").c_str(), 1);
  setenv("QN_CACHE_ROOTS", "/nowhere", 1);
  setenv("LANG", "tlh", 1);
  same("the environment");
  const auto first = make_emulated_device(device_info_of(Arch{}), {}), second = make_emulated_device(device_info_of(Arch{}), {});
  EXPECT_EQ(identity(spec, jit::target_of(*first)), identity(spec, jit::target_of(*second))) << "the device's ordinal";
  for (const char* arch : {"sm_80", "sm_100a"}) {
    jit::Target other = kEmulated;
    other.arch = Arch::parse(arch);
    EXPECT_EQ(identity(spec, other), emulated) << "emulated code is that of any arch";
  }
  jit::build(rms_norm_spec(128), kEmulated);
  same("what was built before");
  unsetenv("QN_CACHE_ROOTS");
  // Another process, in another folder, by another path of the program, at other pointers and row counts.
  fs::create_symlink(QN_CLI, folder_ + "/program");
  for (const char* tokens : {"tokens=4", "tokens=77", "tokens=100000"}) {
    const ProcessResult other = run_process({"env", "-C", folder_, "-i", "PATH=" + std::string(std::getenv("PATH")), folder_ + "/program",
                                             "plan", "norm.rms_norm", tokens, "hidden=4096", "x.dtype=bf16", "--device", "emu", "--json"});
    const auto j = nlohmann::json::parse(other.output, nullptr, false);
    ASSERT_TRUE(j.is_object()) << other.output;
    EXPECT_EQ(j["key"], emulated) << tokens;
  }
}

class cache_denied : public cache_key {
 protected:
  void TearDown() override {
    jit::deny_compilers_for_test({});
    cache_key::TearDown();
  }
};

TEST_F(cache_denied, versions_in_the_table_are_refused_with_their_reason) {
  const jit::DeniedCompiler table[] = {{"13.7", "13.7", "it drops barriers"}, {"14.1.2", "14.1.9", "it swaps operands"}};
  for (const char* version : {"13.7", "13.7.0", "13.7.99"})
    EXPECT_EQ(jit::denial_of(version, table), "is denied: it drops barriers") << version;
  for (const char* version : {"14.1.2", "14.1.9"}) EXPECT_EQ(jit::denial_of(version, table), "is denied: it swaps operands") << version;
  for (const char* version : {"13.6.99", "13.8", "14.1.1", "14.1.10", "14.2", "12.8", "", "?"})
    EXPECT_EQ(jit::denial_of(version, table), "") << version;
}

TEST_F(cache_denied, a_denied_library_is_rejected_by_its_file_names) {
  for (const char* file : {"/libnvrtc.so.13", "/libnvrtc-builtins.so.13.7"}) write_file(folder_ + file, "");
  const LibraryPlace place{"CUDA_HOME", folder_ + "/libnvrtc.so.13"};
  EXPECT_TRUE(jit::judge_nvrtc(place, 0).accepted);
  const jit::DeniedCompiler table[] = {{"13.7", "13.7", "it drops barriers"}};
  jit::deny_compilers_for_test(table);
  EXPECT_FALSE(jit::judge_nvrtc(place, 0).accepted);
  EXPECT_THAT(jit::judge_nvrtc(place, 0).reason, HasSubstr("is 13.7, which is denied: it drops barriers"));
}

TEST_F(cache_denied, what_a_denied_compiler_made_is_not_used_and_it_makes_no_more) {
  setenv("QN_CACHE_DIR", folder_.c_str(), 1);
  const jit::Compiled made = jit::build(rms_norm_spec(4096), kH200);
  ASSERT_THAT(made.compiler, ::testing::MatchesRegex("NVRTC [0-9]+\\.[0-9]+\\.[0-9]+")) << "the version of ptxas, from the cubin";
  EXPECT_TRUE(jit::build(rms_norm_spec(4096), kH200).from_cache);
  const std::string version = made.compiler.substr(6);
  const jit::DeniedCompiler table[] = {{version.c_str(), version.c_str(), "it drops barriers"}};
  jit::deny_compilers_for_test(table);
  try {
    jit::build(rms_norm_spec(4096), kH200);
    FAIL() << "it was used";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::compile);
    EXPECT_THAT(e.what(), HasSubstr("is denied: it drops barriers"));
  }
}

}  // namespace
}  // namespace quern::cache_test
