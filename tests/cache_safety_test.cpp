// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What the cache promises whatever surrounds it: sources that are edited, places that keep nothing, entries that do not load,
// packs of strangers, files that are mapped.
#include <gmock/gmock.h>

#include "cache_processes.h"
#include "quern/jit/cache_disk.h"
#include "quern/jit/pack.h"
#include "quern/jit/sources.h"

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
  compiler.replace(compiler.find(last), last.size(),
                   "cat \"$in\" >\"$out\"\nh=$(dirname \"$in\")/source/quern/ops/norm/norm_row.cuh; [ ! -e $h ] || cat $h >>\"$out\"\n");
  write_file(base_ + "/fakecc", compiler);
  for (const std::string& name : jit::source_names()) {
    const fs::path path = base_ + "/src/" + name;
    fs::create_directories(path.parent_path());
    write_file(path.string(), jit::source_text(name));
  }
  g_header = base_ + "/src/quern/ops/norm/norm_row.cuh";
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

}  // namespace
}  // namespace quern::cache_test
