// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The log.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "cli_process.h"
#include "quern/jit/kernel_table.h"
#include "traces.h"

namespace quern::trace_test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<std::string> kRun = {"run", "norm.rms_norm", "tokens=2", "hidden=96", "x.dtype=f32", "x.pad=3", "--device", "emu"};

std::string logged(const std::string& level) {
  const std::string file = (std::filesystem::temp_directory_path() / ("quern-log-" + std::to_string(getpid()))).string();
  command(kRun);  // compiled
  command(kRun, {"QN_LOG_LEVEL=" + level, "QN_LOG_DEST=" + file});
  const std::string text = read_file(file).value_or("");
  std::filesystem::remove(file);
  return text;
}

TEST(log, says_as_much_as_its_level) {
  EXPECT_EQ(logged("0"), "");
  const std::string names = logged("1"), tensors = logged("3"), statistics = logged("5");
  EXPECT_THAT(names, HasSubstr("norm.rms_norm: norm_row<dtype=f32"));
  EXPECT_THAT(names, Not(HasSubstr("strides")));
  EXPECT_THAT(tensors, HasSubstr("x f32 [2, 96] strides [99, 1] at 0x"));
  EXPECT_THAT(tensors, HasSubstr("eps=1e-06"));
  EXPECT_THAT(tensors, Not(HasSubstr("mean")));
  EXPECT_THAT(statistics, ContainsRegex("x f32 .*: min -[0-9.]+ max [0-9.]+ mean -?[0-9.e-]+ nan 0 inf 0"));
  EXPECT_THAT(statistics, ContainsRegex("norm.rms_norm done\n  out: min -[0-9.]+ max [0-9.]+ mean"));
}

TEST(log, counts_nan_and_infinities_without_spoiling_the_range) {
  Recording recording;
  testing::CaseArgs c(find_op("activation.silu_and_mul"), {{"tokens", 1}, {"intermediate", 4}, {"x.dtype", double(int(DType::f32))}}, 1);
  const float values[] = {1, 2, 3, NAN, 5, INFINITY, -INFINITY, -8};
  std::memcpy(c.tensor(0).data, values, sizeof values);
  run(c.op(), c.args(), {});
  recording.stop();
  const std::string text = command({"run", "--replay", recording.only()}, {"QN_LOG_LEVEL=5"}).output;
  EXPECT_THAT(text, ContainsRegex("x f32 .*: min -8 max 5 mean 0.6 nan 1 inf 2"));
}

TEST(log, goes_where_it_is_sent) {
  const std::string folder = make_private_folder((std::filesystem::temp_directory_path() / "quern-log-").string());
  command(kRun, {"QN_LOG_LEVEL=1", "QN_LOG_DEST=" + folder + "/%i.log"});
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path().filename().string());
  ASSERT_EQ(files.size(), 1u);
  EXPECT_THAT(files[0], ContainsRegex("^[0-9]+\\.log$"));
  EXPECT_THAT(read_file(folder + "/" + files[0]).value(), HasSubstr(" " + files[0].substr(0, files[0].size() - 4) + "] norm.rms_norm"));
  EXPECT_THAT(command(kRun, {"QN_LOG_LEVEL=1", "QN_LOG_DEST=" + folder + "/no/such/folder"}).output,
              HasSubstr("warning: QN_LOG_DEST: cannot write"));
  remove_folder(folder);
}

/// Runs in a process of its own, because the level is read once.
TEST(log, a_capturing_stream_is_not_read) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("QN_LOG_LEVEL", "5", 1);
        testing::CaseArgs c(find_op("norm.rms_norm"), {{"tokens", 4}, {"hidden", 64}}, 1);
        jit::get(make_plan(c.op(), bind(c.op(), c.args(), {}), emulated().info()).launches[0].spec, emulated(), {});
        const Stream stream = emulated().create_stream();
        emulated().begin_capture(stream);
        run(c.op(), c.args(), {.stream = stream});
        emulated().end_capture(stream);
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "eps=.*\n  x bf16 .* on the host\n.*\n.*\n  the stream is capturing: its tensors are not read\n$");
}

}  // namespace
}  // namespace quern::trace_test
