// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Warm-up from end to end: worker processes that fail, the command, recorded calls, and a frozen process after it.
#include "quern/op/warm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "cache_processes.h"
#include "cli_process.h"
#include "full_sweep.h"
#include "quern/base/fs.h"
#include "quern/jit/build_many.h"
#include "quern/jit/freeze.h"
#include "quern/jit/kernel_table.h"
#include "quern/jit/sources.h"
#include "quern/testing/case_args.h"
#include "quern/testing/model_calls.h"
#include "quern/testing/null_device.h"

namespace quern {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;

class jit_warm : public cache_test::PrivateCache {
 protected:
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  /// A model file with one call of norm.rms_norm: two kernels for 16-byte aligned operands.
  std::string small_model(const std::string& calls = "") const {
    const std::string file = path("small" + std::to_string(calls.size()) + ".json");
    std::ofstream(file) << R"({"name": "small", "geometry": {"hidden": 256}, "limits": {"tokens": "1..8", "alignment": [16]}, "calls": [
      {"does": "norm", "op": "norm.rms_norm", "case": {"tokens": "tokens", "hidden": ["hidden", 4096], "x.dtype": "bf16"}})"
                        << calls << "]}";
    return file;
  }
  /// A model file with one size.
  std::string geometry_of(const std::string& value) const {
    const std::string file = path("geometry" + value.substr(0, 9) + ".json");
    std::ofstream(file) << R"({"name": "sizes", "geometry": {"h": )" << value << "}}";
    return file;
  }
};

// ---- a frozen server ------------------------------------------------------------------------------------------------

/// Fills nothing either: workspaces are nobody's memory.
struct UntouchedDevice : testing::NullDevice {
  using NullDevice::NullDevice;
  void fill(void*, u8, size_t, Stream) override {}
};

/// 500 calls of the true geometry. The device plans as an H200, loads nothing and launches nothing, so no call needs its
/// operands' memory; every kernel must be in the cache. (quern check --model FILE --frozen runs calls on a real device.)
TEST_F(jit_warm, a_frozen_process_compiles_nothing_in_500_random_calls) {
  WarmOptions options{.model = "llama-3.1-8b", .devices = {device_info_of(Arch{})}};
  options.devices[0].emulated = 1;
  if (!full_sweep()) options.limits = {"tp=1", "alignment=16", "page_size=16"};
  const WarmReport report = warm(options);
  for (const WarmKernel& k : report.kernels) EXPECT_EQ(k.state, WarmKernel::State::compiled) << k.kernel << ": " << k.error;

  Model model = load_model(options.model);
  for (const std::string& word : options.limits) set_limit(model, word);
  UntouchedDevice device(device_info_of(Arch{}));
  jit::freeze();
  const i64 compiled = jit::counters().compiled;
  testing::ModelCalls calls(model, 5);
  for (i64 i = 0; i < 500; ++i) {
    const testing::ModelDraw draw = calls.draw();
    const testing::ArgsStorage args = testing::fake_args(*draw.op, draw.which);
    RunOptions how = testing::options_of(*draw.op, draw.which);
    how.device = &device;
    // A workspace that nobody touches: the pool would take gigabytes
    how.workspace = {reinterpret_cast<void*>(u64(1) << 40), i64(1) << 40};
    ASSERT_NO_THROW(run(*draw.op, args.get(), how)) << draw.call->does << " " << testing::case_text(*draw.op, draw.which);
  }
  EXPECT_EQ(jit::counters().compiled, compiled);
  EXPECT_GE(device.launches(), 500);

  // Outside the limits the same process refuses
  const Op& op = find_op("norm.rms_norm");
  const testing::ArgsStorage args = testing::fake_args(op, {{"tokens", 3}, {"hidden", 100}, {"x.dtype", double(int(DType::f32))}});
  try {
    run(op, args.get(), {.device = &device});
    ADD_FAILURE() << "a kernel outside the list was found";
  } catch (const Error& e) { EXPECT_EQ(e.kind(), ErrorKind::frozen) << e.what(); }
}

// ---- workers --------------------------------------------------------------------------------------------------------

const jit::KernelInfo& kernel_info(std::string (*values)(const void*)) {
  static std::deque<jit::KernelInfo> all;
  jit::KernelInfo& info = all.emplace_back();
  info.header = "quern/ops/nowhere/none.cuh", info.function = "quern::none", info.name = "none", info.config_type = "quern::NoneConfig",
  info.params_type = "quern::NoneParams";
  info.initialiser = [](const void*) { return std::string(); };
  info.values = values;
  info.threads = info.min_blocks = [](const void*) { return i32(32); };
  return info;
}

