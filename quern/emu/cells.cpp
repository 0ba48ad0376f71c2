// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/emu/cells.h"

#include <cstring>

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

/// The cell after an atomic write. Earlier atomic accesses stay in it if this write is not ordered after them, because other threads may
/// still have to be ordered after them.
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

/// Eight states as one word, and a word of eight times the same bits.
u64 word_at(const u8* states) {
  u64 word;
  std::memcpy(&word, states, 8);
  return word;
}
constexpr u64 eight(u8 bits) { return bits * 0x0101010101010101ull; }

/// First byte of the span's group that byte `i` lies in; it may lie before the span.
i64 group_begin(const CellSpan& span, u64 i) { return i64(i) - i64(reinterpret_cast<u64>(span.states + i) % kGroup); }

bool covers_group(const CellSpan& span, u64 i) { return group_begin(span, i) == i64(i) && span.bytes - i >= kGroup; }

static_assert(__STDCPP_DEFAULT_NEW_ALIGNMENT__ % kGroup == 0, "groups begin where the states' address is a multiple");
Cell& cell_of_group(const CellSpan& span, i64 group) { return span.groups[(group - group_begin(span, 0)) / i64(kGroup)]; }

/// Gives each byte of a group a cell of its own.
void spread(const CellSpan& span, i64 group) {
  if (!(span.states[group] & kOneCell)) return;
  span.states[group] &= u8(~kOneCell);
  for (u64 b = 0; b < kGroup; ++b) span.cells[group + i64(b)] = cell_of_group(span, group);
}

/// Calls `f(first, last)` for the span's bytes of each group, until f returns false.
template <class F>
void each_group(const CellSpan& span, F&& f) {
  for (u64 i = 0; i < span.bytes;) {
    const u64 end = min_of(span.bytes, u64(group_begin(span, i)) + kGroup);
    if (!f(i, end)) return;
    i = end;
  }
}

/// One access by one thread: `step` for each cell of its bytes.
class Touch {
 public:
  Touch(const ThreadClock& clock, AccessKind kind, u32 code, u64 random, const AsyncAccess* async)
      : clock_(clock),
        kind_(kind),
        code_(code),
        random_(random),
        async_(async),
        now_(async ? async->epoch : clock.epoch(is_atomic(kind))) {}

  /// Judges the access of the bytes from `i` on whose cell this is, and records it unless it conflicts.
  Conflict step(u64 i, Cell& cell) {
    // Neighbours mostly have the same history: then what became of one becomes of the next.
    if (known_ && cell == before_) {
      cell = after_;
      return {};
    }
    before_ = cell;
    known_ = false;
    if (const Conflict conflict = judge(i, cell)) return conflict;
    record(cell);
    after_ = cell;
    known_ = true;
    return {};
  }

 private:
  bool both_atomic(Epoch epoch) const { return is_atomic(kind_) && epoch.atomic(); }
  bool sizes_differ(u32 at) const { return (at & Cell::kWide) != (code_ & Cell::kWide); }
  /// Atomics of one size need no order; of two sizes they are as ordinary accesses.
  bool conflicts(Epoch epoch, u32 at) const { return epoch && !(both_atomic(epoch) && !sizes_differ(at)) && !clock_.covers(epoch); }
  bool unfenced(Epoch write) const {
    return async_ && async_->needs_fence(write) && clock_.covers(write) && !clock_.known.fenced(async_->proxy, write);
  }
  /// By an arrival from another block, of what it has read and of copies that it has seen come.
  bool told(Epoch epoch) const { return clock_.known.fenced(Proxy::reads, epoch); }

  Conflict judge(u64 i, const Cell& cell) const {
    constexpr u32 kPlace = ~(Cell::kWrote | Cell::kWide);
    const auto conflict = [&](Epoch other, u32 at, bool wrote, bool only_unfenced) {
      return Conflict{i, other, at & kPlace, wrote, false, only_unfenced, !only_unfenced && both_atomic(other) && sizes_differ(at)};
    };
    if (conflicts(cell.write, cell.write_at) && !(cell.write.thread() >= clock_.first_agent && told(cell.write)))
      return conflict(cell.write, cell.write_at, true, false);
    if (unfenced(cell.write)) return conflict(cell.write, cell.write_at, true, true);
    for (int r = 0; r < Cell::kReaders; ++r) {
      const bool wrote = cell.read_at[r] & Cell::kWrote;
      if (wrote ? conflicts(cell.read[r], cell.read_at[r])
                : writes(kind_) && conflicts(cell.read[r], cell.read_at[r]) && !told(cell.read[r]))
        return conflict(cell.read[r], cell.read_at[r], wrote, false);
      if (wrote && unfenced(cell.read[r])) return conflict(cell.read[r], cell.read_at[r], true, true);
    }
    return {};
  }

