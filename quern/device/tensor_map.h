// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <string>

#include "quern/device/device.h"

namespace quern {

/// Type, address, shape, strides, box and swizzle, for errors.
std::string tensor_map_text(const TensorMapSpec& spec);
/// The first rule of cuTensorMapEncodeTiled that the specification breaks, or null. The rank is in 1 .. 5.
const char* tensor_map_problem(const TensorMapSpec& spec);

}  // namespace quern
