// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <string>
#include <vector>

namespace quern::jit {

/// A kernel source or header carried inside the library.
struct EmbeddedSource {
  const char* name;  ///< path from the repository's root, as in #include "..."
  const char* text;
};
extern const EmbeddedSource kEmbeddedSources[];
extern const int kEmbeddedSourceCount;

struct Source {
  std::string name;
  std::string text;
};

/// Text of a kernel source: from QN_SOURCE_DIR when set, else from the library. Throws Error{internal} when there is none.
std::string source_text(const std::string& name);

/// Every file that `text` includes with #include "...", directly or not, each once, in order of first use. kit/world.cuh
/// includes one of kit/emu and kit/ptx; the other is left out, so that a change there recompiles nothing here. A file that
/// does not exist is left out as well: if it is needed the compiler says so.
std::vector<Source> included_sources(const std::string& text, bool emulated);

}  // namespace quern::jit
