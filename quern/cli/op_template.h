// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <span>

namespace quern::cli {

/// A file that `quern new` writes. @family@, @name@ and @Name@ stand for "elementwise", "scale" and "Scale".
struct TemplateFile {
  const char* path;  ///< below the family's folder: "@name@/spec.h"
  const char* text;
};
/// The five files of an op that scales a matrix: it builds, checks and benches at once.
std::span<const TemplateFile> op_template();
/// The three files of an op that is another with hooks, which change nothing yet. Beside the words above, @base@, @scope@, @Args@ and
/// @based@ stand for "attention.paged", "attention", "PagedArgs" and "paged"; @members@ and @meanings@ for the points in the kernel and in
/// the reference.
std::span<const TemplateFile> hooks_template();

}  // namespace quern::cli
