// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// quern generate as a script calls it. What it computes is tested beside the engine, in examples/engine.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include <nlohmann/json.hpp>

#include "quern/base/fs.h"
#include "quern/base/subprocess.h"

namespace quern {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

const std::string kTiny = std::string(QN_ROOT) + "/examples/engine/configs/tiny-llama.json";

ProcessResult generate(const std::vector<std::string>& words) {
  std::vector<std::string> all = {QN_CLI, "generate", "--device", "emu"};
  all.insert(all.end(), words.begin(), words.end());
  return run_process(all);
}

TEST(generate_command, prints_answers_timing_and_the_check_as_json) {
  const ProcessResult result =
      generate({"--random", kTiny, "--ids", "1,2,3", "--ids", "4", "--max-new", "3", "--ignore-eos", "--check", "--json"});
  ASSERT_EQ(result.status, 0) << result.output;
  const Json out = Json::parse(result.output);
  EXPECT_EQ(out["requests"][0]["prompt"], Json({1, 2, 3}));
  EXPECT_EQ(out["requests"][1]["tokens"].size(), 3u);
  EXPECT_EQ(out["requests"][1]["finish"], "length");
  EXPECT_EQ(out["prefill"]["tokens"], 4);
  EXPECT_EQ(out["capture"]["tokens"], 2);
  EXPECT_EQ(out["decode"]["tokens"], 2);
  EXPECT_EQ(out["check"]["rows"], 6);
  EXPECT_TRUE(out["check"]["ok"]);
  EXPECT_LT(out["step_weight_bytes"], out["weight_bytes"]);
}

TEST(generate_command, reads_long_prompts_from_a_file) {
  const std::string path = testing::TempDir() + "quern-ids." + std::to_string(::getpid());
  std::string ids;
  for (int i = 0; i < 300; ++i) ids += std::to_string(i % 512) + (i % 7 == 6 ? "\n" : i % 2 ? ", " : " ");
  write_file(path, ids);
  const ProcessResult result = generate({"--random", kTiny, "--ids", "@" + path, "--max-new", "2", "--ignore-eos", "--json"});
  std::filesystem::remove(path);
  ASSERT_EQ(result.status, 0) << result.output;
  EXPECT_EQ(Json::parse(result.output)["requests"][0]["prompt"].size(), 300u);
}

TEST(generate_command, streams_a_line_a_token) {
  const ProcessResult result = generate({"--random", kTiny, "--ids", "1,2,3", "--max-new", "3", "--ignore-eos", "--json", "--stream"});
  ASSERT_EQ(result.status, 0) << result.output;
  std::vector<Json> lines;
  std::istringstream in(result.output);
  for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
  ASSERT_EQ(lines.size(), 4u) << result.output;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(lines[size_t(i)]["token"], lines[3]["requests"][0]["tokens"][size_t(i)]);
}

TEST(generate_command, output_that_cannot_be_written_is_an_error) {
  const ProcessResult result =
      run_process({"bash", "-c", std::string(QN_CLI) + " generate --device emu --random " + kTiny + " --ids 1 --max-new 1 > /dev/full"});
  EXPECT_EQ(result.status, 3);
  EXPECT_THAT(result.output, HasSubstr("the output cannot be written"));
}

TEST(generate_command, refuses_what_it_cannot_do) {
  const auto said = [](std::vector<std::string> words) {
    const ProcessResult result = generate(words);
    EXPECT_EQ(result.status, 2) << result.output;
    return result.output;
  };
  EXPECT_THAT(said({"--ids", "1"}), HasSubstr("generate: `model` is not named, expected a folder, or --random CONFIG.json"));
  EXPECT_THAT(said({"/nowhere", "--random", kTiny, "--ids", "1"}), HasSubstr("`model` is named twice"));
  EXPECT_THAT(said({"/nowhere", "--ids", "1"}), HasSubstr("/nowhere/config.json"));
  EXPECT_THAT(said({"--random", "/nowhere.json", "--ids", "1"}), HasSubstr("`random` is '/nowhere.json', which cannot be read"));
  EXPECT_THAT(said({"--random", kTiny}), HasSubstr("`ids` are not there, expected a prompt: --ids 1,2,3"));
  EXPECT_THAT(said({"--random", kTiny, "--ids", "1,x"}), HasSubstr("`ids` has `x`"));
  EXPECT_THAT(said({"--random", kTiny, "--ids", "1,,2"}), HasSubstr("`ids` has ``"));
  EXPECT_THAT(said({"--random", kTiny, "--ids", "512"}), HasSubstr("`prompt` has token 512, expected 0 to 511"));
  EXPECT_THAT(said({"--random", kTiny, "--random-prompts", "2048"}), HasSubstr("`random-prompts` has 2048"));
  EXPECT_THAT(said({"--random", kTiny, "--ids", "1", "--max-new", "2048"}), HasSubstr("2049 tokens, expected at most the model's 2048"));
  EXPECT_THAT(said({"--random", kTiny, "--ids", "1", "--top-k", "4"}),
              HasSubstr("`temperature` is 0 beside top-k, top-p or min-p, expected more than 0"));
  EXPECT_THAT(said({"--random", kTiny, "--ids", "1", "--temperature", "-1"}), HasSubstr("`temperature` is -1"));
  EXPECT_THAT(said({"--random", kTiny, "--ids", "1", "--top-p", "2", "--temperature", "1"}), HasSubstr("`top_p` is 2"));
  EXPECT_THAT(said({"--random", kTiny, "--ids", "1", "--kv-memory", "0.000001"}), HasSubstr("at least one page"));
  EXPECT_THAT(said({"--random", kTiny, "--ids", "1", "--kv-memory", "1e-10"}), HasSubstr("at least one byte"));
  EXPECT_THAT(said({"--random", kTiny, "--ids", "@/nowhere"}), HasSubstr("name the file '/nowhere', which cannot be read"));
  EXPECT_THAT(said({"--random", kTiny, "--ids", "1", "--async", "eager,lazy"}), HasSubstr("`device` is 2 devices, expected one"));
}

}  // namespace
}  // namespace quern
