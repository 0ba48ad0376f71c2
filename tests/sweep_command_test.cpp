// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// `quern bench --sweep` as a user runs it, on the emulated device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "cli_process.h"
#include "quern/base/fs.h"
#include "quern/bench/csv.h"
#include "quern/jit/sources.h"

namespace quern {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class command_sweep : public ::testing::Test {
 protected:
  void SetUp() override { folder_ = make_private_folder(::testing::TempDir() + "quern-sweep."); }
  void TearDown() override { remove_folder(folder_); }
  std::string csv() const { return folder_ + "/a.csv"; }
  std::vector<std::vector<std::string>> lines() const { return quern::bench::parse_csv(read_file(csv()).value_or(""), csv()); }
  ProcessResult bench(std::vector<std::string> words, const std::vector<std::string>& variables = {}) const {
    words.insert(words.begin(), "bench");
    words.insert(words.end(), {"--device", "emu", "--budget", "1"});
    return command(words, variables);
  }
  std::string folder_;
};

TEST_F(command_sweep, writes_rows_once_and_again_where_it_is_told_to) {
  const std::vector<std::string> words = {"norm.rms_norm", "--mode",         "forward,full", "--sweep",  "hidden=32:64:x2",
                                          "--sweep",       "dtype=f32,bf16", "--set",        "tokens=2", "--metric",
                                          "speed,memory",  "--csv",          csv()};
  const ProcessResult first = bench(words);
  ASSERT_EQ(first.status, 0) << first.output;
  EXPECT_THAT(first.output, HasSubstr("times of the emulated device are no speeds of a GPU"));
  EXPECT_THAT(first.output, HasSubstr("wrote 16 rows to " + csv()));
  const std::vector<std::vector<std::string>> rows = lines();
  ASSERT_THAT(rows, SizeIs(17)) << "two modes, dtypes, widths and metrics";
  EXPECT_EQ(rows[1][11], R"({"dtype":"f32","tokens":2})");
  EXPECT_EQ(rows[1][12], "NVIDIA H200 (emulated)");
  EXPECT_EQ(rows[1][20], "") << "no speed of light on a CPU";

  const ProcessResult second = bench(words);
  EXPECT_EQ(second.status, 0);
  EXPECT_THAT(second.output,
              HasSubstr("16 rows of " + csv() + " were there before and are kept; --overwrite measures them again\nwrote 0 rows"));
  EXPECT_EQ(lines(), rows);

  std::vector<std::string> again = words;
  again.insert(again.end(),
               {"--overwrite", "--filter", "hidden=64", "--filter", "dtype=f32", "--filter", "metric=speed", "--filter", "mode=full"});
  const ProcessResult third = bench(again);
  EXPECT_EQ(third.status, 0) << third.output;
  EXPECT_THAT(third.output, HasSubstr("wrote 1 rows"));
  const std::vector<std::vector<std::string>> now = lines();
  ASSERT_EQ(now.size(), rows.size());
  int changed = 0;
  for (size_t i = 1; i < rows.size(); ++i) {
    if (now[i] == rows[i]) continue;
    ++changed;
    EXPECT_EQ(now[i][2] + now[i][3] + now[i][7] + now[i][16], "fullspeed64f32");
  }
  EXPECT_EQ(changed, 1) << "of a time in six digits";
}

/// A benchmark without a sweep writes its file anew: rows of sweeps would be gone.
TEST_F(command_sweep, is_not_overwritten_by_a_plain_benchmark) {
  ASSERT_EQ(bench({"norm.rms_norm", "--sweep", "hidden=32", "--set", "tokens=2", "--csv", csv()}).status, 0);
  const std::vector<std::vector<std::string>> rows = lines();
  const ProcessResult plain = bench({"norm.rms_norm", "hidden=32", "tokens=2", "--csv", csv()});
  EXPECT_EQ(plain.status, 2);
  EXPECT_THAT(plain.output, HasSubstr("`csv` is '" + csv() + "', which holds rows of sweeps, expected another file, or --sweep"));
  EXPECT_EQ(lines(), rows);
}

TEST_F(command_sweep, prints_the_same_rows_as_json) {
  const ProcessResult ran = bench({"norm.rms_norm", "tokens=2", "--sweep", "hidden=32", "--json"});
  ASSERT_EQ(ran.status, 0) << ran.output;
  const auto json = nlohmann::json::parse(ran.output.substr(ran.output.find("{\n")));
  ASSERT_EQ(json["results"].size(), 1u);
  EXPECT_EQ(json["results"][0]["x_value"], 32);
  EXPECT_GT(json["results"][0]["y_value_50"].get<double>(), 0);
  EXPECT_EQ(json["results"][0]["extra_benchmark_config_str"], R"({"dtype":"bf16","tokens":2})");
}

TEST_F(command_sweep, repeats_a_row_by_its_command) {
  ASSERT_EQ(bench({"norm.rms_norm", "--sweep", "hidden=32", "--set", "tokens=2,dtype=f32,eps=0.5", "--csv", csv()}).status, 0);
  const std::vector<std::string> row = lines().at(1);
  const std::string repro = row.at(22);
  EXPECT_EQ(
      repro,
      "quern bench norm.rms_norm --mode forward --sweep hidden=32 --set eps=0.5,tokens=2,dtype=f32 --provider quern --metric speed --seed 1 --device emu");
  std::vector<std::string> words;
  std::istringstream in(repro.substr(6));
  for (std::string word; in >> word;) words.push_back(word);
  words.insert(words.end(), {"--csv", csv()});
  const ProcessResult again = command(words);
  EXPECT_EQ(again.status, 0);
  EXPECT_THAT(again.output, HasSubstr("1 rows of " + csv() + " were there before")) << "it has the same key";
}

/// A sum over a block that leaves out its last warp: not timed, no row, exit code 1; the row of a right run that was there goes with
/// --overwrite.
TEST_F(command_sweep, times_no_wrong_kernel) {
  std::string text = jit::source_text("quern/kit/reduce.cuh");
  const std::string from = "for (int w = 1; w < kWarps; ++w)";
  ASSERT_NE(text.find(from), std::string::npos);
  text.replace(text.find(from), from.size(), "for (int w = 1; w < kWarps - 1; ++w)");
  ASSERT_TRUE(make_folders(folder_ + "/quern/kit"));
  write_file(folder_ + "/quern/kit/reduce.cuh", text);
  const std::vector<std::string> words = {"norm.rms_norm", "--sweep", "hidden=96,2056", "--set", "tokens=2", "--csv", csv(), "--overwrite"};
  ASSERT_EQ(bench(words).status, 0);
  ASSERT_THAT(lines(), SizeIs(3));
  const ProcessResult wrong = bench(words, {"QN_SOURCE_DIR=" + folder_});
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.output, HasSubstr("WRONG: norm.rms_norm forward hidden=2056 tokens=2 by quern: `out`"));
  EXPECT_THAT(wrong.output, HasSubstr("wrote 1 rows"));
  ASSERT_THAT(lines(), SizeIs(2));
  EXPECT_EQ(lines()[1][7], "96") << "rows of one warp have no sum over a block";
}

