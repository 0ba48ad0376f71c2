// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What calls launch, as quern/ops/FAMILY/OP/plans.txt has it: a line "ARCH words of a case", and indented under it a line for each launch
// and one for the workspace. Lines with # are comments. A change of a plan shows in the diff of these files:
//   QN_TEST_UPDATE=1 build/tests/engine_test --gtest_filter='*golden*'
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <thread>

#include "quern/base/fs.h"
#include "quern/op/schema.h"
#include "quern/testing/case_args.h"
#include "quern/testing/case_text.h"

namespace quern::testing {
namespace {

/// Ops that have such a file.
std::vector<std::string> ids() {
  std::vector<std::string> all;
  const std::filesystem::path ops = std::filesystem::path(QN_ROOT) / "quern/ops";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(ops))
    if (entry.path().filename() == "plans.txt") {
      const std::filesystem::path op = entry.path().parent_path();
      all.push_back(op.parent_path().filename().string() + "." + op.filename().string());
    }
  std::sort(all.begin(), all.end());
  return all;
}

std::string file_of(const std::string& id) {
  std::string path = id;
  path[path.find('.')] = '/';
  return std::string(QN_ROOT) + "/quern/ops/" + path + "/plans.txt";
}

std::string launches_of(const Op& op, const std::string& call) {
  std::istringstream in(call);
  std::string arch;
  in >> arch;
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  const Case full = derived(op, parse_case(op, words));
  const ArgsStorage args = fake_args(op, full);
  const Plan plan = make_plan(op, bind(op, args.get(), options_of(op, full)), device_info_of(Arch::parse(arch)));
  std::string text;
  for (i32 i = 0; i < plan.count; ++i) {
    const auto& config = plan.launches[i].config;
    text += "  " + jit::print(plan.launches[i].spec) + " grid " + std::to_string(config.grid[0]) + "x" + std::to_string(config.grid[1]) +
            "x" + std::to_string(config.grid[2]) + " cluster " + to_string(config.cluster) + "\n";
  }
  return text + "  workspace " + std::to_string(plan.workspace) + "\n";
}

/// The text of the file with the lines that follow each call made anew. Each plan is made in a thread of its own, which has kept no kernels
/// of other calls.
std::string made_anew(const Op& op, const std::string& text) {
  std::istringstream in(text);
  std::string made;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("  ")) continue;
    made += line + "\n";
    if (line.empty() || line[0] == '#') continue;
    std::thread([&] {
      try {
        made += launches_of(op, line);
      } catch (const std::exception& e) { made += std::string("  ") + e.what() + "\n"; }
    }).join();
  }
  return made;
}

class Golden : public ::testing::TestWithParam<std::string> {};

TEST_P(Golden, plans_are_those_of_the_file) {
  const std::string path = file_of(GetParam()), text = read_file(path).value(), made = made_anew(find_op(GetParam()), text);
  EXPECT_NE(text.find("\nsm_"), text.npos) << path << " has no call";
  const char* update = std::getenv("QN_TEST_UPDATE");
  if (update && std::string(update) == "1") write_file(path, made);
  else
    EXPECT_EQ(made, text) << path << ": if this is what was meant, run QN_TEST_UPDATE=1 build/tests/engine_test --gtest_filter='*golden*'";
}
INSTANTIATE_TEST_SUITE_P(golden, Golden, ::testing::ValuesIn(ids()), [](const auto& info) {
  std::string name = info.param;
  name[name.find('.')] = '_';
  return name;
});

}  // namespace
}  // namespace quern::testing
