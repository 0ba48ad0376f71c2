// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/container/tensor.h>

#include "quern/op/schema.h"

namespace quern::ffi {

/// A tensor of a framework as a view of the same memory. Throws Error{value, type} naming op and tensor for more dims, a device or
/// a dtype that quern does not know; a tensor without dims is refused, since its view would say "absent".
TensorView view_of(const DLTensor& tensor, const Op& op, const TensorDef& def);

/// Memory that somebody else owns and keeps, as a tensor: for dtypes that the owner's framework cannot export.
/// `strides` are in elements; `dtype` is a name of quern, as "bf16".
tvm::ffi::Tensor borrowed_tensor(void* data, const tvm::ffi::String& dtype, const tvm::ffi::Shape& shape, const tvm::ffi::Shape& strides,
                                 DLDevice device);

}  // namespace quern::ffi
