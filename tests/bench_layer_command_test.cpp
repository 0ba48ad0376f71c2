// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// `quern bench layer` on the emulated device: a small layer, judged as on a GPU, of which eager calls alone are timed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cli_process.h"
#include "quern/base/fs.h"
#include "small_model.h"

namespace quern {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class command_bench_layer : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = make_private_folder((std::filesystem::temp_directory_path() / "quern-layer-").string());
    write_model(small_model());
  }
  void TearDown() override { remove_folder(folder_); }
  void write_model(const Json& model) { write_file(folder_ + "/model.json", model.dump()); }

  ProcessResult bench(const std::vector<std::string>& words, const std::vector<std::string>& variables = {}) {
    std::vector<std::string> all = {"bench", "layer", "--device", "emu", "--model", folder_ + "/model.json"};
    all.insert(all.end(), words.begin(), words.end());
    return command(all, variables);
  }
  static Json results_of(const ProcessResult& ran) { return Json::parse(ran.output.substr(ran.output.find("{\n")))["results"]; }

  /// A folder for QN_SOURCE_DIR in which one kernel source is changed.
  std::string changed_source(const std::string& name, const std::string& from, const std::string& to) {
    std::string text = jit::source_text(name);
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << name << " does not hold " << from;
    if (at != std::string::npos) text.replace(at, from.size(), to);
    const std::string path = folder_ + "/source/" + name;
    make_folders(path.substr(0, path.rfind('/')));
    write_file(path, text);
    return "QN_SOURCE_DIR=" + folder_ + "/source";
  }

  std::string folder_;
};

TEST_F(command_bench_layer, times_eager_calls_and_states_the_bytes_of_the_floor) {
  const auto ran = bench({"batch=1,3", "length=20", "--json", "--csv", folder_ + "/layer.csv"});
  ASSERT_EQ(ran.status, 0) << ran.output;
  const Json results = results_of(ran);
  ASSERT_EQ(results.size(), 2u * (4 + 9));  // four ways and nine calls: what is made once is not of a layer
  for (const Json& r : results) {
    EXPECT_EQ(r["ok"], 1);
    EXPECT_EQ(r["checked"], "all");
    const bool eager = r["op"] == "layer" && r["case"].get<std::string>().find("as=eager") != std::string::npos;
    EXPECT_EQ(r.contains("median_us"), eager) << r;
  }
  EXPECT_EQ(results[0]["case"], "model=small batch=1 length=20 page_size=16 as=eager pdl=false");
  EXPECT_EQ(results[3]["case"], "model=small batch=1 length=20 page_size=16 as=graph pdl=true");
  EXPECT_THAT(results[13]["case"].get<std::string>(), StartsWith("model=small batch=3 "));
  // By hand, batch 1, 2 bytes an element. Weights of the four products and of two norms; K and V of 20 tokens, and of the
  // one appended; x once and residual, read and written by both norms; indices: position, request and page of the
  // token, the cost of the page table (3 words).
  const double weights = 2.0 * (512 * 256 + 256 * 256 + 1024 * 256 + 256 * 512 + 2 * 256), cache = 2.0 * 2 * (20 + 1) * 2 * 64;
  const double stream = 2.0 * (256 + 4 * 256), indices = 12 + 4 * 3;
  EXPECT_NEAR(results[0]["bytes"].get<double>(), weights + cache + stream + indices, 5);  // printed with six digits
  double calls = 0;
  for (size_t i = 4; i < 13; ++i) calls += results[i].value("bytes", 0.0);
  EXPECT_NEAR(calls, weights + cache + stream + indices, 5);
  std::ifstream csv(folder_ + "/layer.csv");
  std::string line;
  std::getline(csv, line);
  EXPECT_THAT(line, StartsWith("op,case,kernel,device,timer,cold,runs,median_us,"));
  int lines = 0;
  while (std::getline(csv, line)) ++lines;
  EXPECT_EQ(lines, 26);
}

