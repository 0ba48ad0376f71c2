// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The command as a user meets it: exit codes, JSON keys, error texts. QN_CLI is the path of the built program.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "cli_process.h"
#include "quern/base/fs.h"
#include "quern/cli/sample.h"
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
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"plot"}, {"plot", "a.csv", "--op", "norm", "-o", "a.svg"}, {"plot", "--help"}}) {
    const ProcessResult r = command(words);
    EXPECT_EQ(r.status, 2) << r.output;
    EXPECT_TRUE(has(r.output, "plot: this program does not draw, the Python package does") &&
                has(r.output, "`python3 python/quern/plot.py` in a checkout"))
        << r.output;
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
  for (const char* key : {"kernel", "key", "grid", "smem", "workspace", "rejected", "launches"}) EXPECT_TRUE(j.contains(key)) << key;
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
      {"plan", "norm.rms_norm", "tokens=2", "--device", "emu"},
      {"run", "norm.rms_norm", "tokens=2", "hidden=96", "--device", "emu"},
      {"check", "norm.rms_norm", "tokens=2", "hidden=96", "--device", "emu", "--sample", "1"}};
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
    EXPECT_TRUE(has(
        r.output,
        "quern: note: 1 kernel source of this folder is not what this program carries and compiles (quern/kit/vec.cuh differs); QN_SOURCE_DIR=. compiles this folder's\n"))
        << r.output;
    EXPECT_FALSE(has(command(words, sources_here).output, "note:"));
  }
  std::vector<std::string> json = commands[0];
  json.push_back("--json");
  EXPECT_EQ(Json::parse(command(json, here).output)["op"], "norm.rms_norm") << "nothing is said beside JSON";
  std::filesystem::remove(folder + "/quern/kit/scan.cuh");
  EXPECT_TRUE(has(command(commands[0], here).output, "note: 2 kernel sources of this folder are not what"))
      << command(commands[0], here).output;
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
      {{"plan", "norm.rms_norm", "hidden=-1"}, "expected at least 1"},
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
TEST(cli, a_line_without_a_command_says_which_there_are) {
  const ProcessResult near = command({"pln", "norm.rms_norm"}), none = command({}), far = command({"zzzzzzzz"});
  for (const ProcessResult* r : {&near, &none, &far}) {
    EXPECT_EQ(r->status, 2) << r->output;
    EXPECT_TRUE(has(r->output, "\n  plan ") && has(r->output, "\n  doctor ")) << r->output;
  }
  EXPECT_TRUE(has(near.output, "quern: 'pln' is no command; the nearest is plan. The commands:")) << near.output;
  EXPECT_TRUE(has(none.output, "quern: a command is missing. The commands:")) << none.output;
  EXPECT_TRUE(has(far.output, "quern: 'zzzzzzzz' is no command. The commands:")) << far.output;
  EXPECT_TRUE(has(command({"--nonsense"}).output, "quern: '--nonsense' stands where a command should")) << command({"--nonsense"}).output;
}

TEST(cli, a_numeric_option_says_its_range) {
  const struct {
    std::vector<std::string> words;
    const char* text;
  } refused[] = {
      {{"run", "norm.rms_norm", "--iters", "0"}, "--iters: is '0', expected a whole number from 1 to 1000000000"},
      {{"run", "norm.rms_norm", "--seed", "text"}, "--seed: is 'text', expected a whole number from 0 to 9223372036854775807"},
      {{"run", "norm.rms_norm", "--seed", "-1"}, "--seed: is '-1', expected a whole number from 0"},
      {{"check", "norm.rms_norm", "--sample", "-3"}, "--sample: is '-3', expected a whole number from 0 to 1000000000"},
      {{"check", "norm.rms_norm", "--seeds", "1.5"}, "--seeds: is '1.5', expected a whole number from 1"},
      {{"check", "norm.rms_norm", "--threads", "-2"}, "--threads: is '-2', expected a whole number from 0 to 1024"},
      {{"check", "--emu-seed", "99999999999999999999"}, "--emu-seed: is '99999999999999999999', expected a whole number from 0"},
      {{"fuzz", "0"}, "calls: is '0', expected a whole number from 1"},
      {{"bench", "--budget", "0"}, "--budget: is '0', expected a number above 0, up to 1e9"},
      {{"bench", "--budget", "nan"}, "--budget: is 'nan', expected a number above 0"},
      {{"bench", "--compile", "--threads", "0"}, "--threads: is '0', expected a whole number from 1 to 1024"},
      {{"warm", "-j", "0"}, "is '0', expected a whole number from 1 to 1024"},
  };
  for (const auto& [words, text] : refused) {
    const ProcessResult r = command(words);
    EXPECT_EQ(r.status, 2) << r.output;
    EXPECT_TRUE(has(r.output, text)) << r.output;
  }
}

