// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What the cache promises whatever surrounds it: sources that are edited, places that keep nothing, entries that do not load,
// packs of strangers, files that are mapped.
#include <gmock/gmock.h>

#include "cache_processes.h"
#include "cli_process.h"
#include "quern/device/emulated.h"
#include "quern/jit/cache_disk.h"
#include "quern/jit/cache_locks.h"
#include "quern/jit/cache_roots.h"
#include "quern/jit/kernel_table.h"
#include "quern/jit/pack.h"
#include "quern/jit/sources.h"
#include "quern/testing/case_args.h"
#include "quern/testing/null_device.h"

namespace quern::cache_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class cache_safety : public Cache {
 protected:
  void TearDown() override {
    unsetenv("QN_SOURCE_DIR");
    Cache::TearDown();
  }
};

// ---- sources --------------------------------------------------------------------------------------------------------------

std::string g_header;
void edit_header() {
  std::string text = *read_file(g_header);
  const size_t at = text.find("rsqrt_approx(");
  write_file(g_header, text.insert(at, "edited_"));
}

/// The compiler's binary is the source and the header, so that an edit shows in it.
TEST_F(cache_safety, a_source_that_is_edited_while_the_lock_is_waited_for_is_not_compiled_under_the_old_key) {
  std::string compiler = *read_file(base_ + "/fakecc");
  const std::string last = "cat \"$in\" >\"$out\"\n";
  ASSERT_NE(compiler.find(last), std::string::npos);
  compiler.replace(
      compiler.find(last), last.size(),
      "cat \"$in\" >\"$out\"\nh=$(dirname \"$in\")/source/quern/ops/norm/norm_row/kernel.cuh; [ ! -e $h ] || cat $h >>\"$out\"\n");
  write_file(base_ + "/fakecc", compiler);
  for (const std::string& name : jit::source_names()) {
    const fs::path path = base_ + "/src/" + name;
    fs::create_directories(path.parent_path());
    write_file(path.string(), jit::source_text(name));
  }
  g_header = base_ + "/src/quern/ops/norm/norm_row/kernel.cuh";
  setenv("QN_SOURCE_DIR", (base_ + "/src").c_str(), 1);
  const std::string before = *read_file(g_header);
  const auto image = [&] {
    const jit::Compiled c = jit::build(specs_[0], target());
    return std::string(c.image.begin(), c.image.end());
  };
  jit::cache_hooks().at = [](jit::CacheStep step) {
    if (step == jit::CacheStep::locked) edit_header();
    return 0;
  };
  EXPECT_THAT(image(), Not(HasSubstr("edited_"))) << "the key is that of the sources before the edit";
  jit::cache_hooks().at = nullptr;
  EXPECT_THAT(image(), HasSubstr("edited_")) << "a key of its own";
  write_file(g_header, before);
  EXPECT_THAT(image(), Not(HasSubstr("edited_")));
  EXPECT_EQ(take_compiles(), 2);
}

// ---- places that keep nothing ---------------------------------------------------------------------------------------------

TEST_F(cache_safety, what_is_not_kept_says_so) {
  jit::Target gpu;
  gpu.arch = Arch::parse("sm_90a");
  EXPECT_TRUE(jit::build(specs_[0], gpu).kept);
  setenv("QN_CACHE_DIR", "/proc/no/such", 1);
  EXPECT_FALSE(jit::build(specs_[0], gpu).kept);
  EXPECT_FALSE(jit::build(specs_[0], target()).kept);
}

TEST_F(cache_safety, the_limit_is_one_whatever_is_asked_for) {
  for (const auto& [asked, bytes] : {std::pair{"1099511627776", i64(1) << 60}, {"0", i64(0)}, {"3", i64(3) << 20}}) {
    setenv("QN_CACHE_LIMIT_MB", asked, 1);
    EXPECT_EQ(jit::cache_limit_bytes(), bytes) << asked;
  }
}

// ---- entries that do not load ---------------------------------------------------------------------------------------------

