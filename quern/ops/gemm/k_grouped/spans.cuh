// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// spans[g] = the first column of K of group g, and their number; maps[g] = the tensor maps of the group's part of a and b
// Every warp walks over all groups, 32 at a time, a lane each, and writes what is of its own groups. The maps end where the group
// ends, so that TMA brings zeros from there on, whatever follows in memory.
#pragma once
#include "quern/kit/kit.cuh"
#include "quern/kit/scan.cuh"
#include "quern/ops/gemm/k_grouped/spec.h"

namespace quern::gemm {

/// A bound in [0, p.k] as groups have it.
QN_DEVICE i32 k_grouped_bound(const KGroupedSpansParams& p, i32 bound) { return bound >= p.k ? p.k : bound - bound % p.unit; }

QN_DEVICE i32 k_grouped_entry(const KGroupedSpansParams& p, i64 index) {
  return min_of(max_of(ptx::ld_global<i32>(static_cast<const i32*>(p.given) + index), 0), p.k);
}

/// By a warp: `to` becomes the map of `columns` columns from `begin` on. `memory`: 128 bytes of the warp.
QN_DEVICE void make_map(const KGroupedOperand& x, TensorMap* to, u8* memory, i32 begin, i32 columns) {
  const u32 map = ptx::smem_address(memory), lane = ptx::lane_id();
  ptx::st_shared(memory + 4 * lane, reinterpret_cast<const u32*>(&x.map)[lane]);
  ptx::sync_warp();
  if (lane == 0) {
    ptx::tensormap_replace_address(map, static_cast<const u8*>(x.data) + begin * x.column_bytes);
    if (x.major == Major::k) ptx::tensormap_replace_extent<0>(map, u32(columns));
    else ptx::tensormap_replace_extent<1>(map, u32(columns));
    // Rounded up for one row alone: of more, the columns are whole 16 bytes
    if (x.packed) ptx::tensormap_replace_stride<0>(map, u64(round_up(columns, 16)));
  }
  ptx::sync_warp();
  ptx::tensormap_publish(to, map);
  ptx::sync_warp();
}

template <KGroupedSpansConfig C>
QN_DEVICE void k_grouped_spans(const KGroupedSpansParams& p) {
  QN_SMEM(smem);
  ptx::grid_launch_dependents();
  ptx::grid_dependency_wait();
  constexpr i32 kWarps = C.threads / 32;
  const i32 warps = i32(gridDim.x) * kWarps, warp = i32(blockIdx.x) * kWarps + i32(threadIdx.x / 32), lane = i32(ptx::lane_id());
  i32* const spans = static_cast<i32*>(p.spans);
  i32 before = p.sizes ? 0 : k_grouped_entry(p, 0);  // the bound of the groups before
  QN_NO_UNROLL
  for (i32 chunk = 0; chunk < p.groups; chunk += 32) {
    const i32 group = chunk + lane;
    const i32 own = group < p.groups ? k_grouped_entry(p, i64(group) + (p.sizes ? 0 : 1)) : 0;
    // Of bounds, one that does not ascend counts as the largest so far
    const i32 bound =
        p.sizes ? i32(min_of(u32(before) + warp_prefix_sum_upto(u32(own), u32(p.k)), u32(p.k))) : max_of(before, warp_prefix_max(own));
    i32 begin = ptx::shfl_up(bound, 1);
    if (lane == 0) begin = before;
    before = ptx::shfl(bound, 31);
    begin = k_grouped_bound(p, begin);
    const i32 columns = k_grouped_bound(p, bound) - begin;
    if (group < p.groups && group % warps == warp) {
      ptx::st_global<i32>(spans + 2 * i64(group), begin);
      ptx::st_global<i32>(spans + 2 * i64(group) + 1, columns);
    }
    if constexpr (C.maps != 0) {
      QN_NO_UNROLL
      for (i32 g = chunk + (warp + warps - chunk % warps) % warps; g < min_of(chunk + 32, p.groups); g += warps) {
        const i32 first = ptx::shfl(begin, g - chunk), count = ptx::shfl(columns, g - chunk);
        if (count == 0) continue;
        TensorMap* const maps = static_cast<TensorMap*>(p.maps) + 2 * i64(g);
        u8* const mine = smem + threadIdx.x / 32 * sizeof(TensorMap);
        make_map(p.a, maps, mine, first, count);
        make_map(p.b, maps + 1, mine, first, count);
      }
    }
  }
}

}  // namespace quern::gemm
