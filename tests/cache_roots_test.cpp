// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Several roots, packs, machines without a compiler, and what eviction may take.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "cache_processes.h"
#include "cli_process.h"
#include "quern/device/emulated.h"
#include "quern/jit/cache_disk.h"
#include "quern/jit/cache_locks.h"
#include "quern/jit/kernel_table.h"
#include "quern/jit/pack.h"
#include "quern/testing/case_args.h"

namespace quern::cache_test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class cache_roots : public Cache {
 protected:
  void put(const std::string& root, const std::string& bytes) { ASSERT_NE(put_with_binary(root, specs_[0], target(), bytes), ""); }
  std::string image() {
    const jit::Compiled c = jit::build(specs_[0], target());
    return {c.image.begin(), c.image.end()};
  }
  void pack_all(const std::string& file) {
    std::map<std::string, jit::EntryFiles> entries;
    const jit::DiskCache cache(root_);
    for (const jit::EntryStat& e : cache.list()) entries[e.name] = cache.files(e.name);
    jit::write_pack(file, entries);
  }
};

TEST_F(cache_roots, the_first_root_that_has_a_whole_entry_serves_it) {
  const std::string a = base_ + "/a", b = base_ + "/b", wanted = jit::render(specs_[0]);
  put(a, "binary of a");
  put(b, "binary of b");
  setenv("QN_CACHE_ROOTS", (a + ":" + base_ + "/missing:" + b).c_str(), 1);
  EXPECT_EQ(image(), "binary of a");
  EXPECT_FALSE(fs::exists(root_)) << "nothing is written when a read-only root has it";
  setenv("QN_CACHE_ROOTS", (base_ + "/missing:" + b + ":" + a).c_str(), 1);
  EXPECT_EQ(image(), "binary of b");
  // Damaged in the first: the next. Damaged in all: compiled, into the writable one alone.
  const auto damage = [](const std::string& root) {
    for (const auto& e : jit::DiskCache(root).list()) write_file(root + "/" + e.name + "/kernel.so", "binary of ?");
  };
  damage(b);
  EXPECT_EQ(image(), "binary of a");
  damage(a);
  EXPECT_EQ(image(), wanted);
  EXPECT_EQ(jit::DiskCache(root_).list().size(), 1u);
  EXPECT_EQ(jit::DiskCache(a).list().size() + jit::DiskCache(b).list().size(), 2u);
}

TEST_F(cache_roots, a_read_only_root_serves_entries_of_another_compiler_and_the_writable_one_does_not) {
  const jit::Compiled made = jit::build(specs_[0], target());
  const std::string foreign = base_ + "/foreign";
  fs::create_directories(foreign);
  jit::Digests d = jit::digests(specs_[0], target());
  d.provenance = "0123abcd";
  for (const std::string& root : {foreign, root_})
    ASSERT_NE(
        jit::DiskCache(root).put(d, jit::meta_of(specs_[0], target(), d, made), jit::render(specs_[0]), jit::render(specs_[0]), false), "");
  fs::remove_all(made.folder);
  take_compiles();
  EXPECT_FALSE(jit::build(specs_[0], target()).from_cache);
  EXPECT_EQ(take_compiles(), 1);
  setenv("QN_CACHE_ROOTS", foreign.c_str(), 1);
  const jit::Compiled found = jit::build(specs_[0], target());
  EXPECT_TRUE(found.from_cache);
  EXPECT_EQ(found.provenance, "0123abcd");
}

TEST_F(cache_roots, a_pack_serves_what_the_folder_held) {
  build_all(0);
  const std::string pack = base_ + "/kernels.pack";
  pack_all(pack);
  remove_folder(root_);
  setenv("QN_CACHE_ROOTS", pack.c_str(), 1);
  take_compiles();
  EXPECT_TRUE(build_all(0));
  EXPECT_TRUE(build_all(1));
  EXPECT_EQ(take_compiles(), 0);
  EXPECT_EQ(jit::DiskCache(root_).list().size(), specs_.size()) << "files that can be loaded, once each";
}

TEST_F(cache_roots, a_damaged_pack_is_never_a_wrong_kernel) {
  build_all(0);
  const std::string whole = base_ + "/whole.pack";
  pack_all(whole);
  const std::string bytes = *read_file(whole);
  Random random(3);
  for (int round = 0; round < 40; ++round) {
    std::string damaged = bytes;
    if (round % 4 == 0) damaged.resize(size_t(random.below(i64(bytes.size()))));
    else damaged[size_t(random.below(i64(bytes.size())))] ^= char(1 << random.below(8));
    const std::string file = base_ + "/damaged" + std::to_string(round) + ".pack";
    write_file(file, damaged);
    remove_folder(root_);
    setenv("QN_CACHE_ROOTS", file.c_str(), 1);
    const Outcome o = run([&] { return build_all(0); });
    EXPECT_TRUE(o.right) << round << ": " << o.log;
    EXPECT_TRUE(round % 4 != 0 || o.log.find("it is not used") != std::string::npos) << o.log;
  }
}

