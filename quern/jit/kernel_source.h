// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <string>
#include <vector>

#include "quern/jit/sources.h"
#include "quern/jit/spec.h"

namespace quern::jit {

/// All that a kernel is compiled from, read once: its key and its code are made of the same bytes, also while files below
/// QN_SOURCE_DIR are being edited.
struct KernelSource {
  std::string name;             ///< print()
  std::string entry;            ///< entry_name()
  std::string text;             ///< render()
  std::vector<Source> headers;  ///< included_sources() of the text
};
/// Throws Error{value} for hooks that the kernel would not call: see check_hooks().
KernelSource read_source(const KernelSpec& spec, bool emulated);

}  // namespace quern::jit
