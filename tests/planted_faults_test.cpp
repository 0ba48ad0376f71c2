// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// `quern check --checked` and `--asan` find each fault planted for them in the kernels of the ops, with every compiler and
// under every policy, and say nothing of the kernels as they are. A process a fault: QN_SOURCE_DIR holds the changed source.
// Tables of faults stand beside the kernels, in planted_faults.cpp. QN_TEST_FAULTS=bricks/select takes the faults of files with that in
// their path alone, each of them.
#include "planted_faults.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <sstream>
#include <thread>

#include "full_sweep.h"
#include "quern/base/fs.h"
#include "quern/base/subprocess.h"
#include "quern/jit/sources.h"

namespace quern {
namespace {

using planted::Fault;
using planted::FaultyCase;
using Json = nlohmann::json;

/// "--checked" or "--asan".
std::vector<FaultyCase> cases_of(const std::string& mode) {
  std::vector<FaultyCase> all = mode == "--asan" ? planted::asan_faults() : planted::checked_faults();
  // One order, whatever that of linking: a rotation takes the same ones everywhere
  std::stable_sort(all.begin(), all.end(), [](const FaultyCase& a, const FaultyCase& b) { return std::string(a.file) < b.file; });
  if (const char* part = std::getenv("QN_TEST_FAULTS"))
    std::erase_if(all, [&](const FaultyCase& c) { return std::string(c.file).find(part) == std::string::npos; });
  return all;
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// "RACE", or kWrongResult, or empty for a right one.
std::string kind_of(const Json& result) {
  if (result["verdict"] == "right") return "";
  const std::string message = result["message"], device_error = "device error: " + result["op"].get<std::string>() + ": ";
  if (message.compare(0, device_error.size(), device_error) != 0)
    return result["verdict"] == "wrong" && message.find(" error: ") == std::string::npos ? planted::kWrongResult : message;
  return message.substr(device_error.size(), message.find_first_of(" :", device_error.size()) - device_error.size());
}

/// One `quern check` in a process, and what is expected of it.
struct Attempt {
  std::string title;
  FaultyCase which;
  std::string source_dir;          ///< empty: the kernels as they are
  std::vector<std::string> kinds;  ///< expected reports
  ProcessResult result;
};

class PlantedFaults : public testing::TestWithParam<std::tuple<std::string, std::string, std::string>> {
 protected:
  void SetUp() override {
    ASSERT_NE(find_program(compiler()), "") << "this test needs " << compiler();
    root_ = make_private_folder(testing::TempDir() + "quern-test.");
  }
  void TearDown() override {
    if (!root_.empty()) remove_folder(root_);
  }

  static std::string compiler() { return std::get<0>(GetParam()); }
  static std::string mode() { return std::get<1>(GetParam()); }
  static std::string op() { return std::get<2>(GetParam()); }
  /// Whether to run the op's case with that number. Without --full half of the cases run, each with one compiler; four successive
  /// rotations run every case with both. The sum of the name's letters spreads the first cases of the ops over the rotations.
  static bool takes(size_t number) {
    const std::string name = op();
    number += size_t(std::accumulate(name.begin(), name.end(), 0));
    return full_sweep() || std::getenv("QN_TEST_FAULTS") || (number + test_rotation()) % 4 == (compiler() == "g++" ? 0u : 1u);
  }

  void start(Attempt& run) const {
    std::vector<std::string> words = {"timeout", "300", "env", "QN_CACHE_DIR=" + root_ + "/cache"};
    if (run.which.sms) words.push_back("QN_EMU_SMS=" + std::to_string(run.which.sms));
    if (!run.source_dir.empty()) words.push_back("QN_SOURCE_DIR=" + run.source_dir);
    for (const char* word : {QN_CLI, "check", run.which.op}) words.push_back(word);
    std::istringstream in(run.which.words);
    for (std::string word; in >> word;) words.push_back(word);
    for (const char* word : {"--sample", "1", "--threads", "1", "--device", "emu", "--no-nvrtc", "--json"}) words.push_back(word);
    for (const char* word : {"--async", "eager,lazy,random", "--host-compiler"}) words.push_back(word);
    words.push_back(compiler());
    words.push_back(mode());
    run.result = run_process(words);
  }

  void start_all(std::vector<Attempt>& runs) const {
    std::atomic<size_t> next{0};
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < std::max(2u, std::thread::hardware_concurrency()); ++i)
      threads.emplace_back([&] {
        for (size_t at; (at = next++) < runs.size();) start(runs[at]);
      });
    for (std::thread& thread : threads) thread.join();
  }

  static void expect_reports(const Attempt& run) {
    const size_t begin = run.result.output.find('[');
    const Json results = begin == std::string::npos ? Json() : Json::parse(run.result.output.substr(begin), nullptr, false);
    ASSERT_TRUE(results.is_array()) << run.title << ": " << run.result.output;
    EXPECT_EQ(results.size(), 3u) << run.title;
    for (const Json& result : results) {
      EXPECT_THAT(run.kinds, testing::Contains(kind_of(result))) << run.title << "\n" << result["device"] << ": " << result["message"];
      if (mode() == "--asan" && !run.source_dir.empty()) {
        EXPECT_THAT(result["message"].get<std::string>(), testing::ContainsRegex("quern/(ops|bricks|kit)/[a-z0-9_/]+[.]cuh:[0-9]+"))
            << run.title;
      }
    }
  }

  std::string root_;
};
/// The ops on whose cases faults are shown, a test each.
std::vector<std::tuple<std::string, std::string, std::string>> tests() {
  std::vector<std::tuple<std::string, std::string, std::string>> all;
  for (const char* mode : {"--checked", "--asan"}) {
    std::set<std::string> ops;
    for (const FaultyCase& c : cases_of(mode)) ops.insert(c.op);
    for (const std::string& op : ops)
      for (const char* compiler : {"g++", "clang++"}) all.emplace_back(compiler, mode, op);
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Compilers, PlantedFaults, testing::ValuesIn(tests()), [](const auto& info) {
  std::string op = std::get<2>(info.param);
  std::replace(op.begin(), op.end(), '.', '_');
  return (std::get<0>(info.param)[0] == 'g' ? "gcc_" : "clang_") + std::get<1>(info.param).substr(2) + "_" + op;
});

TEST(PlantedFaultTexts, are_of_a_file_that_QN_TEST_FAULTS_names) { EXPECT_FALSE(tests().empty()); }

// A run samples the cases below: this looks at the texts of all of them, in milliseconds.
TEST(PlantedFaultTexts, stand_exactly_once_in_their_kernels) {
  for (const char* mode : {"--checked", "--asan"})
    for (const FaultyCase& c : cases_of(mode)) {
      const std::string name = std::string("quern/") + c.file, text = jit::source_text(name);
      for (const Fault& fault : c.faults)
        EXPECT_EQ(count_of(text, fault.from), 1u) << name << ": '" << fault.name << "' of " << c.op << " " << c.words;
    }
}

TEST_P(PlantedFaults, are_reported_and_the_kernels_as_they_are_are_not) {
  std::vector<Attempt> correct, faulty;
  std::map<std::string, size_t> numbers;  // a case and its faults stay together: what the faults leave alone is compiled once
  for (const FaultyCase& c : cases_of(mode())) {
    if (c.op != op()) continue;
    const std::string title = std::string(c.op) + " " + c.words + (c.sms ? " on " + std::to_string(c.sms) + " SMs" : "");
    const auto [number, is_new] = numbers.emplace(title, numbers.size());
    if (!takes(number->second)) continue;
    if (is_new) correct.push_back({title, c, "", {""}, {}});
    const std::string name = std::string("quern/") + c.file, text = jit::source_text(name);
    for (const Fault& fault : c.faults) {
      ASSERT_EQ(count_of(text, fault.from), 1u) << name << " does not hold exactly once what '" << fault.name << "' changes";
      const std::string folder = root_ + "/source" + std::to_string(faulty.size());
      std::string changed = text;
      changed.replace(text.find(fault.from), std::string(fault.from).size(), fault.to);
      ASSERT_TRUE(make_folders((folder + "/" + name).substr(0, (folder + "/" + name).rfind('/'))));
      write_file(folder + "/" + name, changed);
      faulty.push_back({name + ": " + fault.name + ", on " + title, c, folder, fault.kinds, {}});
    }
  }
  start_all(correct);  // first: what the faults leave alone is then compiled
  for (const Attempt& run : correct) expect_reports(run);
  start_all(faulty);
  for (const Attempt& run : faulty) expect_reports(run);
}

}  // namespace
}  // namespace quern
