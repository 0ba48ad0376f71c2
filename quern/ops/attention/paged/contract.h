// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/schema.h"
#include "quern/ops/attention/paged.h"

namespace quern::attention {

Breach paged_contract(const PagedArgs& args, const Problem& problem);

}  // namespace quern::attention
