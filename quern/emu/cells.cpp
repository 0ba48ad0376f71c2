// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/emu/cells.h"

namespace quern::emu {
namespace {

/// Remembers a read: in place of the thread's own earlier one, of one that this thread is ordered after, else of any.
void record_read(Cell& cell, const ThreadClock& clock, Epoch now, u32 code, u64 random) {
  int place = -1;
  for (int i = 0; i < Cell::kReaders; ++i) {
    if (!cell.read[i] || cell.read[i].same_thread(now)) {
      place = i;
      break;
    }
    if (place < 0 && clock.covers(cell.read[i])) place = i;
  }
  if (place < 0) place = int(random % Cell::kReaders);
  cell.read[place] = now;
  cell.read_at[place] = code;
}

/// The cell behind an atomic write: of what was there, atomic accesses that it is not ordered after stay, since others may
/// have to be ordered after those.
Cell after_atomic_write(const Cell& cell, const ThreadClock& clock, Epoch now, u32 code, u64 random) {
  Cell next;
  next.write = now;
  next.write_at = code;
  int kept = 0;
  const auto keep = [&](Epoch epoch, u32 at) {
    if (!epoch || epoch.same_thread(now) || clock.covers(epoch)) return;
    const int place = kept < Cell::kReaders ? kept++ : int(random % Cell::kReaders);
    next.read[place] = epoch;
    next.read_at[place] = at;
  };
  for (int r = 0; r < Cell::kReaders; ++r) keep(cell.read[r], cell.read_at[r]);
  keep(cell.write, cell.write_at | Cell::kWrote);
  return next;
}

}  // namespace

Conflict touch(const CellSpan& span, const ThreadClock& clock, AccessKind kind, u32 code, u64 random,
               const AsyncAccess* async) {
  const bool atomic = is_atomic(kind);
  const Epoch now = async ? async->epoch : clock.epoch(atomic);
  const auto conflicts = [&](Epoch epoch) { return epoch && !(atomic && epoch.atomic()) && !clock.covers(epoch); };
  // Neighbouring bytes mostly have the same history: then what became of one becomes of the next.
  Cell before, after;
  bool known = false;
  for (u64 i = 0; i < span.bytes; ++i) {
    Cell& cell = span.cells[i];
    u8& state = span.states[i];
    if (!(state & kTouched)) {
      cell = Cell{};
      state |= kTouched;
    }
    if (state & kInFlight) return {i, cell.write, cell.write_at, true, true};
    if (known && cell == before) {
      cell = after;
      continue;
    }
    before = cell;
    if (conflicts(cell.write)) return {i, cell.write, cell.write_at, true, false};
    if (async && cell.write && cell.write.thread() < async->first_agent && !clock.known.fenced(async->proxy, cell.write))
      return {i, cell.write, cell.write_at, true, false, true};
    for (int r = 0; r < Cell::kReaders; ++r) {
      const bool wrote = cell.read_at[r] & Cell::kWrote;
      if ((wrote || writes(kind)) && conflicts(cell.read[r]))
        return {i, cell.read[r], cell.read_at[r] & ~Cell::kWrote, wrote, false};
    }
    if (kind == AccessKind::atomic_write) {
      cell = after_atomic_write(cell, clock, now, code, random);
    } else if (writes(kind)) {
      cell = Cell{};
      cell.write = now;
      cell.write_at = code;
    } else {
      record_read(cell, clock, now, code, random);
    }
    after = cell;
    known = true;
  }
  return {};
}

}  // namespace quern::emu