TEST_F(command_bench_layer, says_what_needs_a_gpu) {
  const auto ran = bench({"length=3"});
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("right, the same bits by every way; 9 calls, 9 launches"));
  EXPECT_THAT(ran.output, HasSubstr("gate and up projection"));
  EXPECT_THAT(ran.output, HasSubstr("need a GPU"));
}

/// The order that PDL leaves to the kernels, as checked mode judges it.
TEST_F(command_bench_layer, waits_where_it_must_in_checked_mode) {
  for (const char* length : {"length=20", "length=300"}) {  // one launch of attention, two
    const auto ran = bench({"batch=2", length}, {"QN_EMU_CHECKED=1"});
    EXPECT_EQ(ran.status, 0) << ran.output;
  }
  for (const auto& [kernel, length] : {std::pair{"activation/activate_row/kernel.cuh", "length=20"},
                                       {"attention/paged/split_kv/kernel.cuh", "length=20"},
                                       {"attention/paged/split_kv/combine.cuh", "length=300"}}) {
    const std::string source = changed_source(std::string("quern/ops/") + kernel, "  ptx::grid_dependency_wait();\n", "");
    const auto faulty = bench({"batch=2", length}, {"QN_EMU_CHECKED=1", source});
    EXPECT_EQ(faulty.status, 1) << kernel;
    EXPECT_THAT(faulty.output, HasSubstr("RACE")) << kernel;
    EXPECT_THAT(faulty.output, HasSubstr("by a kernel launched before")) << kernel;
    std::filesystem::remove_all(folder_ + "/source");
  }
}

TEST_F(command_bench_layer, a_wrong_layer_is_not_timed) {
  const std::string source = changed_source("quern/ops/activation/activate_row/function.cuh", "function_of<C.function>(gate[j]) * up[j];",
                                            "function_of<C.function>(gate[j]) * up[j] * f32(1.01f);");
  const auto ran = bench({"length=20", "--json"}, {source});
  EXPECT_EQ(ran.status, 1);
  const Json results = results_of(ran);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0]["ok"], 0);
  EXPECT_FALSE(results[0].contains("median_us"));
  EXPECT_THAT(results[0]["message"].get<std::string>(), StartsWith("SwiGLU: "));
}

/// A result that changes from run to run within the error budget.
TEST_F(command_bench_layer, other_bits_are_wrong) {
  const std::string source = changed_source("quern/ops/attention/paged/split_kv/kernel.cuh", "column, finished(finish, low, factor),",
                                            "column, finished(finish, low, factor) * f32(ptx::clock64() & 64 ? 1.00048828125f : 1.f),");
  const auto ran = bench({"batch=8", "length=20"}, {source});
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.output, HasSubstr("WRONG: eager: `attention` has other bits than the calls that were judged"));
}

TEST_F(command_bench_layer, refuses_bad_words) {
  for (const char* word : {"batch=0", "batch=", "batch=1,,2", "length=-3", "length=9999999", "tokens=3", "batch"}) {
    const auto ran = bench({word});
    EXPECT_EQ(ran.status, 2) << word;
    EXPECT_THAT(ran.output, HasSubstr("bench layer: `")) << word;
  }
  EXPECT_EQ(bench({"--peer", "cublaslt"}).status, 2);
  EXPECT_EQ(bench({"--rate", "-1"}).status, 2);
  EXPECT_EQ(command({"bench", "norm.rms_norm", "tokens=1", "hidden=64", "--model", folder_ + "/model.json"}).status, 2);
  Json model = small_model();
  model.erase("decode_layer");
  write_model(model);
  const auto without = bench({});
  EXPECT_EQ(without.status, 2);
  EXPECT_THAT(without.output, HasSubstr("has no decode_layer"));
  model = small_model();
  model["decode_layer"]["calls"][0]["once"] = true;
  write_model(model);
  const auto first = bench({});
  EXPECT_EQ(first.status, 2);
  EXPECT_THAT(first.output, HasSubstr("behind one that is made once"));
}

}  // namespace
}  // namespace quern
