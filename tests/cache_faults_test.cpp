// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What can happen to a cache folder that processes share: races, kills, damage, no room, no rights, a file system that lies.
// Never a wrong kernel, never a hang, at worst one more compile. The table at the end is the one of docs/cache.md.
#include <gmock/gmock.h>
#include <grp.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <fstream>

#include "cache_processes.h"
#include "full_sweep.h"
#include "quern/jit/cache_disk.h"
#include "quern/jit/cache_roots.h"

namespace quern::cache_test {

namespace fs = std::filesystem;
using jit::CacheStep;

namespace {

class cache_faults : public Cache {
 protected:
  static void TearDownTestSuite() {
    std::printf(
        "\n| fault | rounds | processes | wrong kernels | hangs | errors | compiles per key | recoveries logged |\n|---|---|---|---|---|---|---|---|\n");
    for (const Tally& t : rows())
      std::printf("| %s | %d | %d | %d | %d | %d | %.2f | %d |\n", t.fault.c_str(), t.rounds, t.processes, t.wrong, t.hangs, t.errors,
                  t.compiles_per_key, t.recoveries);
    std::printf("\n");
    rows().clear();
  }
  static std::vector<Tally>& rows() {
    static std::vector<Tally> all;
    return all;
  }
  void finish_row(Tally t, int compiles, int keys) {
    t.compiles_per_key = double(compiles) / keys;
    EXPECT_EQ(t.wrong, 0) << t.fault;
    EXPECT_EQ(t.hangs, 0) << t.fault;
    rows().push_back(std::move(t));
  }

