// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The first elements of a row in the order of values (row.cuh) whose number, or whose mass, reaches a goal: exactly, whatever their number
// and however many are equal. A search narrows a range of keys in which the last of them lies. Where the range has at most L.listed
// elements, they are listed and sorted; where it is one key, its elements are told apart by their index; else a histogram of the range
// leaves one bin of it. Nothing overflows: elements are counted before the list is used.
#pragma once
#include "quern/bricks/select/find.cuh"
#include "quern/kit/scan.cuh"

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

/// The smallest key of `lowest` to `highest` for which `holds` does: false up to a key, true from there on, and of `highest`. By whole
/// warps, whose lanes try 32 keys at once.
template <class Holds> QN_DEVICE u32 first_key(u32 lowest, u32 highest, Holds holds) {
  u32 key = 0;
  QN_NO_UNROLL
  for (int shift = 27; shift >= -3; shift -= 5) {
    const int by = max_of(shift, 0);  // the last digit has two bits
    const u32 digit = shift < 0 ? min_of(ptx::lane_id(), u32(3)) : ptx::lane_id(), last = key | digit << by | ((1u << by) - 1);
    const bool below = last < lowest || (last < highest && !holds(last));
    key |= u32(first_lane_above(u32(!below), 0)) << by;
  }
  return key;
}

/// Keys among which the last element is, and how much of the goal is left to them.
struct KeyRange {
  u32 low, high;
  U128 rest;
};

/// Lists the elements that pass, in no order, as ~key, index: ascending in the order of values. Returns how many the whole team has of
/// them; more than L.listed: the list is cut.
template <RowLayout L, class Passes> QN_DEVICE u32 list_elements(Team<L>& team, const Row<L>& row, Passes passes, u32 (&counts)[L.blocks]) {
  u32* const count = reinterpret_cast<u32*>(sums_of(team));
  ptx::sync_block();
  if (threadIdx.x == 0) *count = 0;
  ptx::sync_block();
  each_access(row, [&](const Elements<L>& e) {
    f32 x[L.vector];
    unpack(e.raw, x);
    u32 mine = 0;
    QN_UNROLL
    for (int i = 0; i < L.vector; ++i) mine |= u32(i < e.count && passes(ordered_key(x[i]), e.first + i)) << i;
    if (!ptx::any(mine != 0)) return;
    u32 wanted = 0;
    QN_UNROLL
    for (int i = 0; i < L.vector; ++i) wanted += mine >> i & 1;
    const u32 upto = warp_prefix_sum(wanted);
    u32 at = 0;
    if (ptx::lane_id() == 31) at = ptx::atomic_add_shared(count, upto);
    at = ptx::shfl(at, 31) + upto - wanted;
    QN_UNROLL
    for (int i = 0; i < L.vector; ++i)
      if ((mine >> i & 1) != 0) {
        if (at < u32(L.listed)) list_of(team)[at] = u64(~ordered_key(x[i])) << 32 | u32(e.first + i);
        ++at;
      }
  });
  ptx::sync_block();
  if (threadIdx.x == 0) slots_of(team)->low = *count;
  const U128* const shown = show_slots(team);
  u32 all = 0;
  QN_UNROLL
  for (int rank = 0; rank < L.blocks; ++rank) counts[rank] = u32(read_of<L>(u32(rank), &shown->low)), all += counts[rank];
  return all;
}

/// Sorts n things by exchange(a, b), which puts those at places a < b in order: bitonic, each pair in the same direction, so that places
/// past the end act as the largest things and never move.
template <int kThreads, class Exchange> QN_DEVICE void sort(i64 n, Exchange exchange) {
  QN_NO_UNROLL
  for (i64 size = 2; size < 2 * n; size *= 2) QN_NO_UNROLL
  for (i64 stride = size; stride > 1; stride /= 2) {
    ptx::sync_block();
    QN_NO_UNROLL
    for (i64 a = threadIdx.x; a < n; a += kThreads) {
      const i64 b = stride == size ? a ^ (size - 1) : a ^ (stride / 2);
      if (a < b && b < n) exchange(a, b);
    }
  }
  ptx::sync_block();
}
/// Ascending.
template <int kThreads> QN_DEVICE void sort_numbers(u64* numbers, i64 n) {
  sort<kThreads>(n, [&](i64 a, i64 b) {
    const u64 one = numbers[a], other = numbers[b];
    if (other < one) numbers[a] = other, numbers[b] = one;
  });
}

