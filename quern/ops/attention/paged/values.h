// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Page tables, lengths and query tokens of random calls, and what must never be read.
#pragma once
#include "quern/op/schema.h"
#include "quern/ops/attention/paged.h"

namespace quern::attention {

/// Turns the words gqa, capacity and csr into axes and present tensors.
void derive_paged(Case& which);
/// Lengths (all `length` where that word is given, else 0, 1, page edges and random ones up to the capacity) and distinct
/// shuffled pages. Table entries that no token needs name a page far outside; tokens that no query sees hold NaN.
void generate_paged(PagedArgs& args, const Case& which, Random& random);

}  // namespace quern::attention