  /// `rounds` times: an empty folder (if `cold`), `prepare`, then processes race for all kernels.
  Tally race_rounds(const std::string& fault, int processes, int rounds, const std::function<void()>& prepare = [] {}) {
    Tally t{fault, rounds};
    take_compiles();
    for (int round = 0; round < rounds; ++round) {
      remove_folder(root_);
      prepare();
      race(processes, t);
      EXPECT_THAT(litter(), ::testing::IsEmpty());
    }
    compiles_ = take_compiles();
    return t;
  }
  int compiles_ = 0;
  const int rounds_ = full_sweep() ? 200 : 6;
};

int kill_at_step = -1;
int stop_here(CacheStep step) {
  if (int(step) == kill_at_step) ::kill(getpid(), SIGKILL);
  return 0;
}
int report_stale(CacheStep step) { return step == CacheStep::renamed ? ESTALE : 0; }
int report_io_once(CacheStep step) {
  static bool said = false;
  if (step != CacheStep::renamed || std::exchange(said, true)) return 0;
  return EIO;
}

TEST_F(cache_faults, race_of_16_processes_compiles_each_kernel_once) {
  const Tally t = race_rounds("none: 16 processes, cold", 16, rounds_);
  finish_row(t, compiles_, rounds_ * int(specs_.size()));
  EXPECT_EQ(compiles_, rounds_ * int(specs_.size()));
}

TEST_F(cache_faults, race_without_locks_is_right) {
  jit::cache_hooks().locks_work = false;
  const int rounds = std::max(3, rounds_ / 4);
  const Tally t = race_rounds("locks do not work: 16 processes, cold", 16, rounds);
  finish_row(t, compiles_, rounds * int(specs_.size()));
  EXPECT_GE(compiles_, rounds * int(specs_.size()));
}

TEST_F(cache_faults, a_rename_that_fails_after_it_succeeded) {
  for (const auto& [name, hook] : {std::pair{"rename reports ESTALE, but was done", &report_stale},
                                   std::pair{"rename reports EIO once, but was done", &report_io_once}}) {
    jit::cache_hooks().at = hook;
    const int rounds = std::max(2, rounds_ / 4);
    const Tally t = race_rounds(name, 8, rounds);
    finish_row(t, compiles_, rounds * int(specs_.size()));
    EXPECT_EQ(compiles_, rounds * int(specs_.size()));
  }
}

TEST_F(cache_faults, a_process_that_is_killed_at_any_step) {
  static const char* const names[] = {"locked",  "folder made", "binary written", "meta.json written", "damaged entry moved away",
                                      "renamed", "evicting"};
  static_assert(std::size(names) == size_t(CacheStep::count));
  const int rounds = full_sweep() ? 20 : 1;
  for (int step = 0; step < int(CacheStep::count); ++step) {
    Tally t{std::string("kill -9 when ") + names[step], rounds};
    int compiles = 0;
    for (int round = 0; round < rounds; ++round) {
      remove_folder(root_);
      // A damaged entry is in the way, and an old one must go: so that one publish goes through every step.
      const std::string damaged = made_elsewhere(0), old = made_elsewhere(1);
      fs::resize_file(damaged + "/kernel.so", 10);
      const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(48);
      for (const auto& f : fs::directory_iterator(old)) fs::last_write_time(f.path(), long_ago);
      fs::last_write_time(old, long_ago);
      setenv("QN_CACHE_LIMIT_MB", "0", 1);
      take_compiles();
      kill_at_step = step;
      jit::cache_hooks().at = stop_here;
      const Outcome killed = run([&] { return right(jit::build(specs_[0], target()), specs_[0]); });
      jit::cache_hooks().at = nullptr;
      unsetenv("QN_CACHE_LIMIT_MB");
      EXPECT_EQ(killed.killed_by, SIGKILL) << names[step] << " was not reached: " << killed.log;
      t.add(killed);
      race(4, t);
      compiles += take_compiles();
      EXPECT_THAT(litter(), ::testing::IsEmpty()) << names[step];
    }
    finish_row(t, compiles, rounds * int(specs_.size()));
  }
}

TEST_F(cache_faults, damaged_entries) {
  const auto flip = [](const std::string& path, size_t bit) {
    std::string bytes = *read_file(path);
    bytes[bit / 8 % bytes.size()] = char(bytes[bit / 8 % bytes.size()] ^ (1 << bit % 8));
    write_file(path, bytes);
  };
  Random random(7);
  const int flips = full_sweep() ? 400 : 25;
  struct Fault {
    const char* name;
    int rounds;
    std::function<void(const std::string& file, const std::string& other)> damage;
  };
  const std::vector<Fault> faults = {
      {"a bit flipped", flips, [&](const std::string& f, const std::string&) { flip(f, size_t(random.next() >> 8)); }},
      {"cut short", 5,
       [&](const std::string& f, const std::string&) { fs::resize_file(f, fs::file_size(f) * size_t(random.below(100)) / 100); }},
      {"longer", 1, [](const std::string& f, const std::string&) { std::ofstream(f, std::ios::app) << "x"; }},
      {"missing", 1, [](const std::string& f, const std::string&) { fs::remove(f); }},
      {"of another entry", 1, [](const std::string& f, const std::string& o) { write_file(f, *read_file(o)); }},
      {"a folder", 1, [](const std::string& f, const std::string&) { fs::remove(f), fs::create_directory(f); }},
      {"a pipe that nobody writes", 1, [](const std::string& f, const std::string&) { fs::remove(f), ::mkfifo(f.c_str(), 0644); }},
  };
  const jit::Compiled other = jit::build(specs_[1], target());
  for (const char* file : {"kernel.so", "meta.json", "kernel.cu"}) {
    const bool run_by_nobody = std::string(file) == "kernel.cu";
    for (const Fault& fault : faults) {
      Tally t{std::string(file) + " " + fault.name, fault.rounds};
      int compiles = 0;
      for (int round = 0; round < fault.rounds; ++round) {
        const jit::Compiled whole = jit::build(specs_[0], target());
        const std::string name = fs::path(whole.folder).filename().string();
        fault.damage(whole.folder + "/" + file, other.folder + "/" + file);
        const bool changed_in_meaning = [&] {
          try {
            jit::check_whole_entry(jit::DiskCache(root_).files(name));
            return false;
          } catch (const Error&) { return true; }
        }();
        // White space of JSON may change freely; nothing else may.
        EXPECT_TRUE(changed_in_meaning || std::string(file) == "meta.json") << t.fault << ": `quern cache verify` sees nothing";
        take_compiles();
        t.add(run([&] { return right(jit::build(specs_[0], target()), specs_[0]); }));
        const int again = take_compiles();
        compiles += again;
        EXPECT_EQ(again, changed_in_meaning && !run_by_nobody ? 1 : 0) << t.fault;
        EXPECT_TRUE(jit::build(specs_[0], target()).from_cache) << t.fault;
        if (run_by_nobody) remove_folder(whole.folder);
      }
      EXPECT_EQ(t.errors, 0) << t.fault;
      finish_row(t, compiles, fault.rounds);
    }
  }
}

/// Valid JSON, right key, right binary: only meta.json's checksum of itself tells.
TEST_F(cache_faults, a_meta_json_that_says_something_else) {
  for (const auto& [from, to] : {std::pair{"\"quern_entry\"", "\"other_entry\""}, std::pair{"\"spill_bytes\": 0", "\"spill_bytes\": 8"}}) {
    const jit::Compiled whole = jit::build(specs_[0], target());
    std::string text = *read_file(whole.folder + "/meta.json");
    ASSERT_NE(text.find(from), std::string::npos);
    write_file(whole.folder + "/meta.json", text.replace(text.find(from), std::string(from).size(), to));
    take_compiles();
    Tally t{std::string("meta.json says ") + to, 1};
    t.add(run([&] { return right(jit::build(specs_[0], target()), specs_[0]); }));
    const int compiles = take_compiles();
    EXPECT_EQ(compiles, 1) << to;
    finish_row(t, compiles, 1);
  }
}

TEST_F(cache_faults, something_else_under_an_entrys_name) {
  const jit::Compiled other = jit::build(specs_[1], target());
  const std::vector<std::pair<const char*, std::function<void(const std::string&)>>> things = {
      {"a whole entry of another kernel", [&](const std::string& e) { fs::copy(other.folder, e); }},
      {"a file", [](const std::string& e) { write_file(e, "?"); }},
      {"an empty folder", [](const std::string& e) { fs::create_directory(e); }},
      {"a pipe", [](const std::string& e) { ::mkfifo(e.c_str(), 0644); }},
      {"a link to nowhere", [](const std::string& e) { fs::create_symlink("/nowhere/at/all", e); }},
      {"a link to itself", [](const std::string& e) { fs::create_symlink(fs::path(e).filename(), e); }},
  };
  for (const auto& [what, make] : things) {
    const jit::Compiled whole = jit::build(specs_[0], target());
    fs::remove_all(whole.folder);
    make(whole.folder);
    take_compiles();
    Tally t{std::string("in an entry's place ") + what, 1};
    t.add(run([&] { return right(jit::build(specs_[0], target()), specs_[0]); }));
    EXPECT_EQ(t.errors, 0) << what;
    EXPECT_TRUE(jit::build(specs_[0], target()).from_cache) << what;
    finish_row(t, take_compiles(), 1);
  }
}

/// A small disk where that can be had, and in any case a limit of the process, under which nothing can be written anywhere.
TEST_F(cache_faults, a_full_disk) {
  const jit::Compiled whole = jit::build(specs_[1], target());
  const std::string small = base_ + "/small";
  fs::create_directory(small);
  if (::mount("none", small.c_str(), "tmpfs", 0, "size=64k") == 0) {
    setenv("QN_CACHE_DIR", small.c_str(), 1);
    take_compiles();
    Tally t{"full disk", 1};
    t.add(run([&] { return build_all(0); }));
    EXPECT_EQ(t.errors, 0);
    EXPECT_GT(t.recoveries, 0);
    EXPECT_THAT(jit::DiskCache(small).list(), ::testing::IsEmpty());
    setenv("QN_CACHE_DIR", root_.c_str(), 1);
    ::umount2(small.c_str(), MNT_DETACH);
    finish_row(t, take_compiles(), int(specs_.size()));
  }
  Tally t{"no file may exceed 1 KB, /tmp neither", 1};
  const Outcome o = run([&] {
    const rlimit limit = {1024, 1024};
    setrlimit(RLIMIT_FSIZE, &limit);
    // A cubin needs no file at all; a kernel for the emulated device does.
    const jit::Digests d = jit::digests(specs_[0], target());
    jit::Compiled c;
    c.image.assign(5000, 'x');
    const std::string kept = jit::DiskCache(root_).put(d, jit::meta_of(specs_[0], target(), d, c), "", std::string(5000, 'x'), false);
    if (!kept.empty()) return false;
    if (!right(jit::build(specs_[1], target()), specs_[1])) return false;  // reading goes on
    jit::build(specs_[0], target());
    return true;
  });
  t.add(o);
  EXPECT_TRUE(o.failed) << o.log;
  EXPECT_THAT(o.log, ::testing::HasSubstr("nor /tmp"));
  EXPECT_THAT(litter(), ::testing::IsEmpty());
  finish_row(t, take_compiles(), 1);
}

TEST_F(cache_faults, folders_that_cannot_be_written) {
  const auto as_nobody = [&] {  // root may write everywhere
    if (geteuid() == 0 && (setgroups(0, nullptr) != 0 || seteuid(65534) != 0)) _exit(5);
    return build_all(0);
  };
  build_all(0);  // what is there is found
  ::chmod(root_.c_str(), 0555);
  take_compiles();
  Tally filled{"unwritable folder, filled", 1};
  filled.add(run(as_nobody));
  EXPECT_EQ(filled.errors, 0);
  finish_row(filled, take_compiles(), int(specs_.size()));
  ::chmod(root_.c_str(), 0755);
  remove_folder(root_);
  fs::create_directory(root_);
  ::chmod(root_.c_str(), 0555);
  Tally empty{"unwritable folder, empty", 1};
  empty.add(run(as_nobody));
  EXPECT_EQ(empty.errors, 0);
  EXPECT_GT(empty.recoveries, 0);
  finish_row(empty, take_compiles(), int(specs_.size()));
  ::chmod(root_.c_str(), 0755);
  for (const char* place : {"/proc/no/such", "/dev/null/cache"}) {
    setenv("QN_CACHE_DIR", place, 1);
    Tally t{std::string("QN_CACHE_DIR=") + place, 1};
    t.add(run([&] { return build_all(0); }));
    EXPECT_EQ(t.errors, 0);
    finish_row(t, take_compiles(), int(specs_.size()));
  }
}

TEST_F(cache_faults, a_lock_holder_that_never_ends_is_waited_for_only_so_long) {
  jit::cache_hooks().lock_seconds = 0.3;
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  static int ready_end;
  ready_end = ready[1];
  const pid_t holder = start(
      [&] {
        jit::cache_hooks().at = [](CacheStep step) {
          if (step == CacheStep::locked) {
            if (::write(ready_end, "x", 1) != 1) _exit(6);
            ::pause();
          }
          return 0;
        };
        return right(jit::build(specs_[0], target()), specs_[0]);
      },
      1);
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  Tally t{"a process stops while it holds the lock", 1};
  t.add(run([&] { return right(jit::build(specs_[0], target()), specs_[0]); }, 20));
  EXPECT_EQ(t.errors + t.hangs, 0);
  ::kill(holder, SIGKILL);
  finish(holder, 1);
  ::close(ready[0]);
  ::close(ready[1]);
  finish_row(t, take_compiles(), 1);
}

}  // namespace
}  // namespace quern::cache_test
