// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Cases of attention.ragged: sizes from words, and contents of its tensors.
#pragma once
#include "quern/op/schema.h"
#include "quern/ops/attention/ragged.h"

namespace quern::attention {

void derive_ragged(Case& which);
void generate_ragged(RaggedArgs& args, const Case& which, Random& random);

}  // namespace quern::attention
