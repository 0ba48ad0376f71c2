// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/base/json_depth.h"

#include <gtest/gtest.h>

#include <string>

namespace quern {
namespace {

std::string nested(const std::string& open, const std::string& close, int depth) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += open;
  text += "1";
  for (int i = 0; i < depth; ++i) text += close;
  return text;
}

TEST(json_depth, is_of_what_is_open) {
  for (const auto& [open, close] : {std::pair{"[", "]"}, std::pair{"{\"a\": ", "}"}}) {
    EXPECT_TRUE(json_nests_well(nested(open, close, kMostJsonDepth)));
    EXPECT_FALSE(json_nests_well(nested(open, close, kMostJsonDepth + 1)));
  }
  std::string wide = "[";
  for (int i = 0; i < 1000; ++i) wide += nested("[", "]", kMostJsonDepth - 1) + ",";
  EXPECT_TRUE(json_nests_well(wide + "1]"));
}

TEST(json_depth, brackets_in_strings_are_text) {
  const std::string many(1000, '[');
  EXPECT_TRUE(json_nests_well("[\"" + many + "\"]"));
  EXPECT_TRUE(json_nests_well("[\"\\\"" + many + "\"]"));  // an escaped quote ends no string
  EXPECT_FALSE(json_nests_well("[\"\\\\\"," + many));      // an escaped backslash escapes no quote
}

}  // namespace
}  // namespace quern
