// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The command as a user meets it: exit codes, JSON keys, error texts. QN_CLI is the path of the built program.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli_process.h"
#include "quern/base/fs.h"
#include "quern/op/schema.h"

namespace quern {
namespace {

using Json = nlohmann::json;

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(cli, list_names_every_op_with_its_formula) {
  const ProcessResult r = command({"list"});
  EXPECT_EQ(r.status, 0);
  for (const auto& [id, op] : registry()) EXPECT_TRUE(has(r.output, id)) << id;
  EXPECT_EQ(Json::parse(command({"list", "--json"}).output).size(), registry().size());
}

TEST(cli, plot_says_who_draws) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"plot"}, {"plot", "a.csv", "--op", "norm", "-o", "a.svg"}, {"plot", "--help"}}) {
    const ProcessResult r = command(words);
    EXPECT_EQ(r.status, 2) << r.output;
    EXPECT_TRUE(has(r.output, "plot: this program does not draw, the Python package does") && has(r.output, "`python3 python/quern/plot.py` in a checkout")) << r.output;
  }
}

TEST(cli, info_states_tensors_attributes_and_cases) {
  const Json j = Json::parse(command({"info", "norm.rms_norm", "--json"}).output);
  EXPECT_EQ(j["tensors"][0]["name"], "x");
  EXPECT_EQ(j["tensors"][0]["dims"], "tokens hidden");
  EXPECT_EQ(j["attributes"][0]["name"], "eps");
  EXPECT_TRUE(j["cases"].contains("hidden"));
}

TEST(cli, plan_json_has_its_keys) {
  const ProcessResult r = command({"plan", "norm.rms_norm", "tokens=64", "hidden=4096", "--device", "emu", "--json"});
  ASSERT_EQ(r.status, 0) << r.output;
  const Json j = Json::parse(r.output);
  for (const char* key : {"kernel", "key", "grid", "smem", "workspace", "rejected", "launches"})
    EXPECT_TRUE(j.contains(key)) << key;
  EXPECT_EQ(j["grid"].size(), 3u);
  EXPECT_EQ(j["key"].get<std::string>().size(), 16u);
  EXPECT_TRUE(j["rejected"].is_array());
}

TEST(cli, plan_tells_what_cannot_run_from_what_would_be_slower_and_names_regions) {
  const std::vector<std::string> words = {"plan", "gemm.dense", "m=64", "n=4096", "k=1000", "--arch", "sm_90a"};
  const ProcessResult r = command(words);
  EXPECT_TRUE(has(r.output, "  narrow_sm90: rejected, k=1000, wants a multiple of 64\n")) << r.output;
  EXPECT_TRUE(has(r.output, "  warp_specialised_sm90: slower, m=64, wants more than 128")) << r.output;
  std::vector<std::string> json = words;
  json.push_back("--json");
  const Json j = Json::parse(command(json).output);
  EXPECT_EQ(j["variant"], "swap_ab_sm90");
  ASSERT_EQ(j["rejected"].size(), 1u);
  EXPECT_EQ(j["rejected"][0]["variant"], "narrow_sm90");
  ASSERT_EQ(j["slower"].size(), 1u);
  EXPECT_EQ(j["slower"][0]["variant"], "warp_specialised_sm90");
  EXPECT_EQ(j["launches"][0]["cluster"].size(), 3u);
  EXPECT_TRUE(j["fills"].empty());

  json[3] = "n=256", json[4] = "k=4096", json[6] = "sm_80";
  const Json split = Json::parse(command(json).output);
  ASSERT_EQ(split["regions"].size(), 1u) << split;
  EXPECT_EQ(split["regions"][0]["name"], "sums of splits");
  EXPECT_EQ(split["regions"][0]["bytes"], split["workspace"]);
  EXPECT_EQ(split["rejected"].size(), 3u);
}

TEST(cli, asan_and_checked_are_one_or_the_other) {
  const std::vector<std::string> words = {"check", "norm.rms_norm", "tokens=1", "hidden=96", "--device", "emu", "--asan"};
  std::vector<std::string> both = words;
  both.push_back("--checked");
  const ProcessResult r = command(both);
  EXPECT_EQ(r.status, 2) << r.output;
  EXPECT_TRUE(has(r.output, "value error: `asan` is asked for together with checked, expected one of them")) << r.output;
  std::vector<std::string> json = words;
  json.insert(json.end(), {"--async", "lazy", "--json"});
  const Json results = Json::parse(command(json).output);
  for (const Json& result : results) EXPECT_TRUE(has(result["repro"], "--device emu --async lazy --asan")) << result;
}

