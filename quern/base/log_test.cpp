// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/base/log.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace quern {

using Lines = std::vector<std::pair<LogLevel, std::string>>;

TEST(log_sink, gets_what_the_level_lets_through) {
  Lines lines;
  set_log_sink([&](LogLevel level, const std::string& text) {
    lines.emplace_back(level, text);
    return true;
  });
  testing::internal::CaptureStderr();
  log(LogLevel::warning, "too warm");
  log(LogLevel::call, "not asked for");
  set_log_level(1);
  log(LogLevel::call, "norm.rms_norm");
  log(LogLevel::tensors, "x");
  set_log_level(0);
  log_always("verbose");
  set_log_sink(nullptr);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(lines, (Lines{{LogLevel::warning, "too warm"}, {LogLevel::call, "norm.rms_norm"}, {LogLevel::call, "verbose"}}));
}

TEST(log_sink, that_takes_nothing_leaves_the_line_to_the_destination) {
  set_log_sink([](LogLevel, const std::string&) { return false; });
  testing::internal::CaptureStderr();
  log(LogLevel::warning, "too warm");
  set_log_sink(nullptr);
  log(LogLevel::warning, "no sink");
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("] warning: too warm\n"), std::string::npos) << text;
  EXPECT_NE(text.find("] warning: no sink\n"), std::string::npos) << text;
}

}  // namespace quern