jit::BuildJob job_of(std::string (*values)(const void*)) {
  jit::BuildJob job;
  job.spec.kernel = &kernel_info(values);
  job.target.emulated = true;
  return job;
}

TEST_F(jit_warm, a_kernel_that_fails_or_kills_its_worker_is_reported_and_the_others_go_on) {
  const auto fine = [](const void*) { return std::string(); };
  const auto deadly = [](const void*) -> std::string { return std::raise(SIGKILL), ""; };
  const std::vector<jit::BuildJob> jobs = {job_of(fine), job_of(deadly), job_of(fine), job_of(deadly), job_of(fine)};
  for (const int processes : {1, 2, 16}) {
    std::vector<std::string> errors(jobs.size());
    jit::build_many(jobs, processes, [&](size_t i, const jit::BuildOutcome& o) { errors[i] = o.error; });
    for (size_t i = 0; i < jobs.size(); ++i)
      EXPECT_THAT(errors[i], HasSubstr(i % 2 ? "killed by signal 9" : "quern/ops/nowhere/none.cuh")) << i << " of " << processes;
  }
}

TEST_F(jit_warm, a_kernel_that_never_ends_is_reported_and_the_others_go_on) {
  const auto fine = [](const void*) { return std::string(); };
  const auto endless = [](const void*) -> std::string { return ::sleep(300), ""; };
  const std::vector<jit::BuildJob> jobs = {job_of(fine), job_of(endless), job_of(fine), job_of(endless), job_of(fine)};
  const auto begin = std::chrono::steady_clock::now();
  for (const int processes : {1, 3}) {
    std::vector<std::string> errors(jobs.size());
    jit::build_many(jobs, processes, [&](size_t i, const jit::BuildOutcome& o) { errors[i] = o.error; }, std::chrono::seconds(2));
    for (size_t i = 0; i < jobs.size(); ++i)
      EXPECT_THAT(errors[i], HasSubstr(i % 2 ? "not built within 2 s" : "quern/ops/nowhere/none.cuh")) << i << " of " << processes;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
}

// ---- the command ----------------------------------------------------------------------------------------------------

TEST_F(jit_warm, the_command_compiles_once_and_then_finds_all) {
  const std::string model = small_model(R"(, {"does": "experts", "op": "moe.none", "missing": true})");
  const ProcessResult first = command({"warm", "--model", model, "--device", "emu", "-j", "2"});
  EXPECT_EQ(first.status, 0) << first.output;
  EXPECT_THAT(first.output, HasSubstr("[2/2] compiled in "));
  EXPECT_THAT(first.output, HasSubstr("not in quern yet: moe.none"));
  EXPECT_THAT(first.output, HasSubstr("2 compiled, 0 cached, 0 failed"));
  const ProcessResult second = command({"warm", "--model", model, "--device", "emu", "--json"});
  EXPECT_EQ(second.status, 0) << second.output;
  const Json j = Json::parse(second.output);
  ASSERT_EQ(j["kernels"].size(), 2u);
  EXPECT_EQ(j["kernels"][0]["state"], "cached");
  EXPECT_GT(j["kernels"][0]["image_bytes"], 1000);
  EXPECT_EQ(j["skipped"][0]["reason"], "not in quern yet");
}

TEST_F(jit_warm, failures_exit_with_3_and_bad_input_with_2) {
  setenv("QN_JIT_HOST_COMPILER", "false", 1);
  const ProcessResult failed = command({"warm", "--model", small_model(), "--device", "emu"});
  unsetenv("QN_JIT_HOST_COMPILER");
  EXPECT_EQ(failed.status, 3) << failed.output;
  EXPECT_THAT(failed.output, HasSubstr("0 compiled, 0 cached, 2 failed"));
  setenv("QN_CACHE_DIR", "/proc/none", 1);  // nobody can write there
  for (const auto& [option, where] : {std::pair{"--device", "emu"}, std::pair{"--arch", "sm_90a"}}) {
    const ProcessResult lost = command({"warm", "--model", small_model(), option, where});
    EXPECT_EQ(lost.status, 3) << lost.output;
    EXPECT_THAT(lost.output, AllOf(HasSubstr("0 compiled"), HasSubstr("the cache folder /proc/none does not keep it")));
  }
  setenv("QN_CACHE_DIR", folder_.c_str(), 1);
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{"--model", "llama-9"}, "llama-3.1-8b"},
      {{"--model", small_model(), "tokns=1..8"},
       "`tokns` is no limit of small, expected `tokens`; known are alignment, batch_invariant, tokens\n"},
      {{"--model", small_model(), "q=1..8"}, "`q` is no limit of small, expected one of alignment, batch_invariant, tokens\n"},
      {{"--model", "llama-3.1-8b", "batch_invariante=1"},
       "expected `batch_invariant`; known are alignment, batch_invariant, batch, tokens, length, pages, page_size, tp\n"},
      {{"--model", small_model(), "tokens"},
       "`limit` is 'tokens', expected name=1,2,4 or name=1..512; known are alignment, batch_invariant, tokens\n"},
      {{"--model", small_model(), "tokens=8..1"}, "a range that ends where it starts or behind"},
      {{"--model", small_model(), "tokens=many"}, "a range as in 1..512"},
      {{"--model", small_model(R"(, {"does": "x", "op": "norm.rms_nrm", "case": {}})")}, "small, x: `op` is 'norm.rms_nrm'"},
      {{}, "a model file or recorded calls"},
      {{"--model", small_model(), "alignment=1..16"}, "`alignment` is '1..16', expected 1, 2, 4, 8 or 16"},
      {{"--model", small_model(), "alignment=3"}, "`alignment` is '3'"},
      {{"--model", small_model(), "batch_invariant=0..1"}, "`batch_invariant` is '0..1', expected 0, 1 or 0,1"},
      {{"--model", small_model(), "batch_invariant=2"}, "`batch_invariant` is '2'"},
      {{"--model", geometry_of("1e300")}, "`h` is 1e+300 in geometry, expected an integer"},
      {{"--model", geometry_of("64.5")}, "`h` is 64.5 in geometry"},
      {{"--model", geometry_of("-64")}, "`h` is -64 in geometry"},
      {{"--model", geometry_of(std::string(200000, '[') + std::string(200000, ']'))}, "is nested deeper than 64"},
      {{"--model", geometry_of("true")}, "`h` is true in geometry"},
      {{"--model", small_model(R"(, {"does": "x", "op": "norm.rms_norm", "cases": {}})")}, "has `cases` in a call, expected `case`"},
      {{"--model", small_model(R"(], "limit": [)")}, "has `limit` in the model, expected `limits`"},
      {{"--trace", path("none")}, "none"},
      {{"--trace", std::string(5000, 'a')}, "value error: `trace` is 'aaa"},
      {{"--model", small_model(), "--arch", "sm_42"}, "sm_90a"}};
  for (auto [words, text] : wrong) {
    words.insert(words.begin(), "warm");
    const ProcessResult r = command(words);
    EXPECT_EQ(r.status, 2) << r.output;
    EXPECT_THAT(r.output, HasSubstr(text));
  }
}

