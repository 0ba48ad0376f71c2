// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <string>

#include "quern/op/schema.h"

namespace quern {

/// A call as the words of the command line: "hidden=4096 tokens=64 x.dtype=bf16 x.pad=8". Sizes, dtypes, presence, layout,
/// attributes and options, so that `quern plan OP words` plans the same kernels. Strides that no
/// word states (others than padded rows and swapped dims) are left out.
std::string call_words(const Op& op, const void* args, const RunOptions& options);

}  // namespace quern
