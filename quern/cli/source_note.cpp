// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/cli/source_note.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "quern/base/env.h"
#include "quern/base/fs.h"
#include "quern/jit/sources.h"

namespace quern::cli {

std::string source_note(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code none;
  if (!fs::exists(folder + "/quern/kit/kit.cuh", none) || !fs::exists(folder + "/quern/op/schema.h", none)) return "";
  std::string first;
  int count = 0;
  for (const std::string& name : jit::source_names()) {
    if (!name.starts_with("quern/")) continue;  // of a user's library
    const auto here = read_file(folder + "/" + name);
    if (here && *here == jit::source_text(name)) continue;
    if (count++ == 0) first = name + (here ? " differs" : " is missing here");
  }
  if (count == 0) return "";
  return fmt::format(
      "quern: note: {} kernel source{} of this folder {} not what this program carries and compiles ({}{}); QN_SOURCE_DIR=. compiles this folder's",
      count, count == 1 ? "" : "s", count == 1 ? "is" : "are", first, count == 1 ? "" : ", ..");
}

void print_source_note() {
  static bool printed = false;
  if (printed || !env(Env::source_dir).empty()) return;
  printed = true;
  if (const std::string note = source_note("."); !note.empty()) fmt::print(stderr, "{}\n", note);
}

}  // namespace quern::cli
