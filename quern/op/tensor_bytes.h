// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// A tensor's elements as packed bytes (row-major, no gaps), whatever its strides and wherever it lies.
#pragma once
#include <memory>

#include "quern/device/device.h"

namespace quern {

/// Bytes of the elements.
inline i64 packed_bytes(const TensorView& view) { return view.present() ? view.numel() * size_of(view.dtype) : 0; }

/// Element by element between host tensors of one shape and dtype.
void copy_elements(const TensorView& from, const TensorView& into);

/// The elements of a tensor of `device`, packed. Waits for the stream. Throws Error{device}, also when the host has no
/// room for them.
std::unique_ptr<char[]> packed_elements(const TensorView& view, Device& device, Stream stream);

}  // namespace quern
