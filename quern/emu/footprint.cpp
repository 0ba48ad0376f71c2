// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/emu/footprint.h"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace quern::emu {

Footprint::Footprint(const MemoryMap& memory) {
  for (const MemoryMap::Region& region : memory.regions()) {
    u8* touched = static_cast<u8*>(std::calloc(region.high - region.low, 1));
    if (!touched) throw std::bad_alloc();
    pieces_.push_back({region.low, region.high, touched});
  }
}

Footprint::~Footprint() {
  for (const Piece& piece : pieces_) std::free(piece.touched);
}

/// The piece that holds the address, else the first one behind it, else null.
Footprint::Piece* Footprint::piece_at(u64 address) const {
  const auto at = std::upper_bound(pieces_.begin(), pieces_.end(), address, [](u64 a, const Piece& piece) { return a < piece.high; });
  return at == pieces_.end() ? nullptr : const_cast<Piece*>(&*at);
}

void Footprint::add(u64 address, u64 bytes, bool write) {
  Piece* piece = piece_at(address);
  if (!piece || address < piece->low) return;
  u8* touched = piece->touched + (address - piece->low);
  for (u64 i = 0; i < min_of(bytes, piece->high - address); ++i) touched[i] |= write ? kWritten : kRead;
}

Footprint::Conflict Footprint::find(u64 address, u64 bytes, bool write) const {
  const u8 mask = write ? kRead | kWritten : kWritten;
  for (u64 at = address; at < address + bytes;) {
    const Piece* piece = piece_at(at);
    if (!piece || piece->low >= address + bytes) break;
    for (at = max_of(at, piece->low); at < min_of(address + bytes, piece->high); ++at)
      if (const u8 touched = piece->touched[at - piece->low] & mask) return {true, (touched & kWritten) != 0, at - address};
  }
  return {};
}

}  // namespace quern::emu
