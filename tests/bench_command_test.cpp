// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// `quern bench` as a user runs it, on the emulated device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "quern/base/subprocess.h"

namespace {

using testing::HasSubstr;
using testing::StartsWith;

quern::ProcessResult bench(std::vector<std::string> words) {
  std::vector<std::string> command = {QN_CLI, "bench"};
  command.insert(command.end(), words.begin(), words.end());
  command.insert(command.end(), {"--device", "emu", "--budget", "1"});
  return quern::run_process(command);
}

TEST(command_bench, writes_json_and_csv_of_the_same_results) {
  const std::string csv = testing::TempDir() + "/bench" + std::to_string(getpid()) + ".csv";
  const auto ran = bench({"norm.rms_norm", "tokens=1,3", "hidden=64", "--json", "--csv", csv});
  ASSERT_EQ(ran.status, 0) << ran.output;
  const auto json = nlohmann::json::parse(ran.output.substr(ran.output.find("{\n")));
  ASSERT_EQ(json["results"].size(), 2u);
  const auto& result = json["results"][1];
  EXPECT_EQ(result["op"], "norm.rms_norm");
  EXPECT_THAT(result["case"].get<std::string>(), HasSubstr("tokens=3"));
  EXPECT_EQ(result["ok"], 1);
  EXPECT_EQ(result["cold"], 0);
  EXPECT_EQ(result["timer"], "wall clock");
  EXPECT_GT(result["median_us"].get<double>(), 0);
  EXPECT_EQ(result["bytes"], 2 * 3 * 64 * 2 + 64 * 2);
  std::ifstream file(csv);
  std::string line;
  std::getline(file, line);
  EXPECT_THAT(line, StartsWith("op,case,kernel,device,timer,cold,runs,median_us,"));
  int lines = 0;
  for (; std::getline(file, line); ++lines) EXPECT_THAT(line, StartsWith("norm.rms_norm,"));
  EXPECT_EQ(lines, 2);
}

TEST(command_bench, shows_the_host_time_and_what_was_judged) {
  const auto ran = bench({"norm.rms_norm", "tokens=3", "hidden=64", "--host"});
  EXPECT_EQ(ran.status, 0);
  EXPECT_THAT(ran.output, HasSubstr("host us"));
  EXPECT_THAT(ran.output, HasSubstr("of its bound, all)"));
  EXPECT_THAT(ran.output, HasSubstr("emulated on this CPU), which has no L2, "));
  EXPECT_THAT(ran.output,
              HasSubstr("\nof its bound: the largest error of an element over the error that its op allows, 1 and less is right;"))
      << "a legend";
}

TEST(command_bench, says_how_to_make_other_shapes_in_the_words_of_the_op) {
  const auto ran = bench({"quant.transform_scales"});
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_THAT(
      ran.output,
      HasSubstr("1 bench shapes of more than 8 MB are left to GPUs; parameters make others: quern bench quant.transform_scales m=129\n"));
}

TEST(command_bench, refuses_unknown_words_and_peers) {
  EXPECT_EQ(bench({"norm.rms_norm", "token=3"}).status, 2);
  EXPECT_EQ(bench({"norm.rms_norms"}).status, 2);
  const auto peer = bench({"norm.rms_norm", "tokens=3", "--peer", "nobody"});
  EXPECT_EQ(peer.status, 2);
  EXPECT_THAT(peer.output, HasSubstr("one of cublaslt"));
}

}  // namespace