TEST(cli, lists_end_behind_one_word) {
  const std::vector<std::vector<std::string>> lists = {{"bench", "--compile", "--arch", "sm_90a"},
                                                       {"bench", "--compile", "--arch", "sm_80,sm_90a", "--arch", "sm_120a"},
                                                       {"check", "--async", "eager,lazy"},
                                                       {"check", "--schedule", "warp"}};
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
  EXPECT_TRUE(has(r.output, " the first time, compile included, then ")) << r.output;
}

TEST(cli, check_says_at_once_how_much_there_is_to_do) {
  const ProcessResult r = command({"check", "norm.rms_norm", "hidden=7", "tokens=1,3", "x.dtype=f32", "x.pad=0", "out.pad=0",
                                   "out.in_place=false", "fp8=0", "weight_bias=0", "wide_weight=0", "--device", "emu", "--quiet"});
  EXPECT_EQ(r.status, 0) << r.output;
  EXPECT_EQ(r.output.find("2 cases of 1 op on 1 device\n"), 0u) << r.output;
  const ProcessResult ways =
      command({"check", "norm.rms_norm", "hidden=7", "tokens=1", "x.dtype=f32", "x.pad=0", "out.pad=0", "out.in_place=false", "fp8=0",
               "weight_bias=0", "wide_weight=0", "--device", "emu", "--async", "eager,lazy", "--quiet"});
  EXPECT_EQ(ways.output.find("1 case of 1 op in 2 ways: --device emu --async eager, --device emu --async lazy\n"), 0u) << ways.output;
}

/// Nothing was compared: that is no wrong result, and no right one.
TEST(cli, check_counts_apart_what_did_not_run) {
  const std::string cache = "QN_CACHE_DIR=" + make_private_folder("/tmp/quern-cli-");
  const std::vector<std::string> small = {"tokens=1",  "hidden=64",          "x.dtype=f32", "x.pad=0",
                                          "out.pad=0", "out.in_place=false", "--device",    "emu"};
  const auto ran = [&](std::vector<std::string> words, const std::vector<std::string>& variables) {
    words.insert(words.end(), small.begin(), small.end());
    return command(words, variables);
  };
  const ProcessResult frozen = ran({"check", "norm.rms_norm"}, {cache, "QN_JIT_FROZEN=1"});
  EXPECT_EQ(frozen.status, 3) << frozen.output;
  EXPECT_TRUE(has(frozen.output, "FROZEN norm.rms_norm")) << frozen.output;
  EXPECT_FALSE(has(frozen.output, "WRONG")) << frozen.output;
  const ProcessResult timed = ran({"bench", "norm.rms_norm"}, {cache, "QN_JIT_FROZEN=1"});
  EXPECT_EQ(timed.status, 3) << timed.output;
  EXPECT_TRUE(has(timed.output, "FROZEN: norm.rms_norm")) << timed.output;
  const ProcessResult refused =
      command({"check", "attention.paged", "batch=1", "pages=1", "length=40", "--sample", "1", "--device", "emu"});
  EXPECT_EQ(refused.status, 2) << refused.output;
  EXPECT_TRUE(has(refused.output, "REFUSED attention.paged")) << refused.output;
  const ProcessResult unsupported =
      command({"check", "gemm.dense", "variant=swap_ab_sm90", "m=3", "n=16", "k=64", "--sample", "1", "--device", "emu:sm_80"});
  EXPECT_EQ(unsupported.status, 2) << unsupported.output;
  EXPECT_TRUE(has(unsupported.output, "unsupported error: gemm.dense: no variant runs this")) << unsupported.output;
}

