// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <span>
#include "quern/device/device.h"
namespace quern::emu {
class MemoryMap {
 public:
  MemoryMap(std::span<const MemoryRange>, const char*) {}
};
}  // namespace quern::emu
