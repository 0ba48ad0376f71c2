// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The first elements of a row in the order of values (row.cuh) whose measure reaches a number: exactly, whatever their number and however
// many are equal. A radix selection over ordered keys; nothing is kept of the row, so no list can overflow.
#pragma once
#include "quern/bricks/select/find.cuh"

namespace quern {

/// Elements before this place: those of a larger key, and of this key those below `end`.
struct Threshold {
  u32 key;
  i32 end;
};
QN_DEVICE Threshold keep_all(i32 length) { return {0, length}; }
QN_DEVICE Threshold keep_none() { return {~0u, 0}; }
QN_DEVICE bool keeps(const Threshold& t, u32 key, i32 index) { return key > t.key || (key == t.key && index < t.end); }
/// The elements that both keep.
QN_DEVICE Threshold shorter(const Threshold& a, const Threshold& b) {
  if (a.key != b.key) return a.key > b.key ? a : b;
  return {a.key, min_of(a.end, b.end)};
}

/// The shortest prefix whose measures add up to target(sum of all) or more; all where the target is not below the sum, whose elements of
/// measure 0 then stay too. measure(index, value) is the same number, or 0, for equal values; target is at least 1. The row is read three times, and once more where some of
/// equal values stay.
template <RowLayout L, class Measure, class Target>
QN_DEVICE Threshold select_prefix(const SelectMemory& m, const Row<L>& row, Measure measure, Target target) {
  u32 prefix = 0;
  U128 rest{0, 0};
  Found found{};
  QN_NO_UNROLL
  for (int digit = 0; digit < 3; ++digit) {
    const int shift = digit == 0 ? 21 : digit == 1 ? 10 : 0, bins = digit == 2 ? 1024 : 2048;
    ptx::sync_block();
    clear_bins(m, bins, L.threads);
    ptx::sync_block();
    each_element<Instructions::many>(row, [&](i32 index, f32 x) {
      const u32 key = ordered_key(x);
      if (digit > 0 && key >> (digit == 1 ? 21 : 10) != prefix) return;
      const U128 more = measure(index, x);
      if (!is_zero(more)) add_to_bin(m, key >> shift & u32(bins - 1), more);
    });
    found = find_above(m, u32(bins), [&](u32 i) { return bin_sum(m, u32(bins) - 1 - i); },
                       [&](U128 total) { return (digit == 0 ? target(total) : rest) - U128{1, 0}; });
    if (digit == 0) {
      rest = target(found.total);
      if (!(rest < found.total)) return keep_all(row.length);
    }
    rest = rest - found.before;
    prefix = prefix << (digit == 2 ? 10 : 11) | (u32(bins) - 1 - found.index);
  }
  // Of the elements with this key, those that add up to the rest
  const u32 key = prefix;
  if (!(rest < found.entry)) return {key, row.length};
  const Found last = find_in_row(m, row, [&](i32 index, f32 x) { return ordered_key(x) == key ? measure(index, x) : U128{0, 0}; },
                                 [&](U128) { return rest - U128{1, 0}; });
  return {key, i32(last.index) + 1};
}

}  // namespace quern
