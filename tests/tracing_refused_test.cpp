// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Records that are damaged, of another format, or too large for the machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <limits>
#include <tuple>

#include "cli_process.h"
#include "traces.h"

namespace quern::trace_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(tracing, a_record_that_was_damaged_or_is_of_another_format_is_refused) {
  Recording recording;
  run_case(find_op("norm.rms_norm"), {{"tokens", 2}, {"hidden", 64}});
  recording.stop();
  const std::string folder = recording.only(), text = read_file(folder + "/call.json").value();
  const auto error_with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    write_file(folder + "/call.json", changed);
    try {
      testing::read_traced_call(folder);
    } catch (const Error& e) { return std::string(e.what()); }
    return std::string("nothing thrown");
  };
  EXPECT_THAT(error_with("\"format\": 2", "\"format\": 99"), HasSubstr("is of format 99, expected format 2"));
  EXPECT_THAT(error_with("\"eps\"", "\"epsilon\""), HasSubstr("has the attribute epsilon"));
  EXPECT_THAT(error_with("\"bytes\": 256", "\"bytes\": 255"), HasSubstr("outside its memory"));
  EXPECT_THAT(error_with("\"op\"", "\"o\""), HasSubstr("cannot be read"));
  EXPECT_THAT(error_with("norm.rms_norm", "norm.rms_norn"), HasSubstr("the nearest is norm.rms_norm"));
}

/// The reader's error of a record whose call.json was changed by a JSON patch.
std::string error_of_patched(const std::string& folder, const Json& original, const Json& patch) {
  write_file(folder + "/call.json", original.patch(patch).dump());
  try {
    testing::read_traced_call(folder);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::value);
    return e.what();
  }
  return "nothing thrown";
}

TEST(tracing, each_value_of_a_record_is_checked_before_it_is_used) {
  Recording recording;
  run_case(find_op("norm.rms_norm"), {{"tokens", 2}, {"hidden", 64}});
  recording.stop();
  const std::string folder = recording.only();
  const Json original = json_of(folder + "/call.json");
  const i64 most = std::numeric_limits<i64>::max();
  const auto replaced = [](const char* path, Json value) { return Json{{{"op", "replace"}, {"path", path}, {"value", std::move(value)}}}; };
  const std::tuple<Json, const char*, const char*> wrong[] = {
      {replaced("/tensors/0/shape", {-2, -64}), "the extent of dim 0 of x -2", "integer in [0, "},
      {replaced("/tensors/0/shape", {2.5, 64}), "the extent of dim 0 of x 2.5", "integer"},
      {replaced("/tensors/0/shape", Json::array()), "the shape [] of x", "1 to 5 extents"},
      {replaced("/tensors/0/shape", {i64(1) << 62, 4}), "the tensor x of shape", "inside the 256 bytes"},
      {replaced("/tensors/0/strides", {-64, 1}), "the stride of dim 0 of x -64", "integer in [0, "},
      {replaced("/tensors/0/strides", {0, 0, 0}), "the strides [0,0,0] of x", "one a dim"},
      {replaced("/tensors/0/offset", most), "the offset of x 9223372036854775807", "integer in [0, "},
      {replaced("/tensors/0/offset", 2), "the tensor x of shape [2,64] and strides [64,1] at offset 2 outside its memory", "256 bytes"},
      {replaced("/tensors/0/memory", i64(1) << 40), "the memory of x 1099511627776", "integer in [0, 2]"},
      {replaced("/tensors/0/memory", -1), "the memory of x -1", "integer in [0, 2]"},
      {replaced("/tensors/1", original["tensors"][0]), "the tensor x twice", "once"},
      {Json{{{"op", "remove"}, {"path", "/tensors/2"}}}, "lacks the tensor out", "all that norm.rms_norm needs"},
      {replaced("/attributes", Json::object()), "lacks the attribute eps", "all of norm.rms_norm"},
      {replaced("/attributes/eps", "hello"), "the attribute eps of \"hello\"", "a number of f32"},
      {replaced("/attributes/eps", 1e300), "the attribute eps of 1e+300", "a number of f32"},
      {replaced("/attributes/eps", true), "the attribute eps of true", "a number of f32"},
      {replaced("/memory/0/misalignment", -100000000), "the misalignment of memory 0 -100000000", "integer in [0, 255]"},
      {replaced("/memory/0/misalignment", 256), "the misalignment of memory 0 256", "integer in [0, 255]"},
      {replaced("/memory/0/bytes", -5), "the bytes of memory 0 -5", "integer in [0, "},
      {replaced("/memory/0/bytes", most), "the bytes of memory 0 9223372036854775807", "integer in [0, "},
      {replaced("/memory/0/bytes", ~u64(0)), "the bytes of memory 0 18446744073709551615", "integer in [0, "},
  };
  for (const auto& [patch, got, expected] : wrong)
    EXPECT_THAT(error_of_patched(folder, original, patch), AllOf(HasSubstr(folder + "/call.json"), HasSubstr(got), HasSubstr(expected)));
  for (const char* word : {"nan", "inf", "-inf"})
    EXPECT_EQ(error_of_patched(folder, original, replaced("/attributes/eps", word)), "nothing thrown");
  std::string twice = original.dump();
  twice.replace(twice.find("\"eps\""), 5, "\"eps\": 1, \"eps\"");
  write_file(folder + "/call.json", twice);
  EXPECT_THAT(command({"run", "--replay", folder}).output, HasSubstr("has the key \"eps\" twice"));
}

