// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// How much workspace a call needs, before it is made.
#pragma once
#include <typeinfo>

#include "quern/op/run.h"

namespace quern {

struct Op;

/// Bytes that RunOptions::workspace must have for this call, on the device where it would run; 0: none. Steps 1 and 2 of the call: it
/// compiles, launches and allocates nothing, and may be asked while a stream captures. It depends on sizes, dtypes, strides and options,
/// never on contents. Throws what the call would throw of its arguments.
QN_API i64 workspace_bytes(const Op& op, const void* args, const RunOptions& options = {});

/// The same of an op by its name; `args_type` is its Args' type as typeid names it. Throws Error{value} for a name that no op has,
/// Error{type} for Args of another op.
QN_API i64 workspace_bytes(const char* op, const char* args_type, const void* args, const RunOptions& options);

/// As in `workspace_bytes("attention.paged", attention::PagedArgs{...})`.
template <class Args> i64 workspace_bytes(const char* op, const Args& args, const RunOptions& options = {}) {
  return workspace_bytes(op, typeid(Args).name(), &args, options);
}

}  // namespace quern