/// Who edits kernels of a checkout and forgets QN_SOURCE_DIR would run those of the program without a word.
TEST(cli, sources_of_a_checkout_that_differ_are_told) {
  namespace fs = std::filesystem;
  const std::string folder = make_private_folder(::testing::TempDir() + "quern-checkout.");
  fs::create_directories(folder + "/quern/op");
  fs::create_directories(folder + "/quern/ops");
  fs::copy(QN_ROOT "/quern/op/schema.h", folder + "/quern/op");
  fs::copy(QN_ROOT "/quern/kit", folder + "/quern/kit", fs::copy_options::recursive);
  fs::copy(QN_ROOT "/quern/ops", folder + "/quern/ops", fs::copy_options::recursive);
  fs::copy(QN_ROOT "/quern/bench", folder + "/quern/bench", fs::copy_options::recursive);
  if (fs::exists(QN_ROOT "/quern/bricks")) fs::copy(QN_ROOT "/quern/bricks", folder + "/quern/bricks", fs::copy_options::recursive);
  const std::vector<std::string> here = {"-C", folder, "QN_SOURCE_DIR="}, sources_here = {"-C", folder, "QN_SOURCE_DIR=" + folder};
  const std::vector<std::vector<std::string>> commands = {
      {"plan", "norm.rms_norm", "tokens=2", "--device", "emu"}, {"run", "norm.rms_norm", "tokens=2", "hidden=96", "--device", "emu"}, {"check", "norm.rms_norm", "tokens=2", "hidden=96", "--device", "emu", "--sample", "1"}};
  for (const auto& words : commands) {
    const ProcessResult r = command(words, here);
    EXPECT_EQ(r.status, 0) << r.output;
    EXPECT_FALSE(has(r.output, "note:")) << r.output;
  }
  const std::string text = read_file(folder + "/quern/kit/vec.cuh").value();
  std::ofstream(folder + "/quern/kit/vec.cuh") << text << "// edited\n";
  for (const auto& words : commands) {
    const ProcessResult r = command(words, here);
    EXPECT_EQ(r.status, 0) << r.output;
    EXPECT_TRUE(has(r.output, "quern: note: 1 kernel source of this folder is not what this program carries and compiles (quern/kit/vec.cuh differs); QN_SOURCE_DIR=. compiles this folder's\n")) << r.output;
    EXPECT_FALSE(has(command(words, sources_here).output, "note:"));
  }
  std::vector<std::string> json = commands[0];
  json.push_back("--json");
  EXPECT_EQ(Json::parse(command(json, here).output)["op"], "norm.rms_norm") << "nothing is said beside JSON";
  std::filesystem::remove(folder + "/quern/kit/scan.cuh");
  EXPECT_TRUE(has(command(commands[0], here).output, "note: 2 kernel sources of this folder are not what")) << command(commands[0], here).output;
  remove_folder(folder);
}

TEST(cli, every_op_plans_its_first_case_for_every_arch) {
  for (const auto& [id, op] : registry())
    for (const Arch arch : known_archs()) {
      const ProcessResult r = command({"plan", id, "--arch", arch.name()});
      EXPECT_EQ(r.status, 0) << r.output;
    }
}

TEST(cli, bad_input_is_2_with_what_is_known) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{"plan", "norm.rms_nrm"}, "norm.rms_norm"},
      {{"plan", "norm.rms_norm", "hiden=3"}, "`hidden`"},
      {{"plan", "norm.rms_norm", "hidden"}, "parameter=value"},
      {{"plan", "norm.rms_norm", "hidden=-1"}, "extents in [0, 2^56]"},
      {{"plan", "norm.rms_norm", "x.dtype=i32"}, "f32, f16 or bf16"},
      {{"plan", "norm.rms_norm", "--arch", "sm_42"}, "sm_90a"},
      {{"run", "norm.rms_norm", "--device", "gpu"}, "cuda:N"},
      {{"check", "norm.rms_norm", "--async", "soon", "--device", "emu"}, "lazy"},
      {{"new", "NotAnOp"}, "family.name"},
      {{"fly"}, ""},
      {{}, ""}};
  for (const auto& [words, text] : wrong) {
    const ProcessResult r = command(words);
    EXPECT_EQ(r.status, 2) << r.output;
    EXPECT_TRUE(has(r.output, text)) << r.output;
  }
}

