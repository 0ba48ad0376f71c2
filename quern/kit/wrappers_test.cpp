// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Every instruction of kit/ptx has its meaning in kit/emu and is used by a kernel of the conformance tests, which runs
// in every world: read off the sources, so that none can be forgotten.
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "quern/kit/conform/runner.h"

namespace quern::conform {
namespace {

std::string text_of(const fs::path& folder) {
  std::ostringstream all;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".cuh") all << std::ifstream(entry.path()).rdbuf();
  return all.str();
}
std::set<std::string> matches(const std::string& text, const char* pattern) {
  const std::regex regex(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator i(text.begin(), text.end(), regex), end; i != end; ++i) found.insert((*i)[1]);
  return found;
}
/// How often the pattern, with NAME as the name, occurs.
int count_of(const std::string& text, const std::string& name, std::string pattern) {
  pattern.replace(pattern.find("NAME"), 4, name);
  const std::regex regex(pattern);
  return int(std::distance(std::sregex_iterator(text.begin(), text.end(), regex), std::sregex_iterator()));
}

TEST(kit_wrappers, each_has_both_worlds_and_a_conformance_kernel) {
  const fs::path kit = source_root() / "quern" / "kit";
  const std::string ptx = text_of(kit / "ptx"), emu = text_of(kit / "emu"), bricks = text_of(kit);
  const std::string conform = text_of(kit / "conform");
  const std::string function = "QN_DEVICE [\\w<>:&* ]*?\\bNAME\\(";
  const char* const kAnyFunction = "QN_DEVICE [\\w<>:&* ]*?(\\w+)\\(";
  const std::set<std::string> wrappers = matches(ptx, kAnyFunction), meanings = matches(emu, kAnyFunction);
  EXPECT_GT(wrappers.size(), 100u);
  for (const std::string& name : wrappers) {
    const bool called_by_others = count_of(ptx, name, "\\bNAME\\(") > count_of(ptx, name, function);
    // A part of other wrappers: the `asm` of one operand size, say.
    if (!meanings.count(name) && called_by_others) continue;
    EXPECT_TRUE(meanings.count(name)) << name << " has no meaning in kit/emu";
    EXPECT_TRUE(called_by_others || count_of(conform + bricks, name, "ptx::NAME\\b") > 0)
        << name << " has no kernel in kit/conform";
  }
}

}  // namespace
}  // namespace quern::conform
