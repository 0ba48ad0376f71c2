// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/jit/sources.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>

#include "quern/base/env.h"
#include "quern/base/error.h"
#include "quern/base/fs.h"

namespace quern::jit {

static std::vector<std::span<const EmbeddedSource>>& registered() {
  static std::vector<std::span<const EmbeddedSource>> sets;
  return sets;
}

void register_sources(const EmbeddedSource* sources, int count) { registered().emplace_back(sources, size_t(count)); }

std::vector<std::string> source_names() {
  std::vector<std::string> names;
  for (const auto& set : registered())
    for (const EmbeddedSource& source : set) names.push_back(source.name);
  return names;
}

/// Of a folder without this source, which is then the library's: what can only be a mistake, as kernels that nobody edited would run.
static void check_source_folder(const std::string& folder, const std::string& name) {
  const std::string is = "QN_SOURCE_DIR is '" + folder + "', ", top = "quern/";
  if (!std::filesystem::is_directory(folder)) throw Error(ErrorKind::value, is + "expected a folder");
  if (name.starts_with(top) && std::filesystem::exists(folder + "/" + name.substr(top.size())))
    throw Error(ErrorKind::value, is + "expected the folder that quern/ lies in");
}

static std::optional<std::string> find_source(const std::string& name) {
  if (const std::string folder = env_path(Env::source_dir); !folder.empty()) {
    if (auto text = read_file(folder + "/" + name)) return text;
    check_source_folder(folder, name);
  }
  const char* found = nullptr;
  for (const auto& set : registered())
    for (const EmbeddedSource& source : set) {
      if (name != source.name) continue;
      if (found && std::strcmp(found, source.text) != 0)
        throw Error(ErrorKind::compile, "two libraries carry different sources called '" + name + "'");
      found = source.text;
    }
  return found ? std::optional<std::string>(found) : std::nullopt;
}

std::string source_text(const std::string& name) {
  if (auto text = find_source(name)) return *text;
  throw Error(ErrorKind::compile,
              "no source '" + name + "' in any library" + (env_path(Env::source_dir).empty() ? "" : " or below QN_SOURCE_DIR"));
}

/// Names between quotes of the #include lines of a source. Comments that hold one cost a needless dependency, no more.
static std::vector<std::string> include_names(const std::string& text) {
  std::vector<std::string> names;
  for (size_t at = 0; (at = text.find("#include \"", at)) != std::string::npos;) {
    at += std::strlen("#include \"");
    const size_t end = text.find('"', at);
    if (end == std::string::npos) break;
    names.push_back(text.substr(at, end - at));
  }
  return names;
}

static void collect(const std::string& text, const std::string& other_world, std::vector<Source>& into) {
  for (const std::string& name : include_names(text)) {
    if (name.compare(0, other_world.size(), other_world) == 0) continue;
    if (std::any_of(into.begin(), into.end(), [&](const Source& s) { return s.name == name; })) continue;
    auto included = find_source(name);
    if (!included) continue;
    into.push_back({name, *included});
    collect(*included, other_world, into);
  }
}

std::vector<Source> included_sources(const std::string& text, bool emulated) {
  std::vector<Source> sources;
  collect(text, emulated ? "quern/kit/ptx/" : "quern/kit/emu/", sources);
  return sources;
}

}  // namespace quern::jit