/// The lists of the team, sorted by its first block, which finds the last element that the goal takes: every block gets the place behind
/// it. `goal` is made of the sum of the list; where it is not below that, all of the row is kept.
template <RowLayout L, class Measure, class Goal>
QN_DEVICE Threshold last_of_lists(Team<L>& team, const Row<L>& row, const u32 (&counts)[L.blocks], Measure measure, Goal goal) {
  if (team.rank == 0) {
    u32 n = counts[0];
    QN_UNROLL
    for (int rank = 1; rank < L.blocks; ++rank) {
      QN_NO_UNROLL
      for (u32 i = threadIdx.x; i < counts[rank]; i += L.threads) list_of(team)[n + i] = read_of<L>(u32(rank), list_of(team) + i);
      n += counts[rank];
    }
    sort_numbers<L.threads>(list_of(team), n);
    const Found last = find_above(
        team, n, [&](u32 i) { return wide(measure(u32(~list_of(team)[i] >> 32))); }, [&](U128 total) { return goal(total) - U128{1, 0}; });
    if (threadIdx.x == 0) {
      const Threshold all = keep_all(row.length);
      const u64 place = last.index < n ? list_of(team)[last.index] : 0;
      slots_of(team)->low = last.index < n ? u32(~place >> 32) : all.key;
      slots_of(team)->high = last.index < n ? u64(u32(place)) + 1 : u64(all.end);
    }
  }
  const U128* const shown = show_slots(team);
  const U128 result = read_of<L>(0, shown);
  return {u32(result.low), i32(result.high)};
}

/// Of the elements with this key, each of which has the mass `one`, those that add up to the rest.
template <RowLayout L, class Passes> QN_DEVICE Threshold last_of_equal(Team<L>& team, const Row<L>& row, u32 key, Passes passes, Mass one,
                                                                       U128 rest) {
  const Found last = find_in_row(
      team, row,
      [&](i32 index, f32 x) {
        const u32 here = ordered_key(x);
        return here == key && passes(here, index) ? one : Mass{0, 0};
      },
      [&](U128) { return rest - U128{1, 0}; });
  const u32 index = smallest_of_team(team, last.index);
  return {key, i32(min_of(index, u32(row.length) - 1)) + 1};
}

/// Bins of a histogram hold sums of mantissas, which all have the same power of two in a bin: of their low 12 bits, and of the others.
constexpr int kHalfMantissa = 12;
struct Bin {
  u32 low, high;
};
QN_DEVICE u64 mantissas(Bin b) { return b.low + (u64(b.high) << kHalfMantissa); }

template <RowLayout L> QN_DEVICE void clear_bins(const Team<L>& team) {
  ptx::sync_block();
  QN_NO_UNROLL
  for (int i = int(threadIdx.x); i < 2 * kSelectBins; i += L.threads) bins_of(team)[i] = 0;
  ptx::sync_block();
}
template <RowLayout L> QN_DEVICE void add_to_bin(const Team<L>& team, u32 bin, u32 mantissa) {
  ptx::red_add_shared(&bins_of(team)[2 * bin], mantissa & ((1u << kHalfMantissa) - 1));
  ptx::red_add_shared(&bins_of(team)[2 * bin + 1], mantissa >> kHalfMantissa);
}

