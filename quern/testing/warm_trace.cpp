// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/testing/warm_trace.h"

#include "quern/testing/traced_call.h"

namespace quern::testing {

std::vector<WarmCall> warm_calls(const std::string& folder, bool trust_hooks) {
  std::vector<WarmCall> calls;
  for (const std::string& one : traced_calls(folder)) {
    const TracedCall call = read_traced_call(one, trust_hooks);
    calls.push_back({"recorded " + call.op->id, bind(*call.op, call.args.get(), call.options)});
  }
  if (calls.empty()) throw Error(ErrorKind::value, "", "trace", "is '" + folder + "'", "a folder with calls that QN_TRACE recorded");
  return calls;
}

}  // namespace quern::testing
