// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/schema.h"

namespace quern {

/// The memory of a kept region of the op: the same on every call, of zeros when the stream's first call finds it. It lives as long as the
/// process. Throws Error{frozen} where it would have to be made while the stream captures.
char* kept_memory(const Op& op, const RegionFacts& region, Device& device, Stream stream);

}  // namespace quern
