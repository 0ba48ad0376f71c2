// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// An op as a function that Python calls without TVM-FFI, for tensors whose class has DLPack's exchange API. Through TVM-FFI a tensor of
// torch costs 210 ns, of which its two owners on the heap are most, and a call without any 200 ns; here 100 ns, which are torch's, and 60
// ns.
#pragma once
#include <tvm/ffi/any.h>

#include "quern/ffi/python_abi.h"
#include "quern/op/schema.h"

namespace quern::ffi {

/// A builtin function of Python, or None where the process has none. Positional arguments: every tensor, then every attribute, in the
/// schema's order, and True where the outputs are new, so that nobody is told that they were written; the stream is the framework's current
/// one. True: the call was made; what it throws is the exception that op_function's would be. False: nothing was done, for torch records a
/// gradient, or an argument is not of a class that was taken or not what it has to be: op_function says what is wrong with it. The function
/// lives as long as the process.
tvm::ffi::Any python_function(const Op& op);

namespace python {

/// From now on functions of ops take tensors of this class: of it, not of those derived from it. After a call `wrote` is called with a
/// tuple of those that were written. False: the class has no exchange API. Whoever calls keeps both alive.
bool take_class(Object* type, Object* wrote);

}  // namespace python

}  // namespace quern::ffi