/// The bin, of all blocks' histograms added up, at which the prefix sum passes target(sum of all); power(bin): of two, of its mantissas.
/// index kSelectBins: none.
template <RowLayout L, class Power, class Target> QN_DEVICE Found find_bin(Team<L>& team, Power power, Target target) {
  const auto mass_in = [&](u32 bin, Bin b) { return shifted_left({mantissas(b), 0}, power(bin)); };
  if constexpr (L.blocks == 1) {
    return find_above(team, kSelectBins, [&](u32 i) { return mass_in(i, {bins_of(team)[2 * i], bins_of(team)[2 * i + 1]}); }, target);
  } else {
    constexpr u32 kShare = kSelectBins / L.blocks;  // a block adds up this many bins
    sync_team<L>();
    U128 mine{0, 0};
    QN_NO_UNROLL
    for (u32 i = threadIdx.x; i < kShare; i += L.threads) {
      const u32 bin = team.rank * kShare + i;
      Bin sum{0, 0};
      QN_NO_UNROLL
      for (u32 rank = 0; rank < L.blocks; ++rank) {
        const u32x2 of_block = read_of<L>(rank, reinterpret_cast<const u32x2*>(bins_of(team)) + bin);
        sum.low += of_block.x, sum.high += of_block.y;
      }
      merged_of(team)[2 * i] = sum.low, merged_of(team)[2 * i + 1] = sum.high;
      mine = mine + mass_in(bin, sum);
    }
    const U128 share = block_sums(team, mine).total;
    if (threadIdx.x == 0) *slots_of(team) = share;
    const U128* const shown = show_slots(team);
    U128 total{0, 0};
    QN_NO_UNROLL
    for (u32 rank = 0; rank < L.blocks; ++rank) total = total + read_of<L>(rank, shown);
    const U128 wanted = target(total);
    U128 before{0, 0};
    u32 owner = L.blocks;
    QN_NO_UNROLL
    for (u32 rank = 0; rank < L.blocks && owner == L.blocks; ++rank) {
      const U128 next = before + read_of<L>(rank, shown);
      if (wanted < next) owner = rank;
      else before = next;
    }
    if (owner == L.blocks) return {total, {0, 0}, total, kSelectBins, {}};
    Found found = find_above(
        team, kShare,
        [&](u32 i) {
          const u32x2 b = read_of<L>(owner, reinterpret_cast<const u32x2*>(merged_of(team)) + i);
          return mass_in(owner * kShare + i, {b.x, b.y});
        },
        [&](U128) { return wanted - before; });
    found.before = found.before + before, found.total = total, found.index += owner * kShare;
    return found;
  }
}

/// Narrows a range to the keys of one bin of it: of 2^shift keys, the largest first. power: of two, of all masses in the range.
template <RowLayout L, class Passes, class Measure>
QN_DEVICE KeyRange narrowed(Team<L>& team, const Row<L>& row, const KeyRange& range, Passes passes, Measure measure, int power) {
  int shift = 0;
  QN_NO_UNROLL
  while ((range.high - range.low) >> shift >= u32(kSelectBins)) ++shift;
  clear_bins(team);
  each_element(row, [&](i32 index, f32 x) {
    const u32 key = ordered_key(x);
    if (key >= range.low && key <= range.high && passes(key, index)) add_to_bin(team, (range.high - key) >> shift, measure(key).mantissa);
  });
  const Found bin = find_bin(team, [&](u32) { return power; }, [&](U128) { return range.rest - U128{1, 0}; });
  const u32 high = range.high - (bin.index << shift);
  const u32 below = high - min_of(high, (1u << shift) - 1);
  return {max_of(below, range.low), high, range.rest - bin.before};
}

/// The place behind the last of the elements of a range, among those that pass, that add up to its rest. All masses of the range have the
/// power of two `power`; measure(key) is that of an element. The rest is at least 1 and at most the sum of the range. listed_rest(sum of
/// the range): the rest where the range is listed at once. list_first: else a histogram comes first, of a range that a list does not hold.
template <RowLayout L, class Passes, class Measure, class ListedRest>
QN_DEVICE Threshold search(Team<L>& team, const Row<L>& row, KeyRange& range, Passes passes, Measure measure, int power,
                           ListedRest listed_rest, bool list_first = true) {
  for (;; list_first = true) {
    if (list_first) {
      u32 counts[L.blocks];
      const u32 n =
          list_elements(team, row, [&](u32 key, i32 index) { return key >= range.low && key <= range.high && passes(key, index); }, counts);
      if (n <= u32(L.listed)) return last_of_lists(team, row, counts, measure, listed_rest);
    }
    if (range.low == range.high) return last_of_equal(team, row, range.low, passes, measure(range.low), range.rest);
    range = narrowed(team, row, range, passes, measure, power);
  }
}

/// What a team knows of a row's largest elements, for select_by_rank. `maxima` are shown in merged_of(team).
struct Largest {
  u32 high;  ///< the largest key
  u32 low;   ///< the smallest of the threads' largest keys, but for those of threads that have no number; of none: all ones
};

/// A key that the largest elements of k threads reach, and so at least k elements: the k-th largest of the threads' largest keys, rounded
/// down to a bin of a histogram of them. 0: fewer threads have one.
template <RowLayout L> QN_DEVICE u32 reached_by(Team<L>& team, const Largest& largest, u32 k) {
  if (k > u32(L.blocks * L.threads)) return 0;
  int shift = 0;
  QN_NO_UNROLL
  while ((largest.high - largest.low) >> shift >= u32(kSelectBins)) ++shift;
  clear_bins(team);
  QN_NO_UNROLL
  for (u32 rank = 0; rank < L.blocks; ++rank) {
    const u32 key = read_of<L>(rank, merged_of(team) + threadIdx.x);
    if (key >= largest.low) ptx::red_add_shared(&bins_of(team)[2 * ((largest.high - key) >> shift)], 1u);
  }
  const Found bin =
      find_above(team, kSelectBins, [&](u32 i) { return U128{bins_of(team)[2 * i], 0}; }, [&](U128) { return U128{k - 1, 0}; });
  if (bin.index == u32(kSelectBins)) return 0;
  const u32 high = largest.high - (bin.index << shift);
  return max_of(largest.low, high - min_of(high, (1u << shift) - 1));
}

