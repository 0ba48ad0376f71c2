// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/testing/variant_runs.h"

#include "quern/testing/case_args.h"
#include "quern/testing/pairwise.h"

namespace quern::testing {

/// Not the same as runs(): a call without work is accepted whatever the variant.
static bool plans(const Op& op, const Case& given, const DeviceInfo& device) {
  try {
    const Case which = derived(op, given);
    const Problem problem = bind(op, fake_args(op, which).get(), options_of(op, which));
    return !problem.empty && make_plan(op, problem, device).count > 0;
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::value || e.kind() == ErrorKind::type || e.kind() == ErrorKind::unsupported) return false;
    throw;
  }
}

bool variant_runs(const Op& op, const std::string& variant, const DeviceInfo& device) {
  const Scalar index = parse_value(op, "variant", variant);
  const auto runs_there = [&](Case which) {
    which["variant"] = index;
    return plans(op, which, device);
  };
  for (const Case& shape : op.bench)
    if (runs_there(shape)) return true;
  const DeviceInfo any = device_info_of(Arch{});  // the widest list of cases, whatever the device refuses
  for (const Case& which : pairwise(parameters_of(op), [&](const Case& c) { return runs(op, c, any); }))
    if (runs_there(which)) return true;
  return false;
}

}  // namespace quern::testing
