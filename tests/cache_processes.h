// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Processes that share a cache folder, with a compiler that costs milliseconds: its "binary" is the source, so that any test
// can tell a right kernel from a wrong one.
#pragma once
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "quern/base/error.h"
#include "quern/base/fs.h"
#include "quern/base/subprocess.h"
#include "quern/jit/build.h"
#include "quern/jit/cache_disk.h"
#include "quern/jit/cache_hooks.h"
#include "quern/jit/freeze.h"
#include "quern/op/schema.h"
#include "quern/ops/norm/rms_norm.h"

namespace quern::cache_test {

inline jit::KernelSpec rms_norm_spec(i64 hidden) {
  norm::RmsNormArgs a;
  a.x = a.out = TensorView(reinterpret_cast<void*>(4096), DType::bf16, {4, hidden});
  a.weight = TensorView(reinterpret_cast<void*>(i64(1) << 44), DType::bf16, {hidden});
  const Op& op = find_op("norm.rms_norm");
  return make_plan(op, bind(op, &a, {}), device_info_of(Arch::parse("sm_90a"))).launches[0].spec;
}

/// Puts an entry of the kernel into `root` whose binary holds other bytes: whole by all checksums. Its name, empty on failure.
inline std::string put_with_binary(const std::string& root, const jit::KernelSpec& spec, const jit::Target& target,
                                   const std::string& bytes) {
  const jit::Digests d = jit::digests(spec, target);
  jit::Compiled c;
  c.entry = "quern_entry";
  c.image.assign(bytes.begin(), bytes.end());
  return jit::DiskCache(root).put(d, jit::meta_of(spec, target, d, c), jit::render(spec), bytes, false);
}

/// A cache folder of the test's own, for the process's own compiler.
class PrivateCache : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = make_private_folder(::testing::TempDir() + "quern-test.");
    setenv("QN_CACHE_DIR", folder_.c_str(), 1);
  }
  void TearDown() override {
    jit::freeze(false);
    for (const char* name : {"QN_CACHE_DIR", "QN_JIT_FROZEN"}) unsetenv(name);
    remove_folder(folder_);
  }
  std::string folder_;
};

/// What became of one process.
struct Outcome {
  bool right = false, wrong = false, failed = false, hung = false;
  int killed_by = 0;
  std::string log;
};

/// What a row of the table counts over all its rounds.
struct Tally {
  std::string fault;
  int rounds = 0, processes = 0, wrong = 0, errors = 0, hangs = 0, recoveries = 0;
  double compiles_per_key = 0;
  void add(const Outcome& o) {
    ++processes;
    wrong += o.wrong;
    errors += o.failed;
    hangs += o.hung;
    for (const char* recovery : {"is not used", "cannot be written", "is full", "not kept", "cannot publish"})
      for (size_t at = o.log.find(recovery); at != std::string::npos; at = o.log.find(recovery, at + 1)) ++recoveries;
  }
};

/// A cache folder below a folder of its own, and the compiler.
class Cache : public ::testing::Test {
 protected:
  void SetUp() override {
    base_ = make_private_folder("/tmp/quern-test.");  // not TempDir: other users shall get there
    ::chmod(base_.c_str(), 0755);
    root_ = base_ + "/cache";
    write_compiler();
    setenv("QN_CACHE_DIR", root_.c_str(), 1);
    setenv("QN_JIT_HOST_COMPILER", (base_ + "/fakecc").c_str(), 1);
    for (const i64 hidden : {97, 128, 1024, 4096}) specs_.push_back(rms_norm_spec(hidden));
    for (size_t i = 1; i < specs_.size(); ++i) ASSERT_NE(jit::render(specs_[i]), jit::render(specs_[i - 1]));
    jit::digests(specs_[0], target());  // asks the compiler for its version, once for all children
  }
  void TearDown() override {
    for (const char* name : {"QN_CACHE_DIR", "QN_JIT_HOST_COMPILER", "QN_CACHE_ROOTS", "QN_CACHE_LIMIT_MB", "QN_JIT_FROZEN"})
      unsetenv(name);
    jit::cache_hooks() = {};
    remove_folder(base_);
  }

  static jit::Target target() {
    jit::Target t;
    t.arch = Arch::parse("sm_90a");
    t.emulated = true;
    return t;
  }
  static bool right(const jit::Compiled& c, const jit::KernelSpec& spec) {
    const std::string wanted = jit::render(spec);
    return std::string(c.image.begin(), c.image.end()) == wanted && read_file(c.image_path).value_or("") == wanted;
  }