// ---- real kernels, by the command ---------------------------------------------------------------------------------------

TEST_F(cache_roots, a_machine_without_compilers_runs_from_packs) {
  unsetenv("QN_JIT_HOST_COMPILER");
  const std::vector<std::string> call = {"norm.rms_norm", "tokens=3", "hidden=96"};
  const auto with = [&](std::vector<std::string> before, const std::vector<std::string>& after) {
    before.insert(before.end(), call.begin(), call.end());
    before.insert(before.end(), after.begin(), after.end());
    return before;
  };
  for (const std::string compiler : {"g++", "clang++"}) {
    SCOPED_TRACE(compiler);
    const std::string emu = base_ + "/" + compiler + ".pack", gpu = base_ + "/sm_90a.pack",
                      filled = "QN_CACHE_DIR=" + base_ + "/filled." + compiler;
    const ProcessResult made = command(with({"plan", "--compile"}, {"--device", "emu"}), {filled, "QN_JIT_HOST_COMPILER=" + compiler});
    ASSERT_EQ(made.status, 0) << made.output;
    ASSERT_EQ(command(with({"plan", "--compile"}, {"--arch", "sm_90a"}), {filled}).status, 0);
    EXPECT_THAT(command({"cache", "pack", emu}, {filled}).output,
                HasSubstr("expected one of those that the cache has kernels for: emu, sm_90a"));
    ASSERT_EQ(command({"cache", "pack", emu, "--arch", "emu"}, {filled}).status, 0);
    ASSERT_EQ(command({"cache", "pack", gpu, "--arch", "sm_90a"}, {filled}).status, 0);

    const std::vector<std::string> bare = {"PATH=/nowhere", "QN_JIT_NVRTC=/nowhere/libnvrtc.so.13",
                                           "QN_CACHE_DIR=" + base_ + "/bare." + compiler};
    const auto bare_with = [&](const std::string& variable) {
      std::vector<std::string> all = bare;
      all.push_back(variable);
      return all;
    };
    EXPECT_EQ(command(with({"run"}, {"--device", "emu"}), bare).status, 3) << "no pack, no compiler";
    const ProcessResult ran = command(with({"run"}, {"--device", "emu"}), bare_with("QN_CACHE_ROOTS=" + emu));
    EXPECT_EQ(ran.status, 0) << ran.output;
    EXPECT_THAT(ran.output, HasSubstr("right"));
    const ProcessResult taken = command(with({"plan", "--compile"}, {"--arch", "sm_90a"}), bare_with("QN_CACHE_ROOTS=" + gpu));
    EXPECT_EQ(taken.status, 0) << taken.output;
    EXPECT_THAT(taken.output, HasSubstr("in the cache as " + gpu));
    EXPECT_NE(command(with({"plan", "--compile"}, {"--arch", "sm_80"}), bare_with("QN_CACHE_ROOTS=" + gpu)).status, 0) << "another arch";
  }
}

TEST_F(cache_roots, the_command_lists_verifies_and_removes) {
  for (size_t i = 0; i < specs_.size(); ++i) made_elsewhere(i);
  const auto json = [&](const std::vector<std::string>& words) { return nlohmann::json::parse(command(words).output, nullptr, false); };
  EXPECT_EQ(json({"cache", "ls", "--json"}).size(), 4u);
  EXPECT_EQ(command({"cache", "verify"}).status, 0);
  const std::string name = jit::DiskCache(root_).list()[1].name;
  write_file(root_ + "/" + name + "/kernel.cu", "?");
  EXPECT_EQ(command({"cache", "verify"}).status, 1);
  EXPECT_THAT(command({"cache", "verify"}).output,
              AllOf(HasSubstr(name + ": its source is damaged"), HasSubstr("4 kernels, 1 damaged"), Not(HasSubstr("rm "))));
  const std::string pack = base_ + "/all.pack";
  EXPECT_EQ(command({"cache", "pack", pack}).status, 1) << "one was left out";
  EXPECT_EQ(json({"cache", "prune", "--json"})["removed"], 1);
  EXPECT_EQ(command({"cache", "verify"}).status, 0);
  EXPECT_EQ(json({"cache", "clear", "--json"})["removed"], 3);
  EXPECT_THAT(jit::DiskCache(root_).list(), ::testing::IsEmpty());
  EXPECT_EQ(json({"cache", "unpack", pack, "--json"})["unpacked"], 3);
  EXPECT_EQ(json({"cache", "unpack", pack, "--json"})["unpacked"], 0);
  EXPECT_EQ(json({"cache", "verify", "--json"})["entries"], 3);
  EXPECT_EQ(command({"cache", "unpack", root_ + "/" + jit::DiskCache(root_).list()[0].name + "/kernel.cu"}).status, 2);
}

