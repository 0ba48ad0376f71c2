// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The recorder: each call becomes a folder with call.json and the tensors' elements. The format is docs/tracing.md; testing/traced_call.h
// reads it.
#pragma once
#include "quern/op/observe.h"

namespace quern {

/// The "format" of call.json.
constexpr int kTraceFormat = 2;
/// The "status" of a call whose outputs could not be written, beside "finished" and "failed".
constexpr char kOutputsNotRecorded[] = "finished, outputs not recorded";

/// Why the call's data would not be recorded; empty when it would.
std::string trace_left_out(const ObservedCall& call);

/// Records a call before its launch: definition, plan and the tensors that it reads. The folder, published under its final
/// name; empty when nothing was recorded (no recording, or a call like one recorded before and no data asked for). A
/// failure to record is a warning.
std::string record_inputs(const ObservedCall& call);
/// Adds the tensors that it wrote to the folder, all or none, where the inputs were recorded with their data. Waits for the stream.
/// Throws Error{device} when the call failed.
void record_outputs(const ObservedCall& call, const std::string& folder);
/// Notes in the folder that the call failed.
void record_failure(const std::string& folder, const Error& error);

/// True when a folder to record to is set.
bool tracing();
/// Calls set_observed() with it, one at a time with set_trace().
void look_for_tracing();

}  // namespace quern
