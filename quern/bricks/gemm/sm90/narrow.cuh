// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What the kernels with narrow tiles of out share on sm_90a: few rows, all of K. Every multiprocessor has the same share of b's rows, which
// stream through a ring of stages; the sums stay in the registers of the threads that store them, so that nothing follows the last bytes
// but one stage's products and the stores. One warp loads b, which no kernel before writes, another one a, behind the kernel before. Where
// tiles would be very narrow the two blocks of a cluster split K instead (`halves`). Of a wide share a block makes several tiles one after
// another (walk): while the results of one are stored, the ring fills for the next. Tiles of 16 rows are mma.sync's, which add their sums
// through shared memory: bricks/gemm/sm90/narrow_mma.cuh.
#pragma once
#include "quern/bricks/gemm/sm90/narrow_mma.cuh"
#include "quern/bricks/gemm/sm90/swap_ab.cuh"
#include "quern/bricks/gemm/sm90/tiles.cuh"

namespace quern::gemm {

/// A block's part, without a division but where tiles are tall: else there are at most two tiles above each other, and two parts of K with
/// `halves`. What a block does before its first requests is a part of its time.
template <BlockSm90 C, i32 kColumns>
QN_DEVICE DenseSwapPart part_of_narrow_block(const DenseSm90Params& p) {
  constexpr u32 kSplits = C.narrow.halves != 0 ? 2 : 1;
  const u32 tile = blockIdx.x / kSplits, split = blockIdx.x % kSplits, high = p.m > C.tiles.tile_m;
  const u32 first = dense_sm90_part_begin(p.k, kColumns, split, kSplits), last = dense_sm90_part_begin(p.k, kColumns, split + 1, kSplits);
  if constexpr (C.narrow.walk == 2) {
    const u32 tiles_m = u32(p.m + C.tiles.tile_m - 1) / u32(C.tiles.tile_m), column = tile / tiles_m;
    const i32 begin = i32((tile - column * tiles_m) * u32(C.tiles.tile_m)), before = rows_earlier<C.tiles.tile_m>(begin, p.m);
    return {begin - before, i32(column * u32(C.tiles.tile_n)), before, i32(first), i32(last - first), split, kSplits, C.tiles.tile_m};
  }
  const i32 row = high != 0 ? i32(tile % 2) * C.tiles.tile_m : 0, earlier = rows_earlier<C.tiles.tile_m>(row, p.m);
  return {row - earlier, i32(tile >> high) * C.tiles.tile_n, earlier, i32(first), i32(last - first), split, kSplits, C.tiles.tile_m};
}

/// Goes on to the block's next tile; false if there is none. Where two tiles lie above each other a block stays with its rows, as the grid
/// is even.
template <BlockSm90 C>
QN_DEVICE bool next_tile(const DenseSm90Params& p, DenseSwapPart& part) {
  if constexpr (C.narrow.walk != 1) return false;
  const u32 column = u32(part.column) + (gridDim.x >> u32(p.m > C.tiles.tile_m)) * u32(C.tiles.tile_n);  // may be 2^31 and more
  part.column = i32(column);
  return column < u32(p.n);
}

/// Where the part of warpgroup `group` of a tile begins: 64 rows by warpgroup_columns().
template <BlockSm90 C>
QN_DEVICE u32 first_row_of(u32 group) {
  return 64 * (group / C.narrow.warpgroups_n);
}
template <BlockSm90 C>
QN_DEVICE u32 first_column_of(u32 group) {
  return group % C.narrow.warpgroups_n * u32(warpgroup_columns(C));
}

/// With this many columns of K, rows of weights are mostly 8 KB apart. Then tiles begin at different places of K: if all began at the same
/// one, what the blocks ask for at a time would lie in a part of memory's channels (README, another place of K).
constexpr i32 kRotatedK = 4096;

/// Calls load(step) for the steps of K of a tile, from the first step of `part` on. Where mma.sync multiplies and k is kRotatedK, it begins
/// at one of up to 16 places instead, and goes around. Two neighbouring tiles begin at the same place: their blocks are mostly on one TPC,
/// whose requests of a are answered together.
template <BlockSm90 C, class Load>
QN_DEVICE void load_steps(const DenseSm90Params& p, const DenseSwapPart& part, const Load& load) {
  if constexpr (!by_mma(C)) {
    QN_NO_UNROLL
    for (int step = part.first_step; step < part.first_step + part.steps; ++step) load(step);
  } else {
    int step = p.k == kRotatedK ? i32(u32(part.steps) * (u32(part.column) / u32(2 * C.tiles.tile_n) % 16) / 16) : 0;
    QN_NO_UNROLL
    for (int i = 0; i < part.steps; ++i) {
      load(step);
      step = step + 1 == part.steps ? 0 : step + 1;
    }
  }
}

/// By one thread: the block's tiles of b, through all stages of the part.
template <BlockSm90 C, i32 kColumns>
QN_DEVICE void load_narrow_b(const DenseSm90Params& p, DenseSwapPart part, u32 smem) {
  constexpr auto L = dense_sm90_smem(C);
  Producer<C.tiles.stages> fill{smem + L.barriers};
  do {
    load_steps<C>(p, part, [&](int step) {
      const u32 full = begin_fill(fill, u32(L.stage - L.b)), to = smem + fill.stage * L.stage + L.b;
      if constexpr (C.tiles.chunks > 1) load_in_turn(to, &p.b, full, CachePolicy::evict_first, step * C.tiles.chunks, part.column);
      else load_operand<Major::k, C.tiles.tile_n>(to, &p.b, full, CachePolicy::evict_first, step * kColumns, part.column);
      end_fill(fill);
    });
  } while (next_tile<C>(p, part));
}
/// The same of a.
template <BlockSm90 C, i32 kColumns>
QN_DEVICE void load_narrow_a(const DenseSm90Params& p, DenseSwapPart part, u32 smem) {
  constexpr auto L = dense_sm90_smem(C);
  const u32 bytes = u32(rows_of_box<Major::k, C.tiles.tile_m>(p.m) * 128 * C.tiles.chunks);
  Producer<C.tiles.stages> fill{smem + L.barriers};
  do {
    load_steps<C>(p, part, [&](int step) {
      const u32 full = begin_fill(fill, bytes), to = smem + fill.stage * L.stage + L.a;
      if constexpr (by_mma(C)) {
        ptx::tma_load(to, &p.a, full, CachePolicy::evict_last, 0, 0, step * C.tiles.chunks);  // all rows that there are
      } else {
        QN_UNROLL
        for (i32 chunk = 0; chunk < C.tiles.chunks; ++chunk)
          load_operand<Major::k, C.tiles.tile_m>(to + u32(chunk) * C.tiles.tile_m * 128, &p.a, full, CachePolicy::evict_last,
                                                 (step * C.tiles.chunks + chunk) * kColumns, part.row);
      }
      end_fill(fill);
    });
  } while (next_tile<C>(p, part));
}

// Where two blocks each sum a half of K, each block finishes one half of the tile, by its rank: 64 of 128 rows, which are one warpgroup's,
// or half of the columns of 64 rows. Its sums of the other half go from registers into the other block's shared memory. No barrier stands
// between the last products and that.

/// The tile whose results a block stores, or each warpgroup of those beside each other.
template <BlockSm90 C>
QN_HOST_DEVICE constexpr BlockSm90 finished_of() {
  static_assert(C.narrow.halves == 0 || C.narrow.warpgroups_n == 1);
  BlockSm90 c = C;
  c.tiles.tile_n = warpgroup_columns(C);
  if (C.narrow.halves != 0 && C.tiles.tile_m == 64) c.tiles.tile_n = C.tiles.tile_n / 2;
  return c;
}

/// By one thread, before the cluster's first barrier.
template <BlockSm90 C>
QN_DEVICE void expect_half(u32 smem) {
  constexpr auto L = dense_sm90_smem(C);
  const u32 barrier = smem + L.halves_barrier;
  ptx::mbarrier_init(barrier, 1);
  ptx::fence_mbarrier_init();
  ptx::mbarrier_arrive_expect_tx(barrier, u32(L.barriers - L.halves));
}

/// By a warpgroup: kCount of a thread's sums from `first` on go to the same thread of the other block.
template <BlockSm90 C, int kCount, int kRegisters>
QN_DEVICE void give_sums(u32 smem, u32 other, int first, const f32 (&sums)[kRegisters]) {
  constexpr auto L = dense_sm90_smem(C);
  const u32 to = ptx::cluster_address(smem + L.halves + 16 * (threadIdx.x % kWarpgroupSize), other),
            barrier = ptx::cluster_address(smem + L.halves_barrier, other);
  QN_UNROLL
  for (int i = 0; i < kCount; i += 4) {
    u32 four[4];
    QN_UNROLL
    for (int j = 0; j < 4; ++j) four[j] = ptx::bits_of(first == 0 ? sums[i + j] : sums[kRegisters - kCount + i + j]);
    ptx::st_async(to + u32(i / 4 * 16 * kWarpgroupSize), u32x4{four[0], four[1], four[2], four[3]}, barrier);
  }
}

/// By a warpgroup: what the other block gives of the half that this one finishes, added to its own.
template <BlockSm90 C, int kCount, int kRegisters>
QN_DEVICE void take_sums(const u8* memory, u32 smem, int first, const f32 (&sums)[kRegisters], f32 (&total)[kCount]) {
  constexpr auto L = dense_sm90_smem(C);
  ptx::mbarrier_wait_cluster(smem + L.halves_barrier, 0);
  QN_UNROLL
  for (int i = 0; i < kCount; i += 4) {
    f32 four[4];
    unpack<f32, 4>({ptx::ld_shared<u32x4>(memory + L.halves + 16 * (i / 4 * kWarpgroupSize + int(threadIdx.x % kWarpgroupSize)))}, four);
    QN_UNROLL
    for (int j = 0; j < 4; ++j) total[i + j] = (first == 0 ? sums[i + j] : sums[kRegisters - kCount + i + j]) + four[j];
  }
}

/// By a warpgroup, with its sums of the tile: those of its results that the block finishes are stored.
template <BlockSm90 C>
QN_DEVICE void finish_narrow(const DenseSm90Params& p, const DenseSwapPart& part, const u8* memory, u32 smem, u32 group,
                             f32 (&sums)[warpgroup_columns(C) / 2]) {
  constexpr BlockSm90 kFinished = finished_of<C>();
  const i32 row = part.row + i32(first_row_of<C>(group));
  const bool here = row + i32(16 * warp_of_warpgroup()) < p.m;
  if constexpr (C.narrow.halves == 0) {
    if (!here) return;
    ptx::grid_dependency_wait();
    write_rows<kFinished>(p, row, part.column + i32(first_column_of<C>(group)), sums, part.row + part.earlier);
  } else {
    const u32 other = part.split ^ 1;
    ptx::cluster_wait();  // the other block expects them
    if constexpr (C.tiles.tile_m == 64) give_sums<C, kFinished.tiles.tile_n / 2>(smem, other, int(other), sums);
    else if (group == other) give_sums<C, kFinished.tiles.tile_n / 2>(smem, other, 0, sums);
    if (C.tiles.tile_m == 128 && group == other) return;
    f32 total[kFinished.tiles.tile_n / 2];
    take_sums<C>(memory, smem, C.tiles.tile_m == 64 ? int(part.split) : 0, sums, total);
    if (!here) return;
    ptx::grid_dependency_wait();
    write_rows<kFinished>(p, row, part.column + (C.tiles.tile_m == 64 ? i32(part.split) * kFinished.tiles.tile_n : 0), total);
  }
}

/// The block. multiply(part, smem, group, read, sums) makes those of 64 rows and a warpgroup's columns of a tile; fill(part, smem) is for
/// `fill_warps` warps, behind the kernel before; they arrive `fills` times at a stage.
template <BlockSm90 C, i32 kColumns, u32 fills, u32 fill_warps, class Multiply, class Fill>
QN_DEVICE void run_narrow(const DenseSm90Params& p, const Multiply& multiply, const Fill& fill) {
  constexpr u32 kMultiply = 4 * u32(narrow_warpgroups(C));  // warps
  static_assert((C.tiles.tile_m % 64 == 0 || by_mma(C)) && C.store.by_lanes &&
                (C.narrow.walk != 1 || (C.narrow.halves == 0 && fill_warps == 0)));
  QN_SMEM(memory);
  const u32 smem = ptx::smem_address(memory), warp = ptx::shfl(ptx::warp_id(), 0);
  DenseSwapPart part = part_of_narrow_block<C, kColumns * C.tiles.chunks>(p);
  if (threadIdx.x == 32 * kMultiply) {
    prefetch_maps(p);
    pipeline_init<C.tiles.stages>(smem + dense_sm90_smem(C).barriers, kMultiply, 2 + fills);
    if constexpr (C.narrow.halves != 0) expect_half<C>(smem);
  }
  ptx::sync_block();
  if constexpr (C.narrow.halves != 0)
    ptx::cluster_arrive_relaxed();  // of expect_half()'s mbarrier, which it has fenced; a release is a MEMBAR.GPU of every warp before its
                                    // first request
  ptx::grid_launch_dependents();
  // The compiler lays out what is tested last first, beside what all warps have just fetched, and the first requests wait for their
  // instructions too
  if (warp < kMultiply) {
    constexpr auto L = dense_sm90_smem(C);
    if constexpr (!by_mma(C))
      zero_other_rows<Major::k, C.tiles.tile_m, C.tiles.chunks, C.tiles.stages, L.stage>(memory + L.a, p.m, i32(threadIdx.x),
                                                                                         32 * kMultiply);
    Consumer<C.tiles.stages> read{smem + L.barriers};
    do {
      if constexpr (by_mma(C)) {
        make_few_rows<C>(p, part, memory, smem, read);
      } else {
        f32 sums[warpgroup_columns(C) / 2];
        multiply(part, smem, warp / 4, read, sums);
        finish_narrow<C>(p, part, memory, smem, warp / 4, sums);
      }
    } while (next_tile<C>(p, part));
  } else if (warp > kMultiply + 1) {
    ptx::grid_dependency_wait();
    fill(part, smem);
  } else if (warp == kMultiply + 1) {
    ptx::grid_dependency_wait();
    if (ptx::elect_sync()) load_narrow_a<C, kColumns>(p, part, smem);
    ptx::sync_warp();
  } else {
    if (fills > 0 && p.m <= 16) {  // scales come with each stage
      // Requests as fast as they can be made, a ring of them, keep the first scales waiting. Of a lane that is taken by its number ptxas
      // makes each request a loop over the lanes, 60 to 100 clocks, which is about as fast as a multiprocessor takes the bytes in: m = 1
      // (2112, 7168) 7.5 us to 6.9, (7168, 2048) 6.5 to 6.1; m = 64 loses 0.1 us by it (H200)
      if (ptx::lane_id() == 0) load_narrow_b<C, kColumns>(p, part, smem);
    } else if (ptx::elect_sync()) {
      load_narrow_b<C, kColumns>(p, part, smem);
    }
    ptx::sync_warp();
  }
}
template <BlockSm90 C, i32 kColumns, class Multiply>
QN_DEVICE void run_narrow(const DenseSm90Params& p, const Multiply& multiply) {
  run_narrow<C, kColumns, 0, 0>(p, multiply, [](const DenseSwapPart&, u32) {});
}

}  // namespace quern::gemm