TEST(cli, samples_that_rotate_reach_every_case) {
  for (size_t count = 0; count < 50; ++count)
    for (size_t wanted = 0; wanted < 60; ++wanted) {
      std::set<size_t> all;
      const size_t size = wanted == 0 ? count : std::min(count, wanted);
      for (u64 rotate = 1000; rotate < 1000 + (size ? (count + size - 1) / size : 1); ++rotate) {
        const std::vector<size_t> some = cli::sample_of(count, wanted, rotate);
        EXPECT_EQ(std::set<size_t>(some.begin(), some.end()).size(), size);
        EXPECT_EQ(some.size(), size);
        all.insert(some.begin(), some.end());
      }
      EXPECT_EQ(all.size(), count) << wanted;
      EXPECT_TRUE(all.empty() || *all.rbegin() == count - 1);
    }
}

TEST(cli, check_takes_the_sample_and_the_time_that_are_asked_for) {
  const std::vector<std::string> words = {
      "check", "quant.transform_scales", "--sample", "3", "--threads", "1", "--device", "emu", "--no-nvrtc", "--json"};
  const auto cases = [&](const std::string& rotate) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--rotate", rotate});
    const ProcessResult r = command(all);
    EXPECT_EQ(r.status, 0) << r.output;
    std::set<std::string> which;
    for (const Json& result : Json::parse(r.output.substr(r.output.find('[')))) which.insert(result["case"]);
    return which;
  };
  const std::set<std::string> first = cases("0"), second = cases("1");
  EXPECT_EQ(first.size(), 3u);
  EXPECT_EQ(second.size(), 3u);
  for (const std::string& which : second) EXPECT_FALSE(first.contains(which)) << which;
  const ProcessResult cut = command(
      {"check", "quant.transform_scales", "--sample", "3", "--threads", "1", "--device", "emu", "--no-nvrtc", "--seconds", "0.000001"});
  EXPECT_EQ(cut.status, 0) << cut.output;
  EXPECT_TRUE(has(cut.output, "quant.transform_scales      1      0")) << cut.output;
  EXPECT_TRUE(has(cut.output, "cases left out after 1e-06 s of an op: 2 of quant.transform_scales")) << cut.output;
}

TEST(cli, what_is_printed_is_what_ran) {
  const ProcessResult cut = command({"run", "attention.paged", "length=8192", "--device", "emu"});
  EXPECT_EQ(cut.status, 2) << cut.output;
  EXPECT_TRUE(has(cut.output, "attention.paged: `length` is 8192, expected 0 to capacity=600")) << cut.output;
  for (const char* verb : {"check", "bench"}) {
    const ProcessResult r = command({verb, "attention.paged", "length=8192", "--device", "emu"});
    EXPECT_EQ(r.status, 2) << r.output;
    EXPECT_TRUE(has(r.output, "`length` is 8192, expected 0 to capacity=600")) << r.output;
  }
  EXPECT_TRUE(has(command({"info", "attention.paged"}).output, "tokens of each request, at most capacity")) << "length";
  const std::vector<std::string> words = {"gemm.dense", "hopper=1", "m=3", "n=13", "k=40", "a.pad=0", "--device", "emu"};
  for (const char* verb : {"plan", "run", "check"}) {
    std::vector<std::string> all = {verb};
    all.insert(all.end(), words.begin(), words.end());
    if (all[0] == "check") all.insert(all.end(), {"--sample", "1"});
    const ProcessResult r = command(all);
    EXPECT_TRUE(has(r.output, "runs as ") && has(r.output, "n=16")) << r.output;
  }
}

TEST(cli, check_json_has_a_result_for_each_case_and_device) {
  const ProcessResult r =
      command({"check", "norm.rms_norm", "hidden=7", "tokens=1,3", "x.dtype=f32", "x.pad=0", "out.pad=0", "out.in_place=0", "fp8=0",
               "weight_bias=0", "wide_weight=0", "--device", "emu", "--async", "eager,lazy", "--json"});
  ASSERT_EQ(r.status, 0) << r.output;
  const Json j = Json::parse(r.output);
  EXPECT_EQ(j.size(), 4u);
  for (const Json& x : j) {
    EXPECT_TRUE(x["ok"].get<bool>());
    EXPECT_TRUE(has(x["repro"], "quern check norm.rms_norm")) << x["repro"];
  }
}

