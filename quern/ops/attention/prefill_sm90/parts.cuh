// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Rows whose keys are in several parts. A warp writes what its lanes hold, 16 bytes a lane at a time, to the part's slot; the last of the
// parts' warps for the same rows adds up all of them in ascending order, so that the bits do not depend on who was last.
#pragma once
#include "quern/ops/attention/prefill/logits.cuh"
#include "quern/ops/attention/prefill_sm90/tiles.cuh"

namespace quern::attention {

template <PrefillSm90Config C> QN_DEVICE f32* place_of_part(const PrefillSm90Params& p, i32 slot, u32 warp) {
  return reinterpret_cast<f32*>(p.parts) + u64(u32(slot) * u32(4 * C.warpgroups) + warp) * u32(part_bytes_of_warp(C) / 4) +
         4 * ptx::lane_id();
}

/// By a warp, of the block's multiplying warps `warp`: its sums of a part are written. True: all parts are, and this one is to add them up.
template <PrefillSm90Config C> QN_DEVICE bool write_part(const PrefillSm90Params& p, const Item& item, u32 warp, const WarpRows<C>& rows) {
  f32* const to = place_of_part<C>(p, item.slot + item.part, warp);
  const f32 states[4] = {rows.states[0][0].max, rows.states[0][0].sum, rows.states[0][1].max, rows.states[0][1].sum};
  store_f32<f32, 4>(to, states);
  QN_UNROLL
  for (int i = 0; i < C.head_dim_v / 8; ++i) store_f32<f32, 4>(to + 128 * (i + 1), rows.out[0][i]);
  ptx::fence_gpu();
  ptx::sync_warp();
  u32 before = 0;
  if (ptx::lane_id() == 0) before = ptx::atomic_add_acq_rel_gpu(p.parts_done + i64(item.slot) * (4 * C.warpgroups) + warp, 1u);
  ptx::sync_warp();  // what the others wrote is seen by all lanes
  return ptx::shfl(before, 0) + 1 == u32(item.parts);
}

/// The sums of all parts.
template <PrefillSm90Config C> QN_DEVICE void add_parts(const PrefillSm90Params& p, const Item& item, u32 warp, WarpRows<C>& rows) {
  clear_rows<C>(rows);
  const f32* from = place_of_part<C>(p, item.slot, warp);
  QN_NO_UNROLL
  for (i32 part = 0; part < item.parts; ++part, from += 4 * C.warpgroups * (part_bytes_of_warp(C) / 4)) {
    f32 states[4], factors[1][2], weights[2];
    load_f32<f32, 4>(from, states);
    QN_UNROLL
    for (int half = 0; half < 2; ++half) {
      factors[0][half] = raise_max(rows.states[0][half], states[2 * half]);
      weights[half] = softmax_weight(states[2 * half], rows.states[0][half].max);
      rows.states[0][half].sum = ptx::fma(states[2 * half + 1], weights[half], rows.states[0][half].sum);
    }
    QN_UNROLL
    for (int i = 0; i < C.head_dim_v / 8; ++i) {
      f32 sums[4];
      load_f32<f32, 4>(from + 128 * (i + 1), sums);
      QN_UNROLL
      for (int e = 0; e < 4; ++e) rows.out[0][i][e] = ptx::fma(sums[e], weights[e / 2], rows.out[0][i][e] * factors[0][e / 2]);
      if (i % 4 == 3) ptx::sync_warp();  // loads of all of them, in flight together, would be as many registers as the sums
    }
  }
}

}  // namespace quern::attention
