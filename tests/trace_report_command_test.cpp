// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "quern/base/subprocess.h"
#include "quern/kit/abi.h"

namespace quern {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

struct TraceReport : testing::Test {
  void SetUp() override { folder = testing::TempDir() + "quern-report." + std::to_string(::getpid()); }
  void TearDown() override { std::filesystem::remove_all(folder); }
  void record(const std::vector<std::string>& words, const char* most_mb = "100") {
    std::vector<std::string> all = {"env", "QN_TRACE=" + folder, std::string("QN_TRACE_MAX_MB=") + most_mb, QN_CLI, "run"};
    all.insert(all.end(), words.begin(), words.end());
    all.insert(all.end(), {"--device", "emu"});
    const ProcessResult result = run_process(all);
    ASSERT_EQ(result.status, 0) << result.output;
  }
  ProcessResult report(const std::vector<std::string>& words = {"--json"}) {
    std::vector<std::string> all = {QN_CLI, "trace-report", folder, "--device", "emu"};
    all.insert(all.end(), words.begin(), words.end());
    return run_process(all);
  }
  std::string folder;
};

TEST_F(TraceReport, groups_calls_and_times_each) {
  for (const char* tokens : {"tokens=3", "tokens=2", "tokens=3"}) record({"norm.rms_norm", tokens, "hidden=96"});
  record({"activation.silu", "x.dtype=f16"});
  const ProcessResult result = report();
  ASSERT_EQ(result.status, 0) << result.output;
  const Json out = Json::parse(result.output);
  ASSERT_EQ(out["calls"].size(), 3u) << result.output;
  i64 calls = 0;
  double us = 0;
  for (const Json& c : out["calls"]) {
    EXPECT_GT(c["us"].get<double>(), 0);
    EXPECT_TRUE(c["floor_us"].is_null()) << "an emulated device has no floor";
    calls += c["calls"].get<i64>();
    us += c["us"].get<double>() * c["calls"].get<double>();
    const bool twice = c["sizes"].get<std::string>().find("tokens=3 hidden=96") == 0;
    EXPECT_EQ(c["calls"].get<i64>(), twice ? 2 : 1);
  }
  EXPECT_EQ(calls, 4);
  EXPECT_DOUBLE_EQ(us, out["us"].get<double>());
  const ProcessResult table = report({});
  EXPECT_THAT(table.output, HasSubstr("norm.rms_norm"));
  EXPECT_THAT(table.output, HasSubstr("tokens=3 hidden=96 x=bf16"));
}

TEST_F(TraceReport, calls_of_attention_are_told_apart_by_their_lengths) {
  for (const char* length : {"length=5", "length=500", "length=480"}) record({"attention.paged", "batch=2", "capacity=600", length});
  const Json out = Json::parse(report().output);
  ASSERT_EQ(out["calls"].size(), 2u) << out;
  for (const Json& c : out["calls"]) EXPECT_EQ(c["calls"].get<i64>(), c["bytes"].get<double>() > 1e5 ? 2 : 1) << c;
}

TEST_F(TraceReport, calls_without_data_are_listed_and_not_timed) {
  record({"norm.rms_norm", "tokens=3", "hidden=96"}, "0");
  const ProcessResult result = report();
  EXPECT_EQ(result.status, 4) << result.output;
  const Json out = Json::parse(result.output);
  EXPECT_TRUE(out["calls"][0]["us"].is_null());
  EXPECT_THAT(out["calls"][0]["note"].get<std::string>(), HasSubstr("no data: "));
  EXPECT_THAT(report({}).output, HasSubstr("1 calls have no time: no data: "));
}

TEST_F(TraceReport, a_folder_without_calls_is_an_error) {
  const ProcessResult result = report();
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.output, HasSubstr("which holds no recorded calls"));
}

}  // namespace
}  // namespace quern
