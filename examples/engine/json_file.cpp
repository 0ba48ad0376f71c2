// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "json_file.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <vector>

#include "quern/base/error.h"

namespace engine {

using Json = nlohmann::json;
using quern::Error, quern::ErrorKind;

constexpr int kMostDepth = 32;            // of objects and lists in a file
constexpr size_t kMostBytes = 64u << 20;  // of a JSON file

[[noreturn]] static void fail(const std::string& where, const std::string& key, const std::string& got, const std::string& expected) {
  throw Error(ErrorKind::value, where, key, got, expected);
}

Json parse_json(const std::string& text, const std::string& where) {
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto check = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kMostDepth) fail(where, "", "nests deeper than " + std::to_string(kMostDepth) + " objects and lists", "less");
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key) {
      const std::string& key = parsed.get_ref<const std::string&>();
      if (!keys.back().insert(key).second) fail(where, key, "stands twice in one object", "once");
    }
    return true;
  };
  try {
    return Json::parse(text, check);
  } catch (const Json::exception& e) {
    std::string why = e.what();
    if (why.size() > 240) why = why.substr(0, 240) + "...";
    for (char& c : why)
      if (c < ' ' || c > '~') c = '?';
    fail(where, "", "is no JSON: " + why, "");
  }
}

Json read_json(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) fail(path, "", "is no file that can be read", "a file of JSON");
  const auto size = std::filesystem::file_size(path, error);
  if (error || size > kMostBytes)
    fail(path, "", error ? "cannot be read" : "has " + std::to_string(size) + " bytes", "at most " + std::to_string(kMostBytes) + " bytes");
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (size > 0) text << file.rdbuf();
  if (!file || !text) fail(path, "", "cannot be read", "a file of JSON");
  return parse_json(text.str(), path);
}

}  // namespace engine
