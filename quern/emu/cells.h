// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <optional>

#include "quern/emu/clock.h"

namespace quern::emu {

/// Who touched a byte last: the latest write and up to three accesses that are not ordered among each other: reads since,
/// and atomic accesses that an atomic write followed without order, as when several blocks add to one sum.
struct Cell {
  static constexpr int kReaders = 3;
  static constexpr u32 kWrote = 1u << 31;  ///< in read_at: that access was an atomic write
  static constexpr u32 kWide = 1u << 30;   ///< in read_at and write_at: that access was an atomic of 8 bytes
  Epoch write;
  Epoch read[kReaders];
  u32 write_at = 0;  ///< place in the module's code
  u32 read_at[kReaders] = {};
  friend bool operator==(const Cell&, const Cell&) = default;
};

/// State of a byte. Cells are only meaningful where touched is set: so clearing means clearing one byte each.
enum ByteState : u8 {
  kInside = 1,  ///< belongs to a tensor (shared memory: always)
  kInitialised = 2,
  kWritable = 4,
  kTouched = 8,     ///< the cell belongs to this launch, in shared memory to this block
  kInFlight = 16,   ///< destination of a copy that has not completed, or of a cp.async that was not waited for and has not arrived
  kGuarded = 32,    ///< part of an mbarrier
  kOneCell = 64,    ///< in the state of a group's first byte: the group's cell stands for the cells of its bytes
  kReadOnly = 128,  ///< global memory: this launch has read it by ld.global.nc
};

/// 16 aligned bytes are a group. Most accesses cover whole groups, whose bytes then have one history: it is kept once, in an
/// array of its own, since a cell is 48 bytes and what a checked matrix product reads of cells must fit into a cache.
constexpr u64 kGroup = 16;

/// Cells and states of consecutive bytes.
struct CellSpan {
  Cell* cells;   ///< of each byte
  Cell* groups;  ///< of each group, from that of the first byte on
  u8* states;
  u64 bytes;
};

enum class AccessKind { read, write, atomic_read, atomic_write };
constexpr bool writes(AccessKind kind) { return kind == AccessKind::write || kind == AccessKind::atomic_write; }
constexpr bool is_atomic(AccessKind kind) { return kind >= AccessKind::atomic_read; }

/// An access that goes on after its instruction: made by an agent (a bulk copy, a matrix instruction) in another proxy than
/// the threads' own. Such agents are numbered behind the threads of a block and their cp.async, which are in the threads' proxy.
struct AsyncAccess {
  Epoch epoch;  ///< whoever knows this moment of the agent is ordered after the access
  Proxy proxy;
  u32 first_agent;  ///< 0: it is in the threads' own proxy, no fence is needed
  /// Whether a write takes a proxy fence before this access: a thread's, its cp.async's, or an st.async's, whose agents have every second
  /// number.
  bool needs_fence(Epoch write) const {
    return write && first_agent && (write.thread() < first_agent || (write.thread() - first_agent) % 2);
  }
};

/// The access that another one is not ordered after.
struct Conflict {
  u64 byte = 0;  ///< index in the span
  Epoch other;
  u32 other_at = 0;
  bool other_writes = false;
  bool in_flight = false;
  bool unfenced = false;      ///< ordered, but the write was an ordinary one and no proxy fence covers it
  bool sizes_differ = false;  ///< both are atomics, of 4 and of 8 bytes
  explicit operator bool() const { return other || in_flight; }
};

/// Looks for a conflict of an access by the thread with that clock and records the access. code: where in the module.
/// async: the thread only issues the access.
Conflict touch(const CellSpan& span, const ThreadClock& clock, AccessKind kind, u32 code, u64 random, const AsyncAccess* async = nullptr);

/// Records a write at that moment, which may be to come: of a copy's destination. Without a code the earlier write's stays.
void set_writer(const CellSpan& span, Epoch epoch, std::optional<u32> code = {});

/// Index of the first byte that this launch has written; the span's number of bytes where there is none.
u64 first_written(const CellSpan& span);

/// Index of the first state that has one of the bits; `count` where none has.
u64 first_with(const u8* states, u64 count, u8 bits);
/// Index of the first state that has none of the bits. kReadOnly may not be among them.
u64 first_without(const u8* states, u64 count, u8 bits);
/// states |= set, then states &= ~cleared.
void change(u8* states, u64 count, u8 set, u8 cleared = 0);

}  // namespace quern::emu
