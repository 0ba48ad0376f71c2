// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <vector>

#include "quern/emu/memory_map.h"

namespace quern::emu {

/// Which bytes of its call's memory a launch has read and written, for launches that may overlap it.
class Footprint {
 public:
  explicit Footprint(const MemoryMap& memory);
  ~Footprint();
  Footprint(const Footprint&) = delete;
  Footprint& operator=(const Footprint&) = delete;

  /// The bytes lie in one region of the memory.
  void add(u64 address, u64 bytes, bool write);
  struct Conflict {
    bool found = false, written = false;
    u64 byte = 0;
  };
  /// First byte of the range that may not be accessed at the same time.
  Conflict find(u64 address, u64 bytes, bool write) const;

 private:
  struct Piece {
    u64 low, high;
    u8* touched;  ///< kRead, kWritten of each byte; only the pages that are used become memory
  };
  static constexpr u8 kRead = 1, kWritten = 2;
  Piece* piece_at(u64 address) const;

  std::vector<Piece> pieces_;  ///< sorted, disjoint
};

}  // namespace quern::emu