  /// Runs `body` in a child; true from it means right. A child that takes longer than `seconds` hangs.
  pid_t start(const std::function<bool()>& body, int id, int seconds = 60) {
    const std::string log = log_of(id);
    const pid_t child = fork();
    if (child != 0) return child;
    if (!freopen(log.c_str(), "w", stderr)) _exit(3);
    alarm(unsigned(seconds));
    try {
      const bool right = body();
      fflush(stderr);
      _exit(right ? 0 : 1);
    } catch (const Error& e) {
      std::fprintf(stderr, "error: %s\n", e.what());
      fflush(stderr);
      _exit(e.kind() == ErrorKind::internal ? 1 : 2);
    } catch (...) { _exit(4); }
  }
  Outcome finish(pid_t child, int id) {
    int status = 0;
    Outcome o;
    while (waitpid(child, &status, 0) < 0) {}
    o.log = read_file(log_of(id)).value_or("");
    if (WIFSIGNALED(status)) {
      o.killed_by = WTERMSIG(status);
      o.hung = o.killed_by == SIGALRM;
    } else {
      o.right = WEXITSTATUS(status) == 0;
      o.wrong = WEXITSTATUS(status) == 1;
      o.failed = WEXITSTATUS(status) > 1;
    }
    return o;
  }
  Outcome run(const std::function<bool()>& body, int seconds = 60) { return finish(start(body, 0, seconds), 0); }

  /// Every kernel once, in an order of the process's own.
  bool build_all(int id) const {
    bool all_right = true;
    for (size_t i = 0; i < specs_.size(); ++i) {
      const jit::KernelSpec& spec = specs_[(i + size_t(id)) % specs_.size()];
      all_right &= right(jit::build(spec, target()), spec);
    }
    return all_right;
  }
  /// The folder of the i-th kernel, made by a process that is gone: what one makes is in use while it lives.
  std::string made_elsewhere(size_t i) {
    EXPECT_TRUE(run([&] { return right(jit::build(specs_[i], target()), specs_[i]); }).right);
    return jit::DiskCache(root_).folder_of(jit::digests(specs_[i], target()));
  }
  /// `count` processes that start together.
  void race(int count, Tally& tally) {
    int gate[2];
    ASSERT_EQ(pipe(gate), 0);
    std::vector<pid_t> children;
    for (int id = 0; id < count; ++id)
      children.push_back(start(
          [&] {
            char byte;
            ::close(gate[1]);
            while (::read(gate[0], &byte, 1) < 0) {}
            return build_all(id);
          },
          id));
    ::close(gate[0]);
    ::close(gate[1]);  // all read the end now
    for (int id = 0; id < count; ++id) {
      const Outcome o = finish(children[size_t(id)], id);
      EXPECT_TRUE(o.right) << tally.fault << ": " << o.log;
      tally.add(o);
    }
  }
  /// Compiles since the last call.
  int take_compiles() {
    const std::string path = base_ + "/compiles", lines = read_file(path).value_or("");
    ::truncate(path.c_str(), 0);
    return int(std::count(lines.begin(), lines.end(), '\n'));
  }
  /// Names in the cache folder beside entries and the lock file, abandoned builds removed.
  std::vector<std::string> litter() const;

  std::string base_, root_;
  std::vector<jit::KernelSpec> specs_;

 private:
  std::string log_of(int id) const { return base_ + "/log" + std::to_string(id); }
  void write_compiler() const {
    const std::string path = base_ + "/fakecc";
    write_file(base_ + "/compiles", "");
    ::chmod((base_ + "/compiles").c_str(), 0666);
    write_file(path,
               "#!/bin/sh\n"
               "[ \"$1\" = --version ] && { echo compiler for tests; exit 0; }\n"
               "compile=no\n"
               "while [ $# -gt 0 ]; do\n"
               "  case $1 in -o) out=$2; shift ;; -c) compile=yes; in=$2; shift ;; *.o) in=$1 ;; esac\n"
               "  shift\n"
               "done\n"
               "[ $compile = no ] || echo $in >>" +
                   base_ +
                   "/compiles\n"
                   "cat \"$in\" >\"$out\"\n");
    ::chmod(path.c_str(), 0755);
  }
};

inline std::vector<std::string> Cache::litter() const {
  const jit::DiskCache cache(root_);
  cache.remove_abandoned();
  std::vector<std::string> names;
  const std::vector<jit::EntryStat> entries = cache.list();
  for (const auto& file : std::filesystem::directory_iterator(root_)) {
    const std::string name = file.path().filename().string();
    if (name == ".quern-locks") continue;
    if (std::none_of(entries.begin(), entries.end(), [&](const jit::EntryStat& e) { return e.name == name; })) names.push_back(name);
  }
  return names;
}

}  // namespace quern::cache_test