TEST_F(jit_warm, limits_may_stand_behind_a_list_of_archs) {
  const ProcessResult r =
      command({"warm", "--model", small_model(), "--list", "--json", "--arch", "sm_80,sm_90a", "--arch", "sm_120a", "tokens=1..2"});
  ASSERT_EQ(r.status, 0) << r.output;
  std::set<std::string> archs;
  const Json report = Json::parse(r.output);
  for (const Json& kernel : report["kernels"]) archs.insert(kernel["arch"]);
  EXPECT_THAT(archs, ::testing::ElementsAre("sm_120a", "sm_80", "sm_90a"));
}

/// An op may refuse some sizes of a range. The kernels of the others are listed, and the first refusal is told.
TEST_F(jit_warm, sizes_that_the_op_refuses_are_told) {
  const std::string file = path("partly.json");
  std::ofstream(file)
      << R"({"name": "m", "geometry": {}, "limits": {"batch": "1..4", "tokens": "1..4", "page_size": [16], "alignment": [16]}, "calls": [
    {"does": "attention", "op": "attention.paged", "case": {"batch": "batch", "tokens": "tokens", "heads_q": 8, "heads_kv": 1, "head_dim": 64, "pages": 64, "page_size": "page_size", "max_pages": 4, "q.dtype": "bf16", "page_table.present": 1, "seq_lens.present": 1}}]})";
  const ProcessResult r = command({"warm", "--model", file, "--arch", "sm_90a", "--list"});
  EXPECT_EQ(r.status, 0) << r.output;
  EXPECT_THAT(r.output,
              ::testing::ContainsRegex("refused for some sizes: attention \\(attention.paged, sm_90a\\): tokens=1, wants batch=2"));
  const ProcessResult calls = command({"check", "--model", file, "--calls", "2", "--device", "emu", "batch=3", "tokens=1"});
  EXPECT_EQ(calls.status, 2) << calls.output;
  EXPECT_THAT(calls.output, HasSubstr("2 refused"));
}

