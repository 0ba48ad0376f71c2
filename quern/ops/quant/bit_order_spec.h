// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/abi.h"

namespace quern::quant {

/// Which bit of a byte is the first element of eight. The values enter compile keys.
enum class BitOrder : i32 {
  big,     ///< bit 7, as NumPy packs them
  little,  ///< bit 0, as masks of attention have them
};

}  // namespace quern::quant
