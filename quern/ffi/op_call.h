// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// An op of the registry as a function of TVM-FFI. Its signature is the op's schema, known when the process runs: so it is a
// packed function that checks each argument, not one that C++ types.
#pragma once
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/optional.h>
#include <tvm/ffi/string.h>

#include "quern/op/schema.h"

namespace quern::ffi {

/// Flags of a call, or-ed: members of RunOptions.
enum CallFlags : i64 { kBatchInvariant = 1, kPdl = 2, kSkipCheck = 4 };

constexpr size_t kMostArgsBytes = 4096;

/// Positional arguments: every tensor in the schema's order (None: absent), every attribute in the schema's order, then as many as
/// wanted of
///   stream     None: the framework's current stream (TVMFFIEnvGetStream); else a handle
///   device     0: where the tensors lie; else a handle that device() of the binding gave
///   variant    None: plan's choice; else a name
///   flags      CallFlags
///   workspace  None: the device's pool; else a tensor of bytes
/// and, where the op takes hooks,
///   hooks         None: the op's own, if it has some; else a handle that hooks() of the binding gave
///   hook_params   None, or the bytes that the hooks read: they must be given where hooks read some
///   hook_tensors  one after the other, None or a tensor: those of any shape, in the schema's order. They are no tensors of the list above
/// Host tensors run on the emulated device when QN_DEVICE or `device` says so and are an error otherwise.
tvm::ffi::Function op_function(const Op& op);

/// The same arguments; what the call costs the host: [microseconds a call from C++, of its launches alone], the medians of `batches`
/// batches of calls that the device works off in 10 us each, on the call's stream. Empty where nothing is launched.
tvm::ffi::Function op_host_time(const Op& op, int batches);

/// The same arguments; the bytes of workspace that the call needs. Nothing is launched.
tvm::ffi::Function op_workspace(const Op& op);

/// The same arguments up to the launch: throws what the call would, and touches no memory. For callers that trace.
tvm::ffi::Function op_check(const Op& op);

/// The same as op_function for callers with an order of their own: tensor or attribute i of the schema is argument sources[i], or absent
/// where that is -1. The options are bound here; the stream is the framework's current one.
tvm::ffi::Function arranged(const Op& op, const tvm::ffi::Shape& sources, i64 device, const tvm::ffi::Optional<tvm::ffi::String>& variant,
                            i64 flags);

/// Tensors of the op's signature: all but those that only hooks read.
size_t signature_tensors(const Op& op);

/// Throws Error{internal} where the op's Args are larger than kMostArgsBytes.
void check_args_fit(const Op& op);

/// One attribute of a call into its Args. Throws Error{type, value} for a value that it cannot take.
void set_attribute(const Op& op, const AttrDef& attr, const tvm::ffi::AnyView& value, void* args);

/// Throws Error{value} where tensor `index`, the first of a call, is on the host and nobody chose the emulated device.
void check_place(const Op& op, const TensorView& first, size_t index, const RunOptions& options);

}  // namespace quern::ffi