/// Values of a record are printed in errors, by recursion.
TEST(tracing, a_record_that_nests_too_deep_is_refused) {
  Recording recording;
  run_case(find_op("norm.rms_norm"), {{"tokens", 2}, {"hidden", 64}});
  recording.stop();
  const std::string folder = recording.only(), deep = std::string(200000, '[') + std::string(200000, ']');
  for (const auto& [file, from] : {std::pair{"result.json", "\"finished\""}, std::pair{"call.json", "9.999999974752427e-07"}}) {
    std::string text = read_file(folder + "/" + file).value();
    ASSERT_NE(text.find(from), std::string::npos) << text;
    write_file(folder + "/" + file, text.replace(text.find(from), std::strlen(from), deep));
    const ProcessResult r = command({"run", "--replay", folder});
    EXPECT_EQ(r.status, 2) << r.output;
    EXPECT_THAT(r.output, AllOf(HasSubstr(file), HasSubstr("is nested deeper than 64")));
  }
}

TEST(tracing, a_replay_that_needs_more_memory_than_there_is_is_refused) {
  Recording recording;
  run_case(find_op("norm.rms_norm"), {{"tokens", 2}, {"hidden", 64}});
  recording.stop();
  Json j = json_of(recording.only() + "/call.json");
  j["memory"][0]["bytes"] = i64(1) << 46;
  write_file(recording.only() + "/call.json", j.dump());
  const ProcessResult r = command({"run", "--replay", recording.only()});
  EXPECT_EQ(r.status, 3) << r.output;
  EXPECT_THAT(r.output, HasSubstr("the host has no 1407374883"));  // once more for the reference
}

/// x and out of n elements take 4 n bytes, with those of the reference 8 n, with its doubles and the packed outputs 28 n.
TEST(tracing, the_memory_of_what_a_replay_is_compared_with_is_counted) {
  Recording recording;
  run_case(find_op("norm.rms_norm"), {{"tokens", 2}, {"hidden", 64}});
  recording.stop();
  Json j = json_of(recording.only() + "/call.json");
  const i64 rows = i64(::sysconf(_SC_PHYS_PAGES)) * i64(::sysconf(_SC_PAGESIZE)) / 16 / 64;
  for (Json& t : j["tensors"]) {
    if (t["name"] == "weight") continue;
    t["shape"] = {rows, 64};
    j["memory"][t["memory"].get<size_t>()]["bytes"] = rows * 64 * 2;
  }
  write_file(recording.only() + "/call.json", j.dump());
  const ProcessResult r = command({"run", "--replay", recording.only()});
  EXPECT_EQ(r.status, 3) << r.output;
  EXPECT_THAT(r.output, HasSubstr("the host has no "));
}

TEST(tracing, files_that_are_no_files_or_far_too_large_are_refused_unread) {
  Recording recording;
  run_case(find_op("norm.rms_norm"), {{"tokens", 2}, {"hidden", 64}});
  recording.stop();
  const std::string folder = recording.only();
  const auto replayed = [&] { return run_process({"timeout", "60", QN_CLI, "run", "--replay", folder}); };
  for (const char* name : {"x.before", "out.after", "result.json", "call.json"}) {
    const std::string path = folder + "/" + name, text = read_file(path).value();
    std::filesystem::resize_file(path, size_t(1) << 40);  // sparse
    ProcessResult r = replayed();
    EXPECT_EQ(r.status, 2) << r.output;
    EXPECT_THAT(r.output, HasSubstr(name));
    ASSERT_EQ(::unlink(path.c_str()), 0);
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    r = replayed();
    EXPECT_EQ(r.status, 2) << r.output;
    EXPECT_THAT(r.output, HasSubstr(name));
    ASSERT_EQ(::unlink(path.c_str()), 0);
    write_file(path, text);
  }
  EXPECT_EQ(replayed().status, 0);
}

}  // namespace
}  // namespace quern::trace_test