/// For k above the number of threads: how many threads have an element among the 1.25 k first ones of a row, on average, if its values lie
/// in no order. A thread has none of them with the probability e^(-1.25 k / threads). 0 where fewer than four threads have none: so few say
/// little of where the 1.25 k end.
QN_DEVICE u32 threads_of_first(u32 k, u32 threads) {
  constexpr float kPower = -1.25f * 1.4426950408889634f;  // e^x = 2^(x log2(e))
  const f32 without = f32(float(threads)) * ptx::exp2_approx(f32(float(k)) * f32(kPower) / f32(float(threads)));
  return without < f32(4.f) ? 0 : threads - u32(without);
}

/// The k first elements, 0 < k < row.length. listed: the team's first block has them in list_of(team), in their order, until its bins are
/// used again. The threads' largest elements tell a key from which on elements are listed. Of k up to the number of threads, k elements
/// reach that key for certain. Of a larger k about 1.25 k do, in rows without order; in others the count of the list says so, and
/// histograms find the place.
template <RowLayout L> QN_DEVICE Threshold select_by_rank(Team<L>& team, const Row<L>& row, const Largest& largest, u32 k, bool& listed) {
  constexpr u32 kThreads = u32(L.blocks * L.threads);
  const auto one = [](u32) { return Mass{1, 0}; };
  listed = false;
  KeyRange range{0, largest.high, {k, 0}};
  const auto rest = [&](U128) { return range.rest; };
  const u32 reaching = k <= kThreads ? k : k + k / 8 <= u32(L.listed) ? threads_of_first(k, kThreads) : 0;
  const u32 low = reaching > 0 ? reached_by(team, largest, reaching) : 0;
  if (low > 0 || row.length <= L.listed) {
    u32 counts[L.blocks];
    const u32 n = list_elements(team, row, [&](u32 key, i32) { return key >= low; }, counts);
    listed = n >= k && n <= u32(L.listed);
    if (listed) return last_of_lists(team, row, counts, one, rest);
    if (n >= k) range.low = low;
  }
  return search(team, row, range, [](u32, i32) { return true; }, one, 0, rest, row.length <= L.listed);
}

/// Reads the row for the first time. Every thread gets the team's best place, key << 32 | ~index, or all ones of a bad row (Bad::nothing:
/// no index); and what select_by_rank asks for.
template <Bad kBad, RowLayout L> QN_DEVICE u64 read_for_largest(Team<L>& team, const Row<L>& row, Largest& largest) {
  constexpr u32 kWarps = L.threads / 32;
  const Seen seen = read_row<kBad>(row);
  const u32 key = ordered_key(seen.largest);  // NaN: 0
  u64 best = is_bad<kBad>(seen) ? ~u64(0) : u64(key) << 32 | (kBad == Bad::nothing ? 0u : ~u32(first_of(row, seen)));
  merged_of(team)[threadIdx.x] = key;
  best = warp_max(best);
  const u32 least = warp_min(key == 0 ? ~0u : key);
  if (ptx::lane_id() == 0) sums_of(team)[threadIdx.x / 32] = {best, least};
  ptx::sync_block();
  if (threadIdx.x == 0) {
    U128 all = sums_of(team)[0];
    QN_NO_UNROLL
    for (u32 w = 1; w < kWarps; ++w) all = {max_of(all.low, sums_of(team)[w].low), min_of(all.high, sums_of(team)[w].high)};
    *slots_of(team) = all;
  }
  const U128* const shown = show_slots(team);
  U128 all = read_of<L>(0, shown);
  QN_NO_UNROLL
  for (u32 rank = 1; rank < L.blocks; ++rank) {
    const U128 other = read_of<L>(rank, shown);
    all = {max_of(all.low, other.low), min_of(all.high, other.high)};
  }
  largest = {u32(all.low >> 32), u32(all.high)};
  return all.low;
}

}  // namespace quern