/// An option that is a list takes one word, and what stands behind that is an op or a parameter.
TEST(cli, lists_end_behind_one_word) {
  const std::vector<std::vector<std::string>> lists = {
      {"bench", "--compile", "--arch", "sm_90a"}, {"bench", "--compile", "--arch", "sm_80,sm_90a", "--arch", "sm_120a"}, {"check", "--async", "eager,lazy"}, {"check", "--schedule", "warp"}};
  for (std::vector<std::string> words : lists) {
    words.push_back("norm.rms_nrm");
    const ProcessResult r = command(words);
    EXPECT_EQ(r.status, 2) << r.output;
    EXPECT_TRUE(has(r.output, "`op` is 'norm.rms_nrm'")) << r.output;
  }
  const ProcessResult lengths = command({"demo", "--lengths", "3,4", "5"});
  EXPECT_EQ(lengths.status, 2) << lengths.output;
  EXPECT_TRUE(has(lengths.output, "not expected: 5")) << lengths.output;
}

TEST(cli, a_missing_gpu_is_3) {
  if (cuda_device_count() > 0) GTEST_SKIP() << "there is a GPU";
  const ProcessResult r = command({"run", "norm.rms_norm", "--device", "cuda:0"});
  EXPECT_EQ(r.status, 3) << r.output;
}

TEST(cli, run_compares_with_the_reference) {
  const ProcessResult r = command({"run", "norm.rms_norm", "tokens=3", "hidden=64", "--device", "emu", "--iters", "3"});
  EXPECT_EQ(r.status, 0) << r.output;
  EXPECT_TRUE(has(r.output, "right; the call took")) << r.output;
}

TEST(cli, check_says_at_once_how_much_there_is_to_do) {
  const ProcessResult r = command({"check", "norm.rms_norm", "hidden=7", "tokens=1,3", "x.dtype=f32", "x.pad=0", "out.pad=0", "out.in_place=false", "--device", "emu", "--quiet"});
  EXPECT_EQ(r.status, 0) << r.output;
  EXPECT_EQ(r.output.find("2 cases of 1 op on 1 device\n"), 0u) << r.output;
}

TEST(cli, check_json_has_a_result_for_each_case_and_device) {
  const ProcessResult r = command({"check", "norm.rms_norm", "hidden=7", "tokens=1,3", "x.dtype=f32", "x.pad=0",
                                   "out.pad=0", "out.in_place=0", "--device", "emu", "--async", "eager,lazy", "--json"});
  ASSERT_EQ(r.status, 0) << r.output;
  const Json j = Json::parse(r.output);
  EXPECT_EQ(j.size(), 4u);
  for (const Json& x : j) {
    EXPECT_TRUE(x["ok"].get<bool>());
    EXPECT_TRUE(has(x["repro"], "quern check norm.rms_norm")) << x["repro"];
  }
}

TEST(cli, fuzz_repeats_a_call_by_its_seed) {
  const ProcessResult a = command({"fuzz", "20", "--seed", "5", "--op", "norm", "--device", "emu", "--json"});
  EXPECT_EQ(a.status, 0) << a.output;
  EXPECT_EQ(a.output, command({"fuzz", "20", "--seed", "5", "--op", "norm", "--device", "emu", "--json"}).output);
}

TEST(cli, new_writes_five_files_and_never_overwrites) {
  const std::string folder = make_private_folder((std::filesystem::temp_directory_path() / "quern-test.").string());
  make_folders(folder + "/quern/ops");
  EXPECT_EQ(command({"new", "elementwise.twice_it", "--checkout", folder}).status, 0);
  for (const char* end : {".h", ".cpp", "_spec.h", ".cuh", "_ref.h"}) {
    const auto text = read_file(folder + "/quern/ops/elementwise/twice_it" + end);
    ASSERT_TRUE(text.has_value()) << end;
    EXPECT_FALSE(has(*text, "@")) << end;
    EXPECT_FALSE(has(*text, "TODO")) << end;
  }
  EXPECT_EQ(command({"new", "elementwise.twice_it", "--checkout", folder}).status, 2);
  EXPECT_EQ(command({"new", "norm.rms_norm", "--checkout", folder}).status, 2);
  remove_folder(folder);
}

}  // namespace
}  // namespace quern
