// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What the commands print with --json, as text: for callers in the process, such as bindings. All throw Error.
#pragma once
#include <string>
#include <vector>

#include "quern/op/warm.h"

namespace quern::cli {

/// Schema of an op: `quern info OP --json`.
QN_API std::string info_json(const std::string& op);
/// `quern plan OP WORDS --json`; the device is that of `arch` or, where that is empty, the one named `device`.
QN_API std::string plan_json(const std::string& op, const std::vector<std::string>& words, const std::string& arch,
                             const std::string& device);
/// `quern doctor --json`.
QN_API std::string doctor_json();
/// `quern warm --json` for these archs, this device (empty: none) and the calls in a folder of QN_TRACE (empty: none), besides what `what`
/// states.
QN_API std::string warm_json(WarmOptions what, const std::vector<std::string>& archs, const std::string& device, const std::string& trace,
                             const WarmProgress& progress);

}  // namespace quern::cli