/// Some of a call's values may be refused while others reach kernels.
TEST_F(jit_warm, values_that_the_op_refuses_are_named) {
  const std::string file = path("refused.json");
  std::ofstream(file)
      << R"({"name": "m", "geometry": {"d": 64}, "limits": {"batch": "1..4", "page_size": [16, 32], "empty": [0, 1], "alignment": [16]}, "calls": [
    {"does": "decode", "op": "attention.paged", "case": {"batch": "batch", "tokens": "batch", "heads_q": 8, "heads_kv": 1, "head_dim": ["d", "1000"], "pages": 64, "page_size": "page_size", "max_pages": 4, "q.dtype": "bf16", "page_table.present": 1, "seq_lens.present": 1}},
    {"does": "norm", "op": "norm.rms_norm", "case": {"tokens": "batch * empty", "hidden": "d", "x.dtype": "bf16"}}]})";
  const ProcessResult r = command({"warm", "--model", file, "--arch", "sm_90a", "--list"});
  EXPECT_EQ(r.status, 2) << r.output;
  for (const char* with : {"head_dim=1000 page_size=16", "head_dim=1000 page_size=32"})
    EXPECT_THAT(r.output,
                ::testing::ContainsRegex(std::string("skipped decode with ") + with + " \\(attention.paged, sm_90a\\): .*head_dim"));
  EXPECT_THAT(r.output, ::testing::Not(HasSubstr("head_dim=d")));
  EXPECT_THAT(r.output, HasSubstr("skipped norm with empty=0 (norm.rms_norm, sm_90a): its outputs are empty"));
  const Json j = Json::parse(command({"warm", "--model", file, "--arch", "sm_90a", "--list", "--json"}).output);
  ASSERT_EQ(j["skipped"].size(), 3u);
  EXPECT_EQ(j["skipped"][0]["with"], "head_dim=1000 page_size=16");
  EXPECT_EQ(j["skipped"][0]["refused"], true);
  EXPECT_EQ(j["skipped"][2]["refused"], false);
  EXPECT_GT(j["kernels"].size(), 1u);
}

TEST_F(jit_warm, recorded_calls_become_a_list) {
  setenv("QN_TRACE", path("trace").c_str(), 1);
  for (const char* tokens : {"tokens=2", "tokens=3"})
    EXPECT_EQ(command({"run", "norm.rms_norm", tokens, "hidden=96", "x.dtype=bf16", "x.pad=1", "--device", "emu"}).status, 0);
  EXPECT_EQ(command({"run", "activation.silu_and_mul", "tokens=2", "intermediate=64", "--device", "emu"}).status, 0);
  unsetenv("QN_TRACE");
  const ProcessResult r = command({"warm", "--trace", path("trace"), "--device", "emu", "--list", "--json"});
  ASSERT_EQ(r.status, 0) << r.output;
  const Json j = Json::parse(r.output);
  ASSERT_EQ(j["kernels"].size(), 2u);  // both norms are one kernel: tokens are in no key
  EXPECT_THAT(r.output, HasSubstr("norm_row<dtype=bf16, add_residual=0, vector=1,"));
  const ProcessResult built = command({"warm", "--trace", path("trace"), "--device", "emu"});
  EXPECT_THAT(built.output, HasSubstr("0 compiled, 2 cached, 0 failed")) << "the same keys as the calls themselves";
}

TEST_F(jit_warm, check_model_runs_on_the_devices_that_were_asked_for) {
  const std::vector<std::string> words = {"check", "--model", small_model(), "--calls", "2", "--device", "emu"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = words;
    all.insert(all.end(), more.begin(), more.end());
    return command(all);
  };
  const ProcessResult checked = with({"--checked", "--async", "eager,lazy", "--emu-seed", "7", "--json"});
  ASSERT_EQ(checked.status, 0) << checked.output;
  const Json j = Json::parse(checked.output);
  ASSERT_EQ(j.size(), 2u);
  EXPECT_EQ(j[0]["device"], "--device emu --async eager --emu-seed 7 --checked");
  EXPECT_EQ(j[1]["device"], "--device emu --async lazy --emu-seed 7 --checked");
  EXPECT_GT(j[0]["compiled"], 0);
  EXPECT_EQ(j[0]["compared"], 2);
  EXPECT_EQ(with({"--async", "soon"}).status, 2);
  // What means nothing there is refused, not ignored
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
           {"--seeds", "2"}, {"--sample", "1"}, {"--seconds", "1"}, {"--full"}, {"--each-kernel"}, {"--threads", "1"}, {"--quiet"}}) {
    const ProcessResult r = with(more);
    EXPECT_EQ(r.status, 2) << r.output;
    EXPECT_THAT(r.output, AllOf(HasSubstr(more[0]), HasSubstr("--model")));
  }
}