TEST_F(command_sweep, refuses_with_the_option_what_was_got_and_what_is_expected) {
  const auto refused = [&](std::vector<std::string> words, int status = 2) {
    words.insert(words.begin(), "norm.rms_norm");
    const ProcessResult ran = bench(words);
    EXPECT_EQ(ran.status, status) << ran.output;
    return ran.output;
  };
  EXPECT_THAT(refused({"--sweep", "hidden=1:2"}), HasSubstr("`sweep` is 'hidden=1:2', expected axis=FROM:TO:xFACTOR"));
  EXPECT_THAT(refused({"--mode", "both"}), HasSubstr("`mode` is 'both', expected one of forward, backward, full"));
  EXPECT_THAT(refused({"--mode", "full,full"}), HasSubstr("bench: `mode` names full twice, expected each once"));
  EXPECT_THAT(refused({"--metric", "time"}), HasSubstr("`metric` is 'time', expected one of speed, memory"));
  EXPECT_THAT(refused({"--provider", "torch"}),
              HasSubstr("`provider` is torch, which this program does not have, expected the `quern` of the Python package"));
  EXPECT_THAT(refused({"--provider", "nobody"}),
              HasSubstr("`provider` is 'nobody', expected one of quern, cublaslt, torch, torch_compile, liger"));
  EXPECT_THAT(refused({"--plot"}),
              HasSubstr("bench: `plot` is given to a program that does not draw, expected the `quern` of the Python package"));
  EXPECT_THAT(refused({"--set", "token=3"}), HasSubstr("`token` is no parameter of this op, expected `tokens`"));
  EXPECT_THAT(refused({"--set", "tokens=3", "--sweep", "tokens=1,2"}),
              HasSubstr("`tokens` is given twice, expected one --sweep or one --set"));
  EXPECT_THAT(refused({"--set", "tokens=2", "--sweep", "hidden=32", "--filter", "hidden"}),
              HasSubstr("bench: `filter` is 'hidden', expected key=value"));
  EXPECT_THAT(refused({"--set", "tokens=2", "--sweep", "hidden=32", "--filter", "width=32"}),
              HasSubstr("bench: `filter` has the key 'width', expected one of dtype, hidden, kernel, metric, mode, provider, tokens"));
  EXPECT_THAT(refused({"--set", "tokens=2", "--sweep", "hidden=32", "--filter", "mode=full"}),
              HasSubstr("bench: `filter` leaves no row of this sweep, expected values that one of its points has together"));
  EXPECT_THAT(refused({"--sweep", "hidden=32", "--overwrite"}),
              HasSubstr("bench: `overwrite` is given without a file, expected --csv FILE beside it"));
  EXPECT_THAT(refused({"--sweep", "hidden=32", "--peer", "cublaslt"}), HasSubstr("bench --sweep: makes it a sweep, which has no --peer"));
  EXPECT_THAT(refused({"--sweep", "hidden=32", "--csv", folder_ + "/no/a.csv"}),
              HasSubstr("whose folder is not there, expected a file that can be written"));
  const ProcessResult none = bench({"--mode", "forward"});
  EXPECT_EQ(none.status, 2);
  EXPECT_THAT(none.output, HasSubstr("bench: `op` is not given, expected an op, a family or all, before parameters"));
  const ProcessResult no_gradients = bench({"elementwise.add", "--mode", "backward", "--sweep", "hidden=32"});
  EXPECT_EQ(no_gradients.status, 2);
  EXPECT_THAT(no_gradients.output,
              HasSubstr("elementwise.add: `mode` is backward, expected forward: the op's schema names no op for its gradients"));
}

TEST_F(command_sweep, says_what_is_smaller_than_was_asked_for) {
  const ProcessResult ran = bench({"norm.rms_norm", "--sweep", "hidden=1024", "--set", "tokens=100000", "--csv", csv()});
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("norm.rms_norm: tokens is 196 instead of 100000: the emulated device takes operands of up to 1 MB\n"));
  EXPECT_EQ(lines().at(1).at(11), R"({"dtype":"bf16","tokens":196})");
}

}  // namespace
}  // namespace quern
