// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <vector>

#include "quern/emu/module.h"
#include "quern/emu/report.h"

namespace quern::emu {

/// Fills in file:line of every report, as far as the module has debug information and addr2line is installed.
void locate(std::vector<Report>& reports, const Module& module);

}  // namespace quern::emu
