// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/op/workspace.h"

#include <cstring>

#include "quern/op/call_device.h"

namespace quern {

i64 workspace_bytes(const Op& op, const void* args, const RunOptions& options) {
  const Problem problem = bind(op, args, options);
  const Device& device = device_of_call(op, problem, options);
  return problem.empty ? 0 : make_plan(op, problem, device.info()).workspace;
}

i64 workspace_bytes(const char* id, const char* args_type, const void* args, const RunOptions& options) {
  const Op& op = find_op(id);
  if (std::strcmp(op.args_type, args_type) != 0)
    throw Error(ErrorKind::type, op.id, "args", std::string("is a ") + args_type, std::string("a ") + op.args_type + ", the op's");
  return workspace_bytes(op, args, options);
}

}  // namespace quern
