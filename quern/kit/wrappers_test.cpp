// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Every instruction of kit/ptx has its meaning in kit/emu and is used by a kernel of the conformance tests, which runs
// in every world: read off the sources, so that none can be forgotten.
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
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
/// How often each name occurs as the pattern's group.
std::map<std::string, int> names_in(const std::string& text, const char* pattern) {
  const std::regex regex(pattern);
  std::map<std::string, int> found;
  for (std::sregex_iterator i(text.begin(), text.end(), regex), end; i != end; ++i) ++found[(*i)[1]];
  return found;
}

TEST(kit_wrappers, each_has_both_worlds_and_a_conformance_kernel) {
  const fs::path kit = source_root() / "quern" / "kit";
  const std::string ptx = text_of(kit / "ptx");
  const char* const kFunction = "QN_DEVICE [\\w<>:&* ]*?\\b(\\w+)\\(";
  const auto wrappers = names_in(ptx, kFunction), meanings = names_in(text_of(kit / "emu"), kFunction);
  const auto mentioned = names_in(ptx, "\\b(\\w+)\\(");
  const auto used = names_in(text_of(kit / "conform") + text_of(kit), "ptx::(\\w+)");
  EXPECT_GT(wrappers.size(), 100u);
  for (const auto& [name, definitions] : wrappers) {
    const bool called_by_others = mentioned.at(name) > definitions;
    // A part of other wrappers: the `asm` of one operand size, say.
    if (!meanings.count(name) && called_by_others) continue;
    EXPECT_TRUE(meanings.count(name)) << name << " has no meaning in kit/emu";
    EXPECT_TRUE(called_by_others || used.count(name)) << name << " has no kernel in kit/conform";
  }
}

}  // namespace
}  // namespace quern::conform