/// Whole by all checksums, as one from a machine with another libc.
TEST_F(cache_safety, an_entry_of_a_read_only_root_that_does_not_load_gives_way_to_the_next_root) {
  unsetenv("QN_JIT_HOST_COMPILER");
  const Op& op = find_op("norm.rms_norm");
  testing::CaseArgs args(op, {{"tokens", 3}, {"hidden", 96}}, 1);
  const auto device = make_emulated_device(device_info_of(Arch{}), {});
  const jit::KernelSpec spec = make_plan(op, bind(op, args.args(), {}), device->info()).launches[0].spec;
  ASSERT_NE(put_with_binary(base_ + "/bad", spec, target(), "no shared object"), "");
  const auto call = [&] {
    const jit::Counters before = jit::counters();
    quern::run(op, args.args(), {.device = make_emulated_device(device_info_of(Arch{}), {}).get()});
    return int(jit::counters().compiled - before.compiled);
  };
  setenv("QN_CACHE_ROOTS", (base_ + "/bad").c_str(), 1);
  EXPECT_EQ(call(), 1);
  EXPECT_EQ(call(), 0) << "the cache folder has it now";
  setenv("QN_JIT_FROZEN", "1", 1);
  EXPECT_EQ(call(), 0);
  remove_folder(root_);
  try {
    call();
    ADD_FAILURE() << "no error";
  } catch (const Error& e) { EXPECT_EQ(e.kind(), ErrorKind::frozen) << e.what(); }
}

/// Its checksum is of the text printed again, by recursion.
TEST_F(cache_safety, an_entry_that_nests_too_deep_is_damaged) {
  const std::string deep = std::string(200000, '[') + std::string(200000, ']');
  for (const char* key : {"kernel", "meta_checksum"})
    EXPECT_THROW(jit::parse_meta("{\"meta_checksum\": 1, \"" + std::string(key) + "\": " + deep + "}"), Error);
}

/// A device that has no room, or has failed.
class FullDevice : public testing::NullDevice {
 public:
  using NullDevice::NullDevice;
  Function load(ImageKind, std::span<const char>, const std::string&, const std::string&, int) override {
    throw Error(ErrorKind::device, "out of memory");
  }
};

TEST_F(cache_safety, an_entry_is_not_to_blame_that_a_device_is_full) {
  const jit::Compiled made = jit::build(specs_[0], target());
  DeviceInfo info = device_info_of(Arch::parse("sm_90a"));
  info.emulated = 1;
  FullDevice full(info);
  take_compiles();
  const i64 before = jit::counters().compiled;
  try {
    jit::get(specs_[0], full, Stream{});
    ADD_FAILURE() << "no error";
  } catch (const Error& e) { EXPECT_EQ(e.kind(), ErrorKind::device) << e.what(); }
  EXPECT_EQ(take_compiles(), 0);
  EXPECT_EQ(jit::counters().compiled, before);
  EXPECT_TRUE(jit::build(specs_[0], target()).from_cache);
}

/// What lies in the cache is found without the lock.
TEST_F(cache_safety, a_load_waits_for_no_compile) {
  const jit::Compiled made = jit::build(specs_[0], target());
  const jit::Digests d = jit::digests(specs_[0], target());
  int ready[2], done[2];
  ASSERT_EQ(pipe(ready) + pipe(done), 0);
  const pid_t holder = start(
      [&] {
        char byte;
        ::close(done[1]);
        const bool locked = jit::CacheLocks::of(root_).begin_compile(d.identity + d.provenance);
        if (::write(ready[1], "x", 1) != 1) return false;
        while (::read(done[0], &byte, 1) < 0) {}
        return locked;
      },
      1);
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  const Outcome o = run([&] { return jit::build(specs_[0], target()).from_cache; }, 10);
  EXPECT_TRUE(o.right) << o.log;
  ::close(done[1]);
  EXPECT_TRUE(finish(holder, 1).right);
  for (const int fd : {ready[0], ready[1], done[0]}) ::close(fd);
}

// ---- processes of another kind --------------------------------------------------------------------------------------------

TEST_F(cache_safety, a_compiler_whose_end_is_not_seen_has_not_succeeded) {
  EXPECT_TRUE(run([] {
                signal(SIGCHLD, SIG_IGN);
                const ProcessResult r = run_process({"sh", "-c", "echo said; exit 3"});
                return r.status != 0 && r.output.find("said") == 0 && r.output.find("SIGCHLD") != std::string::npos;
              }).right);
}

