// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// A team: the blocks that share a row. A block alone, or the blocks of a cluster, which read each other's shared memory.
// What a block shows to others lies in slots, of which there are two sets in turn: a set is written again only behind a barrier of the team
// that follows its last reads.
#pragma once
#include "quern/bricks/mass/wide.cuh"
#include "quern/bricks/select/spec.h"
#include "quern/kit/kit.cuh"

namespace quern {

/// An entry of a list, the sum of those before it, and that of all. index == the list's length: no prefix sum is above the target.
struct Found {
  U128 before, entry, total;
  u32 index;
  u32 unused[3];
};

template <RowLayout L> struct Team {
  u8* smem;
  u32 rank;  ///< of this block
  u32 turn;  ///< the set of slots that is written next
};
template <RowLayout L> QN_DEVICE u32* bins_of(const Team<L>& team) { return reinterpret_cast<u32*>(team.smem); }  // [kSelectBins, 2]
template <RowLayout L> QN_DEVICE u64* list_of(const Team<L>& team) {
  return reinterpret_cast<u64*>(team.smem);
}  // [L.listed], in the same place
template <RowLayout L> QN_DEVICE u32* merged_of(const Team<L>& team) { return reinterpret_cast<u32*>(team.smem + select_smem(L).merged); }
template <RowLayout L> QN_DEVICE U128* slots_of(const Team<L>& team) {
  return reinterpret_cast<U128*>(team.smem + select_smem(L).slots) + team.turn * 32;
}
template <RowLayout L> QN_DEVICE U128* sums_of(const Team<L>& team) { return reinterpret_cast<U128*>(team.smem + select_smem(L).sums); }
template <RowLayout L> QN_DEVICE Found* found_of(const Team<L>& team) { return reinterpret_cast<Found*>(team.smem + select_smem(L).found); }
template <RowLayout L> QN_DEVICE Team<L> team_of(u8* smem) {
  if constexpr (L.blocks == 1) return {smem, 0, 0};
  else return {smem, ptx::cluster_rank(), 0};
}
/// Teams of the grid, and which one a block belongs to.
template <RowLayout L> QN_DEVICE i64 team_index() { return blockIdx.x / L.blocks; }
template <RowLayout L> QN_DEVICE i64 team_count() { return gridDim.x / L.blocks; }

/// What the team's threads wrote, to shared memory too, is visible to all of them behind it.
template <RowLayout L> QN_DEVICE void sync_team() {
  if constexpr (L.blocks == 1) {
    ptx::sync_block();
  } else {
    ptx::cluster_arrive();
    ptx::cluster_wait();
  }
}
/// `p` is in this block's shared memory; read from the same place of a block of the team. T of 4, 8 or 16 bytes.
template <RowLayout L, class T> QN_DEVICE T read_of(u32 rank, const T* p) {
  if constexpr (L.blocks == 1) return *p;
  else return ptx::ld_shared_cluster<T>(ptx::cluster_address(ptx::smem_address(p), rank));
}
/// Shows this block's slots to the team; they are read by `shown[rank]`. By the whole team, behind writes to slots_of(team) of any threads.
template <RowLayout L> QN_DEVICE const U128* show_slots(Team<L>& team) {
  const U128* const shown = slots_of(team);
  sync_team<L>();
  team.turn ^= 1;
  return shown;
}

QN_DEVICE u64 shfl_xor(u64 v, int bits) { return u64(ptx::shfl_xor(u32(v >> 32), bits)) << 32 | ptx::shfl_xor(u32(v), bits); }
QN_DEVICE u64 shfl_up(u64 v, int delta) { return u64(ptx::shfl_up(u32(v >> 32), delta)) << 32 | ptx::shfl_up(u32(v), delta); }
QN_DEVICE u64 warp_max(u64 v) {
  QN_NO_UNROLL
  for (int d = 16; d > 0; d /= 2) v = max_of(v, shfl_xor(v, d));
  return v;
}
QN_DEVICE u32 warp_min(u32 v) {
  QN_NO_UNROLL
  for (int d = 16; d > 0; d /= 2) v = min_of(v, ptx::shfl_xor(v, d));
  return v;
}
/// Inclusive.
QN_DEVICE U128 warp_prefix_sum(U128 v) {
  QN_NO_UNROLL
  for (int d = 1; d < 32; d *= 2) {
    const U128 before{shfl_up(v.low, d), shfl_up(v.high, d)};
    if (ptx::lane_id() >= u32(d)) v = v + before;
  }
  return v;
}

/// Sum of the numbers of the threads before this one, and of all threads of the block.
struct BlockSums {
  U128 before, total;
};
template <RowLayout L> QN_DEVICE BlockSums block_sums(const Team<L>& team, U128 mine) {
  constexpr u32 kWarps = L.threads / 32;
  const u32 warp = threadIdx.x / 32, lane = ptx::lane_id();
  const U128 upto = warp_prefix_sum(mine);
  if (lane == 31) sums_of(team)[warp] = upto;
  ptx::sync_block();
  if (warp == 0) {
    const U128 of_warps = warp_prefix_sum(lane < kWarps ? sums_of(team)[lane] : U128{0, 0});
    if (lane < kWarps) sums_of(team)[lane] = of_warps;
  }
  ptx::sync_block();
  const BlockSums s{(warp == 0 ? U128{0, 0} : sums_of(team)[warp - 1]) + (upto - mine), sums_of(team)[kWarps - 1]};
  ptx::sync_block();
  return s;
}

/// The first of `count` entries whose inclusive prefix sum is above target(sum of all). By the whole block, which gets one result. entry(i)
/// is asked up to twice by one thread; entries in shared memory may be written until the call and again after it.
template <RowLayout L, class Entry, class Target> QN_DEVICE Found find_above(const Team<L>& team, u32 count, Entry entry, Target target) {
  const u32 share = ceil_div<u32>(count, L.threads), begin = min_of(threadIdx.x * share, count), end = min_of(begin + share, count);
  ptx::sync_block();
  U128 mine{0, 0};
  QN_NO_UNROLL
  for (u32 i = begin; i < end; ++i) mine = mine + entry(i);
  const BlockSums sums = block_sums(team, mine);
  const U128 wanted = target(sums.total);
  if (!(wanted < sums.total)) {
    if (threadIdx.x == 0) *found_of(team) = {sums.total, {0, 0}, sums.total, count, {}};
  } else if (sums.before <= wanted && wanted < sums.before + mine) {
    U128 before = sums.before;
    QN_NO_UNROLL
    for (u32 i = begin; i < end; ++i) {
      const U128 e = entry(i);
      if (wanted < before + e) {
        *found_of(team) = {before, e, sums.total, i, {}};
        break;
      }
      before = before + e;
    }
  }
  ptx::sync_block();
  return *found_of(team);
}

/// The largest of the team's numbers; every thread gets it.
template <RowLayout L> QN_DEVICE u64 team_max(Team<L>& team, u64 mine) {
  mine = warp_max(mine);
  if (ptx::lane_id() == 0) sums_of(team)[threadIdx.x / 32].low = mine;
  ptx::sync_block();
  if (threadIdx.x == 0) {
    QN_NO_UNROLL
    for (u32 w = 1; w < L.threads / 32; ++w) mine = max_of(mine, sums_of(team)[w].low);
    slots_of(team)->low = mine;
  }
  const U128* const shown = show_slots(team);
  u64 all = 0;
  QN_NO_UNROLL
  for (u32 rank = 0; rank < L.blocks; ++rank) all = max_of(all, read_of<L>(rank, &shown->low));
  return all;
}
/// The sum of the team's numbers, below 2^128; every thread gets it.
template <RowLayout L> QN_DEVICE U128 team_total(Team<L>& team, U128 mine) {
  const U128 here = block_sums(team, mine).total;
  if (threadIdx.x == 0) *slots_of(team) = here;
  const U128* const shown = show_slots(team);
  U128 all{0, 0};
  QN_NO_UNROLL
  for (u32 rank = 0; rank < L.blocks; ++rank) all = all + read_of<L>(rank, shown);
  return all;
}

}  // namespace quern
