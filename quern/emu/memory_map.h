// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <span>
#include <string>
#include <vector>

#include "quern/device/device.h"
#include "quern/emu/cells.h"

namespace quern::emu {

/// The global memory that the launches of one call may touch, byte by byte: what lies between the rows of a strided
/// tensor is outside. Ranges that overlap (in-place operands, interleaved caches) form one region.
class MemoryMap {
 public:
  /// with_history: with the cells that checked mode needs.
  MemoryMap(std::span<const MemoryRange> ranges, const char* op, bool with_history = true);
  ~MemoryMap();
  MemoryMap(const MemoryMap&) = delete;
  MemoryMap& operator=(const MemoryMap&) = delete;

  struct Region {
    u64 low = 0, high = 0;
    std::vector<u8> states;
    Cell* cells = nullptr;   ///< null where nothing may be written: then nothing can race; and without history
    Cell* groups = nullptr;  ///< see CellSpan; there where cells are
    u64 cell_bytes = 0, group_bytes = 0;
    CellSpan span(u64 address, u64 bytes) {
      const u64 at = address - low;
      return {cells ? cells + at : nullptr, cells ? groups + at / kGroup : nullptr, states.data() + at, bytes};
    }
  };
  /// Region that holds the byte, or null. Several threads may ask at once.
  Region* find(u64 address);
  const std::vector<Region>& regions() const { return regions_; }
  /// Forgets who touched what: launches of a stream are ordered.
  void begin_launch();
  /// Host code (a copy, a fill) has written there.
  void mark_initialised(const void* address, u64 bytes);
  /// "'x' bf16 [3, 64] + 0x12", or how far the address lies from the nearest tensor.
  std::string describe(u64 address) const;
  const std::string& op() const { return op_; }

 private:
  struct Named {
    MemoryRange range;
    std::string name;
    u64 low, high;
  };
  void add_region(u64 low, u64 high);
  void mark(const Named& named);

  std::string op_;
  std::vector<Named> ranges_;
  std::vector<Region> regions_;  ///< sorted, disjoint
};

}  // namespace quern::emu