TEST_F(cache_safety, what_is_kept_nowhere_does_not_pile_up_in_tmp) {
  const auto folders_of = [](pid_t process) {
    int count = 0;
    for (const auto& e : fs::directory_iterator("/tmp")) {
      const std::string name = e.path().filename().string();
      count += name.starts_with(".quern-build.") && name.find("." + std::to_string(process) + ".") != std::string::npos;
    }
    return count;
  };
  setenv("QN_CACHE_DIR", "/proc/no/such", 1);
  const auto compile = [&] { return right(jit::build(specs_[0], target()), specs_[0]); };
  const pid_t first = start(compile, 1);
  EXPECT_TRUE(finish(first, 1).right);
  EXPECT_EQ(folders_of(first), 1);
  EXPECT_TRUE(run(compile).right);
  EXPECT_EQ(folders_of(first), 0);
}

// ---- packs of strangers ---------------------------------------------------------------------------------------------------

TEST_F(cache_safety, a_pack_writes_nothing_outside_the_cache_folder) {
  const jit::Compiled made = jit::build(specs_[0], target());
  jit::EntryFiles files = jit::DiskCache(root_).files(fs::path(made.folder).filename().string());
  const jit::Digests whole = jit::digests_of(jit::parse_meta(files.meta));
  jit::EntryMeta meta = jit::parse_meta(files.meta);
  meta.kernel = "../../outside<>";
  files.meta = jit::meta_text(meta);
  EXPECT_THROW(jit::parse_meta(files.meta), Error);
  const std::string pack = base_ + "/strange.pack", name = "../../outside." + whole.identity + "." + whole.provenance;
  for (const std::string& under : {name, whole.folder_name()}) {
    jit::write_pack(pack, {{under, files}});
    const ProcessResult r = command({"cache", "unpack", pack}, {"QN_CACHE_DIR=" + base_ + "/a/b/c"});
    EXPECT_EQ(r.status, under == name ? 2 : 1) << r.output;
    EXPECT_THAT(r.output, HasSubstr(under == name ? "no entry" : "left out"));
    for (const auto& file : fs::recursive_directory_iterator(base_))
      EXPECT_EQ(file.path().string().find("outside"), std::string::npos) << file.path();
  }
}

TEST_F(cache_safety, unpack_puts_whole_entries_in_the_place_of_damaged_ones) {
  const std::string entry = made_elsewhere(0), pack = base_ + "/all.pack";
  ASSERT_EQ(command({"cache", "pack", pack}).status, 0);
  EXPECT_THAT(command({"cache", "unpack", pack}).output, HasSubstr("unpacked 0 kernels"));
  write_file(entry + "/kernel.so", "?");
  EXPECT_THAT(command({"cache", "unpack", pack}).output, HasSubstr("unpacked 1 kernels"));
  EXPECT_EQ(command({"cache", "verify"}).status, 0);
}

TEST_F(cache_safety, a_root_that_is_a_pipe_is_not_waited_for) {
  ASSERT_EQ(::mkfifo((base_ + "/pipe").c_str(), 0644), 0);
  setenv("QN_CACHE_ROOTS", (base_ + "/pipe").c_str(), 1);
  const Outcome o = run([&] { return right(jit::build(specs_[0], target()), specs_[0]); }, 20);
  EXPECT_TRUE(o.right) << o.log;
  EXPECT_THAT(o.log, HasSubstr("is no pack"));
}

// ---- files that are mapped ------------------------------------------------------------------------------------------------

TEST_F(cache_safety, what_a_process_made_itself_is_left_alone_while_it_lives) {
  const jit::Compiled made = jit::build(specs_[0], target());
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (const auto& f : fs::directory_iterator(made.folder)) fs::last_write_time(f.path(), long_ago);
  fs::last_write_time(made.folder, long_ago);
  EXPECT_TRUE(run([&] { return jit::DiskCache(root_).evict(0) == 0; }).right);
  EXPECT_TRUE(fs::exists(made.image_path));
}

}  // namespace
}  // namespace quern::cache_test
