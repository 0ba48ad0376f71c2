// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The shared library as a user gets it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "quern/base/elf.h"
#include "quern/base/subprocess.h"

namespace {

const char* const kLibrary = QN_LIBRARY;

TEST(library, needs_glibc_libstdcpp_and_libgcc_only) {
  const auto needed = quern::elf_needed(kLibrary);
  ASSERT_FALSE(needed.empty());
  for (const std::string& name : needed)
    EXPECT_THAT(name, testing::AnyOf("libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", testing::HasSubstr("ld-linux")));
}

TEST(library, is_under_10_mb) {
  // Debug line tables are not installed; strip drops them.
  const std::string stripped = testing::TempDir() + "/libquern-stripped.so";
  ASSERT_EQ(quern::run_process({"strip", "-o", stripped, kLibrary}).status, 0);
  EXPECT_LT(std::filesystem::file_size(stripped), 10u << 20);
}

TEST(library, exports_nothing_of_its_dependencies) {
  const auto symbols = quern::run_process({"nm", "-D", "--defined-only", "-C", kLibrary});
  ASSERT_EQ(symbols.status, 0) << symbols.output;
  EXPECT_THAT(symbols.output, testing::HasSubstr("quern::norm::rms_norm"));
  for (const char* foreign : {"fmt::", "nlohmann::", "boost::", "XXH"})
    EXPECT_THAT(symbols.output, testing::Not(testing::HasSubstr(foreign)));
}

}  // namespace
