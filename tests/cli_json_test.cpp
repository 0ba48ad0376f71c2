// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What scripts rely on: one JSON document on stdout for every command that has --json, and the completion of shells.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "quern/base/fs.h"
#include "quern/base/subprocess.h"
#include "quern/jit/sources.h"
#include "quern/op/schema.h"
#include "small_model.h"

namespace quern {
namespace {

using Json = nlohmann::json;

/// stdout of a command line alone.
std::string output_of(const std::string& line) {
  return run_process({"bash", "-c", std::string(QN_CLI) + " " + line + " 2>/dev/null"}).output;
}

struct Document {
  const char* line;
  const char* keys;  ///< of the document, or of each element of an array
};

TEST(cli_json, every_command_prints_one_document_with_its_keys) {
  const std::string folder = make_private_folder((std::filesystem::temp_directory_path() / "quern-json-").string());
  run_process({"env", "QN_TRACE=" + folder, QN_CLI, "run", "norm.rms_norm", "tokens=1", "hidden=64", "--device", "emu"});
  std::string replayed = "run --json --replay";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) replayed += " " + entry.path().string();  // the one call
  write_file(folder + "/model.json", small_model().dump());
  const std::string demo = "demo --device emu --lengths 3 --json --model " + folder + "/model.json";
  const std::string layer = "bench layer length=3 --device emu --json --model " + folder + "/model.json";
  const Document documents[] = {
      {"list --json", "op formula"},
      {"info norm.rms_norm --json",
       "op formula source tensors attributes variants cases words bench budget requirements parameters takes_hooks"},
      {"plan norm.rms_norm --device emu --json", "kernel key grid smem workspace regions launches fills rejected slower"},
      {"run norm.rms_norm tokens=2 hidden=64 --device emu --json", "op case device kernels ok error message us outputs"},
      {replayed.c_str(), "op folder device kernels recorded_kernels ok compared planned_alike recorded_error outputs"},
      {"check norm.rms_norm tokens=2 hidden=64 x.dtype=f32 x.pad=0 out.pad=0 --device emu --json",
       "op case device kernels ok error message repro verdict"},
      {"fuzz 5 --op norm --device emu --json", "calls outcomes breaks failures"},
      {"bench norm.rms_norm tokens=1 hidden=64 --device emu --budget 1 --json", "ceilings results"},
      {layer.c_str(), "ceilings results"},
      {"doctor --json", "version devices nvrtc host_compilers cache environment test_compiles"},
      {demo.c_str(), "model device ok steps outputs"}};
  for (const Document& d : documents) {
    Json j;
    ASSERT_NO_THROW(j = Json::parse(output_of(d.line))) << d.line;
    ASSERT_FALSE(j.empty()) << d.line;
    const Json& checked = j.is_array() ? j[0] : j;
    std::istringstream keys(d.keys);
    for (std::string key; keys >> key;) EXPECT_TRUE(checked.contains(key)) << d.line << ": " << key;
  }
  remove_folder(folder);
}

/// A kernel of quern's own, whatever ops a user has loaded: a broken op of theirs is no broken machine.
TEST(cli_json, doctor_compiles_the_same_kernel_everywhere) {
  const Json compiles = Json::parse(output_of("doctor --json"))["test_compiles"];
  ASSERT_FALSE(compiles.empty());
  for (const Json& c : compiles) EXPECT_EQ(c["kernel"].get<std::string>().find("norm_row<"), 0u) << c;
}

TEST(cli_json, info_is_the_whole_definition_of_every_op) {
  for (const auto& [id, op] : registry()) {
    const Json j = Json::parse(output_of("info " + id + " --json"));
    EXPECT_EQ(j.dump().find("generated"), std::string::npos) << id << ": a word of tests, which says nothing to users";
    Json shown = j["tensors"];  // those that only hooks read stand with the hooks
    for (const Json& t : j.contains("hooks") ? j["hooks"]["tensors"] : Json::array()) shown.push_back(t);
    ASSERT_EQ(shown.size(), op->tensors.size()) << id;
    for (size_t i = 0; i < op->tensors.size(); ++i) {
      EXPECT_EQ(shown[i]["name"], op->tensors[i].name);
      EXPECT_EQ(shown[i]["axes"].size(), size_t(op->tensors[i].rank));
    }
    EXPECT_EQ(j["attributes"].size(), op->attrs.size());
    EXPECT_EQ(j["variants"].size(), op->variants.size());
    EXPECT_EQ(j["cases"].size(), op->cases.size());
    // A word that is no name of the schema is explained
    std::set<std::string> names = {"batch_invariant", "variant"};
    for (const auto& [axis, meaning] : j["axes"].items()) names.insert(axis);
    for (const AttrDef& a : op->attrs) names.insert(a.name);
    for (const CaseAxis& c : op->cases) {
      const bool own = c.name.find('.') == std::string::npos && !names.count(c.name);
      EXPECT_EQ(own, !c.meaning.empty()) << id << " " << c.name;
      EXPECT_EQ(j["words"].contains(c.name), own) << id << " " << c.name;
    }
    EXPECT_EQ(j["bench"].size(), op->bench.size());
    EXPECT_FALSE(j["budget"]["outputs"].empty());
  }
}

/// What bash would offer for a line, by the script as a user loads it.
std::string offered(const std::string& line) {
  const std::string folder = std::filesystem::path(QN_CLI).parent_path().string();
  return run_process({"bash", "-c",
                      "PATH=" + folder + ":$PATH; source <(quern completion bash); COMP_LINE='" + line +
                          "'; COMP_POINT=${#COMP_LINE}; _quern; printf '%s\n' \"${COMPREPLY[@]}\""})
      .output;
}

TEST(cli_completion, bash_is_offered_commands_ops_parameters_values_and_options) {
  EXPECT_EQ(offered("quern de"), "demo\n");
  EXPECT_EQ(offered("quern plan gemm.gr"), "gemm.grouped_contiguous\ngemm.grouped_masked\n");
  EXPECT_EQ(offered("quern check att"), "attention\nattention.merge_states\nattention.paged\nattention.ragged\n");
  EXPECT_EQ(offered("quern run norm.rms_norm hid"), "hidden=\n");
  EXPECT_EQ(offered("quern run norm.rms_norm x.dtype=b"), "bf16\n");
  EXPECT_EQ(offered("quern run norm.rms_norm tokens=2 --che"), "--checked\n");
  EXPECT_EQ(offered("quern plan norm.rms_norm --arch sm_9"), "sm_90a\n");
  EXPECT_EQ(offered("quern nothing "), "\n");
  for (const auto& [id, op] : registry()) EXPECT_NE(offered("quern info ").find(id + "\n"), std::string::npos) << id;
}

TEST(cli_completion, the_scripts_of_other_shells_ask_the_same_command) {
  for (const char* shell : {"bash", "zsh", "fish"})
    EXPECT_NE(output_of(std::string("completion ") + shell).find("completion next"), std::string::npos) << shell;
  EXPECT_EQ(run_process({QN_CLI, "completion", "tcsh"}).status, 2);
}

}  // namespace
}  // namespace quern
