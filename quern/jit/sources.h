// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <string>
#include <vector>

#include "quern/base/api.h"

namespace quern::jit {

/// A kernel source or header carried inside a library.
struct EmbeddedSource {
  const char* name;  ///< path from the project's root, as in #include "..."
  const char* text;
};
/// Makes sources known to kernels, for good. Files made by `quern_embed_sources` (CMake) call it when their library is loaded.
QN_API void register_sources(const EmbeddedSource* sources, int count);

struct Source {
  std::string name;
  std::string text;
};

/// Names of all registered sources.
std::vector<std::string> source_names();
/// Text of a kernel source: from QN_SOURCE_DIR when set and it is there, else from the libraries. Throws Error{compile} when there is none,
/// or when two libraries carry different ones of that name; Error{value} when QN_SOURCE_DIR is no folder, or quern/ itself.
QN_API std::string source_text(const std::string& name);

/// Every file that `text` includes with #include "...", directly or not, each once, in order of first use. kit/world.cuh
/// includes one of kit/emu and kit/ptx; the other is left out, so that a change there recompiles nothing here. A file that
/// does not exist is left out as well: if it is needed the compiler says so.
std::vector<Source> included_sources(const std::string& text, bool emulated);

}  // namespace quern::jit
