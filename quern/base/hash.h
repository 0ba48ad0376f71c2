// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "quern/kit/abi.h"

namespace quern {

/// XXH3, 64 bits: for tables in memory.
u64 hash64(const void* bytes, size_t size);
/// XXH3, 128 bits, as 32 hex digits: for digests on disk.
std::string hash128_hex(std::string_view bytes);

}  // namespace quern