TEST_F(jit_warm, check_model_refuses_what_warm_refuses) {
  const std::pair<std::vector<std::string>, std::string> wrong[] = {
      {{small_model(), "alignment=1"}, "small, norm: norm.rms_norm: `alignment` leaves none for `x`"},
      {{small_model(R"(, {"does": "other norm", "op": "norm.rms_norm", "case": {"tokens": "tokens"}})")},
       "small, other norm: norm.rms_norm: `hidden` is not given by the model file"},
      {{small_model(R"(, {"does": "x", "op": "norm.rms_norm", "case": {"tokens": 1, "hidden": 64, "x.dtype": ["f32", "u8"]}})")},
       "small, x: norm.rms_norm: `x` is u8"},
      {{small_model(R"(, {"does": "x", "op": "norm.rms_nrm", "case": {}})")}, "small, x: `op` is 'norm.rms_nrm'"}};
  for (const auto& [words, text] : wrong)
    for (const std::string& subcommand : {std::string("check"), std::string("warm")}) {
      std::vector<std::string> all = {subcommand, "--model"};
      all.insert(all.end(), words.begin(), words.end());
      all.insert(all.end(), {"--device", "emu"});
      const ProcessResult r = command(all);
      EXPECT_EQ(r.status, 2) << subcommand << ": " << r.output;
      EXPECT_THAT(r.output, HasSubstr(text)) << subcommand;
    }
}

/// A result that is wrong outweighs everything; the line makes the call again in the environment of the failure.
TEST_F(jit_warm, check_model_tells_a_wrong_result) {
  const std::string name = "quern/ops/norm/norm_row/kernel.cuh", product = "y[j] = v[j] * scale * weight[j];";
  std::string text = jit::source_text(name);
  const size_t at = text.find(product);
  ASSERT_NE(at, std::string::npos);
  text.insert(at + product.size() - 1, " * f32(1.1f)");
  const std::string source = path("source");
  make_folders(source + "/" + name.substr(0, name.rfind('/')));
  write_file(source + "/" + name, text);
  const ProcessResult r = command({"check", "--model", small_model(), "--calls", "2", "--device", "emu"},
                                  {"-u", "QN_JIT_NVRTC", "QN_EMU_SMS=2", "QN_SOURCE_DIR=" + source});
  EXPECT_EQ(r.status, 1) << r.output;
  EXPECT_THAT(r.output, AllOf(HasSubstr("WRONG norm: QN_SOURCE_DIR=" + source + " QN_EMU_SMS=2 quern run norm.rms_norm "),
                              HasSubstr("2 wrong; 2 calls compared")));
}

TEST_F(jit_warm, check_model_runs_frozen_calls) {
  const std::string model = small_model();
  const ProcessResult cold = command({"check", "--model", model, "--frozen", "--calls", "3", "--device", "emu"});
  EXPECT_EQ(cold.status, 3) << "a kernel that is not there is no wrong result: " << cold.output;
  EXPECT_THAT(cold.output, AllOf(HasSubstr("FROZEN norm: "), HasSubstr("quern run norm.rms_norm "),
                                 HasSubstr(" frozen: 0 kernels compiled, 0 from the cache, 3 frozen; 0 calls compared")));
  const ProcessResult by_variable = command({"check", "--model", model, "--calls", "2", "--device", "emu", "--json"}, {"QN_JIT_FROZEN=1"});
  EXPECT_EQ(by_variable.status, 3) << by_variable.output;
  EXPECT_EQ(Json::parse(by_variable.output)[0]["failures"][1]["verdict"], "frozen");
  EXPECT_EQ(command({"warm", "--model", model, "--device", "emu"}).status, 0);
  const ProcessResult warmed = command({"check", "--model", model, "--frozen", "--calls", "20", "--device", "emu"});
  EXPECT_EQ(warmed.status, 0) << warmed.output;
  EXPECT_THAT(
      warmed.output,
      HasSubstr(
          "20 calls of small on NVIDIA H200 (--device emu), frozen: 0 kernels compiled, 2 from the cache, 0 failures; 20 calls compared"));
}

}  // namespace
}  // namespace quern
