// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <vector>

#include "quern/op/schema.h"

namespace quern::testing {

/// Gives cases of an op's list words that no schema states, so that every op meets them and no list grows: half of them `pdl` (CallChain),
/// and half of them data of another kind than normal. Which ones, `rotate` decides; the first stays as it is, so a list of one, as a
/// command that was printed makes it, is taken as it was typed. Words in `fixed` stay.
void add_hostility(const Op& op, std::vector<Case>& cases, u64 rotate, const std::vector<CaseAxis>& fixed);

}  // namespace quern::testing
