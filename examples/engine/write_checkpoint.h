// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Writes what checkpoint.h reads: for tests, and to keep a model of random weights.
#pragma once
#include <map>
#include <string>

#include "quern/base/tensor_view.h"

namespace engine {

/// A file of safetensors with tensors of host memory, those of wider elements first, so that each lies at a multiple of its element's size.
/// Throws quern::Error{value} for a tensor that is not contiguous or not on the host, or a name that no file can have, and
/// quern::Error{device} with the path where the file cannot be written; then an unfinished file may be left.
void write_safetensors(const std::string& file, const std::map<std::string, quern::TensorView>& tensors);

}  // namespace engine