/// The line that makes a case again says what the environment said.
TEST(cli, a_repro_command_has_the_environment_in_front) {
  const ProcessResult r = command({"check", "norm.rms_norm", "hidden=7", "tokens=1", "x.dtype=f32", "x.pad=0", "out.pad=0",
                                   "out.in_place=0", "--device", "emu", "--json"},
                                  {"-u", "QN_JIT_NVRTC", "QN_EMU_SMS=1", "QN_EMU_ASYNC=lazy", "QN_SOURCE_DIR=" QN_ROOT});
  ASSERT_EQ(r.status, 0) << r.output;
  for (const Json& x : Json::parse(r.output)) {
    const std::string repro = x["repro"];
    EXPECT_TRUE(repro.starts_with("QN_SOURCE_DIR=" QN_ROOT " QN_EMU_ASYNC=lazy QN_EMU_SMS=1 quern check norm.rms_norm ")) << repro;
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
  for (const char* end : {".h", "/twice_it.cpp", "/spec.h", "/kernel.cuh", "/ref.h"}) {
    const auto text = read_file(folder + "/quern/ops/elementwise/twice_it" + end);
    ASSERT_TRUE(text.has_value()) << end;
    EXPECT_FALSE(has(*text, "@")) << end;
    EXPECT_FALSE(has(*text, "TODO")) << end;
  }
  EXPECT_EQ(command({"new", "elementwise.twice_it", "--checkout", folder}).status, 2);
  EXPECT_EQ(command({"new", "norm.rms_norm", "--checkout", folder}).status, 2);
  EXPECT_EQ(command({"new", "mine.twice_it", "--project", folder}).status, 0);  // whose files are the user's
  for (const char* end : {".h", "/twice_it.cpp", "/spec.h", "/kernel.cuh", "/ref.h"}) {
    const auto theirs = read_file(folder + "/mine/twice_it" + end), ours = read_file(folder + "/quern/ops/elementwise/twice_it" + end);
    ASSERT_TRUE(theirs.has_value() && ours.has_value()) << end;
    EXPECT_FALSE(has(*theirs, "Copyright") || has(*theirs, "SPDX")) << end;
    EXPECT_TRUE(has(*ours, "Copyright 2026 The quern authors")) << end;
  }
  remove_folder(folder);
}

/// The examples' test builds and checks what is written.
TEST(cli, new_based_on_an_op_whose_kernels_take_hooks) {
  const std::string folder = make_private_folder((std::filesystem::temp_directory_path() / "quern-test.").string());
  const auto made = [&](const char* base) { return command({"new", "mine.my_mask", "--based-on", base, "--project", folder}); };
  const ProcessResult r = made("attention.paged");
  EXPECT_EQ(r.status, 0) << r.output;
  EXPECT_TRUE(has(r.output, "kernels.cpp mine/my_mask/hooks.cuh)")) << r.output;
  const std::string hooks = read_file(folder + "/mine/my_mask/hooks.cuh").value_or(""),
                    schema = read_file(folder + "/mine/my_mask/my_mask.cpp").value_or("");
  EXPECT_TRUE(has(
      hooks,
      "struct MyMaskHooks {\n  QN_DEVICE f32 logit(f32 x, const HookContext& at) { return x; }\n  QN_DEVICE bool visible(const HookContext& at) { return true; }\n};"))
      << hooks;
  EXPECT_TRUE(has(schema, "[]([[maybe_unused]] double x, [[maybe_unused]] const HookContext& at) { return x; }")) << schema;
  for (const std::string& text : {hooks, schema, read_file(folder + "/mine/my_mask.h").value_or("@")})
    EXPECT_FALSE(has(text, "@") || has(text, "SPDX")) << text;
  EXPECT_EQ(made("attention.paged").status, 2) << "never overwritten";
  EXPECT_TRUE(
      has(made("norm.rms_norm").output, "`--based-on` is 'norm.rms_norm', whose kernels take no hooks, expected one of attention.paged"));
  EXPECT_EQ(made("attention.decode").status, 2);
  EXPECT_EQ(command({"new", "mine.my_mask", "--based-on", "attention.paged"}).status, 2) << "a project of the user's own";
  remove_folder(folder);
}

}  // namespace
}  // namespace quern