  void record(Cell& cell) const {
    if (kind_ == AccessKind::atomic_write) {
      cell = after_atomic_write(cell, clock_, now_, code_, random_);
    } else if (writes(kind_)) {
      cell = Cell{};
      cell.write = now_;
      cell.write_at = code_;
    } else {
      record_read(cell, clock_, now_, code_, random_);
    }
  }

  const ThreadClock& clock_;
  const AccessKind kind_;
  const u32 code_;
  const u64 random_;
  const AsyncAccess* const async_;
  const Epoch now_;
  Cell before_, after_;
  bool known_ = false;
};

/// Whether a group's cell stands for its bytes'. A group that nobody has touched gets such a cell.
bool has_one_cell(const CellSpan& span, u64 group) {
  u8& state = span.states[group];
  if (state & kOneCell) return true;
  for (u64 b = 0; b < kGroup; b += 8)
    if (word_at(span.states + group + b) & eight(kTouched)) return false;
  cell_of_group(span, i64(group)) = Cell{};
  change(span.states + group, kGroup, kTouched);
  state |= kOneCell;
  return true;
}

}  // namespace

u64 first_with(const u8* states, u64 count, u8 bits) {
  u64 i = 0;
  while (i + 8 <= count && !(word_at(states + i) & eight(bits))) i += 8;
  while (i < count && !(states[i] & bits)) ++i;
  return i;
}

u64 first_without(const u8* states, u64 count, u8 bits) {
  u64 i = 0;
  for (; i + 8 <= count; i += 8) {
    // The bits are of the lower seven: adding 0x7f sets the eighth bit of each byte that is not zero, and carries into no other byte.
    const u64 some = word_at(states + i) & eight(bits);
    if (((some + eight(0x7f)) & eight(0x80)) != eight(0x80)) break;
  }
  while (i < count && states[i] & bits) ++i;
  return i;
}

void change(u8* states, u64 count, u8 set, u8 cleared) {
  u64 i = 0;
  for (; i + 8 <= count; i += 8) {
    const u64 word = (word_at(states + i) | eight(set)) & ~eight(cleared);
    std::memcpy(states + i, &word, 8);
  }
  for (; i < count; ++i) states[i] = u8((states[i] | set) & ~cleared);
}

u64 first_written(const CellSpan& span) {
  u64 written = span.bytes;
  each_group(span, [&](u64 first, u64 last) {
    const i64 group = group_begin(span, first);
    const bool one = span.states[group] & kOneCell;
    for (u64 i = first; i < last && written == span.bytes; ++i)
      if (span.states[i] & kTouched && (one ? cell_of_group(span, group) : span.cells[i]).write) written = i;
    return written == span.bytes;
  });
  return written;
}

void set_writer(const CellSpan& span, Epoch epoch, std::optional<u32> code) {
  each_group(span, [&](u64 first, u64 last) {
    const auto written = [&](Cell& cell) {
      cell.write = epoch;
      if (code) cell.write_at = *code;
    };
    if (covers_group(span, first) && has_one_cell(span, first)) {
      written(cell_of_group(span, i64(first)));
      return true;
    }
    spread(span, group_begin(span, first));
    for (u64 i = first; i < last; ++i) {
      if (!(span.states[i] & kTouched)) span.cells[i] = Cell{};
      span.states[i] |= kTouched;
      written(span.cells[i]);
    }
    return true;
  });
}

Conflict touch(const CellSpan& span, const ThreadClock& clock, AccessKind kind, u32 code, u64 random, const AsyncAccess* async) {
  Touch access(clock, kind, code, random, async);
  Conflict conflict;
  each_group(span, [&](u64 first, u64 last) {
    const bool whole = covers_group(span, first);
    if (whole && has_one_cell(span, first)) {
      Cell& cell = cell_of_group(span, i64(first));
      const u64 in_flight = first_with(span.states + first, kGroup, kInFlight);
      if (in_flight < kGroup) conflict = {first + in_flight, cell.write, cell.write_at, true, true};
      else conflict = access.step(first, cell);
      return !conflict;
    }
    if (!whole) spread(span, group_begin(span, first));
    bool same = true;
    for (u64 i = first; i < last; ++i) {
      Cell& cell = span.cells[i];
      if (!(span.states[i] & kTouched)) cell = Cell{};
      span.states[i] |= kTouched;
      if (span.states[i] & kInFlight) conflict = {i, cell.write, cell.write_at, true, true};
      else conflict = access.step(i, cell);
      if (conflict) return false;
      same &= cell == span.cells[first];
    }
    if (whole && same) {
      cell_of_group(span, i64(first)) = span.cells[first];
      span.states[first] |= kOneCell;
    }
    return true;
  });
  return conflict;
}

}  // namespace quern::emu