// ---- eviction -------------------------------------------------------------------------------------------------------------

class cache_eviction : public Cache {
 protected:
  /// All kernels, the i-th unused for i hours.
  void age_all() {
    for (size_t i = 0; i < specs_.size(); ++i) {
      folders_.push_back(made_elsewhere(i));
      const auto when = fs::file_time_type::clock::now() - std::chrono::hours(i);
      for (const auto& f : fs::directory_iterator(folders_[i])) fs::last_write_time(f.path(), when);
      fs::last_write_time(folders_[i], when);
    }
  }
  std::vector<bool> there() const {
    std::vector<bool> all;
    for (const std::string& f : folders_) all.push_back(fs::exists(f));
    return all;
  }
  std::vector<std::string> folders_;
};

TEST_F(cache_eviction, takes_what_was_not_used_for_longest_until_the_rest_fits) {
  age_all();
  const jit::DiskCache cache(root_);
  i64 total = 0;
  for (const auto& e : cache.list()) total += e.bytes;
  EXPECT_EQ(cache.evict(total), 0);
  EXPECT_EQ(cache.evict(total - 1), 1);
  EXPECT_THAT(there(), ElementsAre(true, true, true, false));
  EXPECT_EQ(cache.evict(0), 2);
  EXPECT_THAT(there(), ElementsAre(true, false, false, false)) << "the first is fresh";
  EXPECT_THAT(litter(), ::testing::IsEmpty());
}

TEST_F(cache_eviction, a_use_makes_an_entry_fresh) {
  age_all();
  EXPECT_TRUE(run([&] { return right(jit::build(specs_[2], target()), specs_[2]); }).right);
  EXPECT_EQ(jit::DiskCache(root_).evict(0), 2);
  EXPECT_THAT(there(), ElementsAre(true, false, true, false));
}

TEST_F(cache_eviction, leaves_what_another_process_has_mapped) {
  age_all();
  int ready[2], done[2];
  ASSERT_EQ(pipe(ready) + pipe(done), 0);
  const pid_t user = start(
      [&] {
        jit::CacheLocks::of(root_).hold_in_use(fs::path(folders_[3]).filename().string());
        char byte;
        ::close(done[1]);
        if (::write(ready[1], "x", 1) != 1) return false;
        while (::read(done[0], &byte, 1) < 0) {}
        return true;
      },
      1);
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_EQ(jit::DiskCache(root_).evict(0), 2);
  EXPECT_THAT(there(), ElementsAre(true, false, false, true));
  ::close(done[1]);
  EXPECT_TRUE(finish(user, 1).right);
  EXPECT_EQ(jit::DiskCache(root_).evict(0), 1) << "its lock ended with it";
  for (const int fd : {ready[0], ready[1], done[0]}) ::close(fd);
}

/// A publish holds the limit by itself.
TEST_F(cache_eviction, happens_when_an_entry_is_published) {
  age_all();
  setenv("QN_CACHE_LIMIT_MB", "0", 1);
  jit::build(rms_norm_spec(2048), target(), true);
  EXPECT_THAT(there(), ElementsAre(true, false, false, false));
}

/// An entry that is whole but cannot be loaded, as one from a machine with another libc.
TEST_F(cache_eviction, an_entry_that_does_not_load_is_compiled_again) {
  unsetenv("QN_JIT_HOST_COMPILER");
  const Op& op = find_op("norm.rms_norm");
  testing::CaseArgs args(op, {{"tokens", 3}, {"hidden", 96}}, 1);
  const auto device = make_emulated_device(device_info_of(Arch{}), {});
  const jit::KernelSpec spec = make_plan(op, bind(op, args.args(), {}), device->info()).launches[0].spec;
  const jit::Digests d = jit::digests(spec, target());
  jit::Compiled c;
  c.entry = "quern_entry";
  const std::string text = "no shared object";
  c.image.assign(text.begin(), text.end());
  ASSERT_NE(jit::DiskCache(root_).put(d, jit::meta_of(spec, target(), d, c), jit::render(spec), text, false), "");
  const i64 before = jit::counters().compiled;
  quern::run(op, args.args(), {.device = device.get()});
  EXPECT_EQ(jit::counters().compiled, before + 1);
  EXPECT_GT(jit::build(spec, target()).image.size(), text.size()) << "it took the entry's place";
}

}  // namespace
}  // namespace quern::cache_test
