// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Calls that are recorded while a test runs, and their replay.
#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "quern/base/fs.h"
#include "quern/device/emulated.h"
#include "quern/op/trace.h"
#include "quern/testing/replay.h"

namespace quern::trace_test {

using Json = nlohmann::json;

/// A folder that calls are recorded to while it lives.
class Recording {
 public:
  explicit Recording(TraceOptions options = {})
      : folder(make_private_folder((std::filesystem::temp_directory_path() / "quern-trace-").string())) {
    options.folder = folder;
    set_trace(options);
  }
  ~Recording() {
    stop();
    remove_folder(folder);
  }
  void stop() { set_trace({}); }
  std::vector<std::string> calls() const { return testing::traced_calls(folder); }
  std::string only() const { return calls().size() == 1 ? calls()[0] : "recorded " + std::to_string(calls().size()); }

  const std::string folder;
};

inline Json json_of(const std::string& path) { return Json::parse(read_file(path).value_or("{}")); }

inline void run_case(const Op& op, const Case& which, u64 seed = 1) {
  testing::CaseArgs args(op, which, seed);
  run(op, args.args(), testing::options_of(op, args.which()));
}

inline void expect_replays(const std::string& folder, Device& device, bool bits) {
  const testing::TracedCall call = testing::read_traced_call(folder);
  const testing::ReplayResult result = testing::replay(call, device);
  EXPECT_EQ(result.verdict(), testing::ReplayResult::Verdict::right) << folder;
  EXPECT_EQ(result.compared(), result.outputs.size());
  EXPECT_FALSE(result.outputs.empty());
  for (const testing::ReplayedOutput& o : result.outputs) {
    EXPECT_EQ(o.has_bits, bits);
    EXPECT_EQ(o.different, 0) << call.op->id << " " << o.name << " " << o.first;
    EXPECT_TRUE(o.replayed.ok) << o.replayed.message;
    EXPECT_TRUE(o.recorded.ok) << o.recorded.message;
  }
}

inline Device& emulated() { return device_of(DeviceId{}); }
inline Device& checked() {
  static const std::unique_ptr<Device> device = make_emulated_device(emulated().info(), {.checked = true});
  return *device;
}

}  // namespace quern::trace_test
