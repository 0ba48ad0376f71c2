// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <string_view>

namespace quern::bench {

/// Memory bandwidth as the data sheet of a GPU states it, in bytes a microsecond; 0 for a name that is not known. `name` is the driver's,
/// "NVIDIA H200".
double data_sheet_bytes_per_us(std::string_view name);

}  // namespace quern::bench
