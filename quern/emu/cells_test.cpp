// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Groups of bytes with one cell say of every access what a cell for each byte says.
#include "quern/emu/cells.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace quern::emu {
namespace {

constexpr u64 kBytes = 160;
constexpr u32 kThreads = 4;

struct Memory {
  std::vector<Cell> cells = std::vector<Cell>(kBytes), groups = std::vector<Cell>(kBytes / kGroup + 1);
  std::vector<u8> states = std::vector<u8>(kBytes, kInside | kWritable);

  CellSpan span(u64 at, u64 bytes) { return {cells.data() + at, groups.data() + at / kGroup, states.data() + at, bytes}; }
};

/// One access, by spans of one byte: these are never whole groups.
Conflict touch_bytes(Memory& memory, u64 at, u64 bytes, const ThreadClock& clock, AccessKind kind, u32 code, u64 random,
                     const AsyncAccess* async) {
  for (u64 i = 0; i < bytes; ++i)
    if (Conflict conflict = touch(memory.span(at + i, 1), clock, kind, code, random, async)) return conflict.byte = i, conflict;
  return {};
}

TEST(cells, groups_say_what_bytes_say) {
  std::mt19937_64 random(5);
  const auto below = [&](u64 n) { return random() % n; };
  i64 conflicts = 0, calm = 0, in_groups = 0;
  for (int round = 0; round < 300; ++round) {
    Memory grouped, bytewise;
    std::vector<ThreadClock> clocks(kThreads);
    ThreadClock* all[kThreads];
    for (u32 t = 0; t < kThreads; ++t) clocks[t].thread = t, all[t] = &clocks[t];
    for (int step = 0; step < 60; ++step) {
      // Mostly whole groups, else any bytes
      const bool whole = below(3) != 0;
      const u64 at = whole ? kGroup * below(kBytes / kGroup) : below(kBytes), room = kBytes - at;
      const u64 bytes = std::min(room, whole ? kGroup * (1 + below(4)) : 1 + below(40));
      const u32 code = u32(1 + below(1000));
      ThreadClock& clock = clocks[below(kThreads)];
      const u64 action = below(10);
      if (action == 0) {
        synchronise(all, kThreads, kThreads);
      } else if (action == 1) {  // a copy's destination, which lands or does not
        const Epoch epoch(0, kThreads, u32(step + 1));
        const bool lands = below(2);
        set_writer(grouped.span(at, bytes), epoch, code);
        for (u64 i = 0; i < bytes; ++i) set_writer(bytewise.span(at + i, 1), epoch, code);
        for (Memory* memory : {&grouped, &bytewise})
          change(memory->states.data() + at, bytes, lands ? kInitialised : kInFlight, lands ? 0 : kInitialised);
      } else if (action == 2 && below(4) == 0) {  // all copies land; another launch
        for (Memory* memory : {&grouped, &bytewise}) change(memory->states.data(), kBytes, kInitialised, kInFlight | kTouched | kOneCell);
      } else {
        const auto kind = AccessKind(below(4));
        const AsyncAccess agent{Epoch(0, kThreads + 1, u32(step + 1)), Proxy::shared, kThreads};
        const AsyncAccess* const async = below(5) == 0 ? &agent : nullptr;
        const u64 chance = random();
        const Conflict a = touch(grouped.span(at, bytes), clock, kind, code, chance, async),
                       b = touch_bytes(bytewise, at, bytes, clock, kind, code, chance, async);
        ASSERT_EQ(a.byte, b.byte) << round << " " << step;
        ASSERT_EQ(a.other, b.other) << round << " " << step;
        ASSERT_EQ(a.other_at, b.other_at) << round << " " << step;
        ASSERT_EQ(a.other_writes, b.other_writes) << round << " " << step;
        ASSERT_EQ(a.in_flight, b.in_flight) << round << " " << step;
        ASSERT_EQ(a.unfenced, b.unfenced) << round << " " << step;
        ++(a ? conflicts : calm);
      }
    }
    for (u64 g = 0; g < kBytes; g += kGroup) in_groups += bool(grouped.states[g] & kOneCell);
    for (const u8 state : bytewise.states) ASSERT_FALSE(state & kOneCell);
  }
  EXPECT_GT(conflicts, 1000);
  EXPECT_GT(calm, 1000);
  EXPECT_GT(in_groups, 300);
}

TEST(cells, states_are_found_and_changed) {
  for (u64 count = 0; count < 40; ++count)
    for (u64 at = 0; at <= count; ++at) {
      std::vector<u8> states(count, kInside | kTouched);
      if (at < count) states[at] = kInside | kGuarded;
      EXPECT_EQ(first_with(states.data(), count, kGuarded | kInFlight), at);
      EXPECT_EQ(first_without(states.data(), count, kTouched | kOneCell), at);
      change(states.data(), count, kInitialised, kInside);
      for (u64 i = 0; i < count; ++i) EXPECT_EQ(states[i], (i == at ? kGuarded : kTouched) | kInitialised);
    }
}

}  // namespace
}  // namespace quern::emu
