// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What the kernels for many rows share on sm_90a, those with narrow tiles too what follows the sums: a block stays on its SM and takes
// every gridDim.x-th tile [tile_m][tile_n] of out. One warp of its first warpgroup loads: TMA fills a ring of stages with 128 bytes of each
// row of a and b, as far ahead as the ring is long, over the end of a tile too. Two warpgroups multiply, and store their results.
#pragma once
#include "quern/bricks/gemm/sm90/operand.cuh"
#include "quern/bricks/gemm/sm90/spec.h"
#include "quern/bricks/gemm/store.cuh"
#include "quern/bricks/gemm/tile_order.cuh"
#include "quern/kit/kit.cuh"
#include "quern/kit/quad.cuh"
#include "quern/kit/wgmma_ring.cuh"

namespace quern::gemm {

/// A tile's place in out.
struct DenseTile {
  i32 row, column;
};

/// Rows that a block, or a pair of them, takes at a time; those of a block's tile from the first of them on.
template <TilesSm90 T>
constexpr i32 kRowsAtOnce = T.tile_m * pair_blocks(T);
template <TilesSm90 T>
QN_DEVICE i32 row_of_pair() {
  return T.pair != 0 ? i32(blockIdx.x % 2) * T.tile_m : 0;
}
/// A block's tiles, from `index` on every `step`-th. gemm.scaled leaves group_log2 as it is: read from the parameters it cost 1 % where all
/// of a and b have scales 1x128 (an H200).
template <TilesSm90 T>
QN_DEVICE TileWalk walk_tiles(const DenseSm90Params& p, u32 index, u32 step, u32 group_log2 = kGroupLog2) {
  const u32 columns = T.swapped != 0 ? u32(p.rows) : u32(T.tile_n);
  return walk_from(index / pair_blocks(T), step / pair_blocks(T), u32(p.m + kRowsAtOnce<T> - 1) / kRowsAtOnce<T>,
                   (u32(p.n) + columns - 1) / columns, group_log2);
}
template <TilesSm90 T>
QN_DEVICE DenseTile tile_of(const TileWalk& walk) {
  const TilePlace place = place_of(walk);
  return {i32(place.m * kRowsAtOnce<T>) + row_of_pair<T>(), i32(place.n * T.tile_n)};
}
/// The same where tiles that are `swapped` have the columns that the parameters say.
template <TilesSm90 T>
QN_DEVICE DenseTile tile_of(const DenseSm90Params& p, const TileWalk& walk) {
  if constexpr (T.swapped == 0) return tile_of<T>(walk);
  const TilePlace place = place_of(walk);
  return {i32(place.m) * T.tile_m, i32(place.n) * p.rows};
}
/// Rows of b's tile that a copy brings.
template <TilesSm90 T>
QN_DEVICE i32 columns_of_box(const DenseSm90Params& p) {
  return T.swapped != 0 && T.b_major == Major::k ? p.rows : T.tile_n;
}
/// Whether this block's tile is the second one of a pair and has no rows. Such a block loads its half of b for the other block, and passes
/// its own stages over. The vote tells ptxas that the lanes agree. Without it, behind a branch on what was read from memory, ptxas kept the
/// ring's stage in ordinary registers instead of uniform ones, and 390 bytes were spilled.
template <TilesSm90 T>
QN_DEVICE bool is_empty(const DenseTile& tile, i32 rows) {
  return T.pair != 0 && !ptx::any(tile.row < rows);
}
/// Passes `steps` stages over without reading them: each is released.
template <int stages, int blocks>
QN_DEVICE void pass_stages(Consumer<stages, blocks>& read, int steps) {
  QN_NO_UNROLL
  for (int step = 0; step < steps; ++step) {
    begin_read(read);
    end_read(read);
  }
}

/// By one thread: b's rows of a tile from `column` on, by load(to, row); of a pair that shares them half, for both, else two halves of its
/// own.
template <TilesSm90 T, class Load, class LoadForBoth>
QN_DEVICE void load_tile_b(u32 to, i32 column, bool shared, const Load& load, const LoadForBoth& load_for_both) {
  if constexpr (T.pair == 0) {
    load(to, column);
  } else {
    static_assert(T.b_major == Major::k && T.tile_n % 16 == 0, "half of b's tile is whole eights of rows, which are swizzled together");
    constexpr u32 kHalf = u32(T.tile_n / 2);
    if (shared) {
      const u32 first = blockIdx.x % 2 * kHalf;
      load_for_both(to + first * 128, column + i32(first));
    } else {
      load(to, column);
      load(to + kHalf * 128, column + i32(kHalf));
    }
  }
}

/// How many rows earlier than its results a tile's a is loaded (operand.cuh: rows_earlier()). wgmma then reads as many rows further, over
/// the end of a's tile into b's: these are products of rows that are not there. So it is no more rows than b's tile has. A tile of 256 rows
/// reads at most 128 rows of b's tile: the plan sees to it that the last tile has 128 rows of its own, or the second warpgroup has no rows
/// and reads nothing (is_empty()).
template <TilesSm90 T>
QN_DEVICE i32 rows_earlier_of_tile(i32 row, i32 rows) {
  static_assert(T.tile_m == 128 || T.tile_n >= 128);
  if constexpr (T.a_major != Major::k) return 0;
  const i32 earlier = rows_earlier<T.tile_m>(row, rows);
  return T.tile_m == 128 ? min_of(earlier, T.tile_n) : earlier;
}

/// By one thread: the operands of a tile of `rows` rows and `columns` columns through `steps` stages of kColumns columns of K, and what
/// beside(full, stage, step) loads with a stage, of `bytes_beside` bytes.
template <BlockSm90 C, i32 kColumns, class Beside>
QN_DEVICE void load_tile(Producer<C.tiles.stages>& fill, u32 smem, const TensorMap* a, const TensorMap* b, const DenseTile& tile, i32 rows,
                         i32 columns, int steps, u32 bytes_beside, const Beside& beside) {
  constexpr auto L = dense_sm90_smem(C);
  const u32 bytes = u32(L.stage - (C.tiles.tile_m - rows + C.tiles.tile_n - columns) * 128) + bytes_beside;
  QN_NO_UNROLL
  for (int step = 0; step < steps; ++step) {
    const u32 full = begin_fill(fill, bytes), stage = smem + fill.stage * L.stage;
    load_operand<C.tiles.a_major, C.tiles.tile_m>(stage + L.a, a, full, CachePolicy::evict_normal, step * kColumns, tile.row);
    load_tile_b<C.tiles>(
        stage + L.b, tile.column, true,
        [&](u32 to, i32 row) {
          load_operand<C.tiles.b_major, C.tiles.tile_n>(to, b, full, CachePolicy::evict_normal, step * kColumns, row);
        },
        [&](u32 to, i32 row) { load_box<2>(to, b, full, CachePolicy::evict_normal, step * kColumns, row); });
    beside(full, fill.stage, step);
    end_fill(fill);
  }
}

/// By the first warp, of which one thread loads: stages of kColumns columns of K; beside(tile, full, stage, step) as load_tile() has it.
template <BlockSm90 C, i32 kColumns, class Beside>
QN_DEVICE void load_tiles(const DenseSm90Params& p, u32 smem, u32 bytes_beside, const Beside& beside, u32 group_log2 = kGroupLog2) {
  if (!ptx::elect_sync()) return;
  const int steps = (p.k + kColumns - 1) / kColumns;
  Producer<C.tiles.stages> fill{smem + dense_sm90_smem(C).barriers};
  for (TileWalk walk = walk_tiles<C.tiles>(p, blockIdx.x, gridDim.x, group_log2); has_tile(walk); walk_on(walk)) {
    const DenseTile tile = tile_of<C.tiles>(p, walk), from = {tile.row - rows_earlier_of_tile<C.tiles>(tile.row, p.m), tile.column};
    load_tile<C, kColumns>(fill, smem, &p.a, &p.b, from, rows_of_box<C.tiles.a_major, C.tiles.tile_m>(p.m), columns_of_box<C.tiles>(p),
                           steps, bytes_beside, [&](u32 full, u32 stage, int step) { beside(tile, full, stage, step); });
  }
  if constexpr (C.tiles.pair != 0) drain(fill);  // the other block's warps arrive here
}
template <BlockSm90 C, i32 kColumns>
QN_DEVICE void load_tiles(const DenseSm90Params& p, u32 smem) {
  load_tiles<C, kColumns>(p, smem, 0, [](const DenseTile&, u32, u32, int) {}, u32(p.group_log2));
}

/// By the two warpgroups that multiply, before they do.
template <BlockSm90 C>
QN_DEVICE void zero_other_rows(const DenseSm90Params& p) {
  constexpr auto L = dense_sm90_smem(C);
  QN_SMEM(memory);
  zero_other_rows<C.tiles.a_major, C.tiles.tile_m, 1, C.tiles.stages, L.stage>(memory + L.a, p.m, i32(threadIdx.x) - kWarpgroupSize,
                                                                               2 * kWarpgroupSize);
  if constexpr (C.tiles.swapped != 0)
    zero_other_rows<C.tiles.b_major, C.tiles.tile_n, 1, C.tiles.stages, L.stage>(memory + L.b, p.rows, i32(threadIdx.x) - kWarpgroupSize,
                                                                                 2 * kWarpgroupSize);
}

// What follows the sums. P are the parameters of a kernel, or of one group of rows. These functions read of them out, out_stride, m, n, and
// the bias and c where there are some. results_of(p) is the tensor map of out, and matrix_of(p) the matrix of it that is meant.

QN_DEVICE const TensorMap* results_of(const DenseSm90Params& p) { return &p.results; }
QN_DEVICE i32 matrix_of(const DenseSm90Params&) { return 0; }

/// The first of the two columns that a thread has of each 8 of the tile.
QN_DEVICE i32 pair_column(i32 column, int pair) { return column + 8 * pair + 2 * i32(ptx::lane_id() % 4); }

/// One row's results of a thread, which has columns 8 i + 2 q and the next of the tile: rounded, and stored in whole 16 bytes.
template <BlockSm90 C, int kPairs, class P>
QN_DEVICE void write_row(const P& p, i32 row, i32 column, const f32 (&values)[2 * kPairs]) {
  using Out = dtype_t<C.ending.out_dtype>;
  const i32 quad = i32(ptx::lane_id() % 4);
  Out* const out = static_cast<Out*>(p.out) + i64(row) * p.out_stride;
  const bool here = row < p.m;
  if constexpr (sizeof(Out) == 2) {
    QN_UNROLL
    for (int g = 0; g < kPairs; g += 4) {
      u32 words[4] = {};
      QN_UNROLL
      for (int i = 0; i < 4 && g + i < kPairs; ++i) words[i] = pack_word(values[2 * (g + i)], values[2 * (g + i) + 1], Out{});
      transpose_quad(words);
      const i32 at = column + 8 * (g + quad);
      if (here && at < p.n && g + quad < kPairs) ptx::st_global(out + at, u32x4{words[0], words[1], words[2], words[3]});
    }
  } else {
    QN_UNROLL
    for (int i = 0; i < kPairs; ++i) {
      const i32 at = pair_column(column, i);
      const f32 pair[2] = {values[2 * i], values[2 * i + 1]};
      if (here && at < p.n) store_f32<Out, 2>(out + at, pair);
    }
  }
}

/// sums += the bias of a thread's columns: each lane loads two of 64 and asks the others for its own. Loads of its own, each behind a
/// branch and once for either dtype, took 8 to 12 % of a kernel's compile time more.
template <class T, int kRegisters>
QN_DEVICE void add_bias(const void* bias, DType dtype, i32 columns, i32 column, f32 (&sums)[kRegisters]) {
  constexpr int kPairs = kRegisters / 4, kLoads = (kPairs + 7) / 8;
  const i32 lane = i32(ptx::lane_id());
  f32 loaded[kLoads][2];
  QN_UNROLL
  for (int i = 0; i < kLoads; ++i) {
    const i32 at = column + 64 * i + 2 * lane;
    load_bias<T>(bias, dtype, at, columns - at, loaded[i]);
  }
  QN_UNROLL
  for (int i = 0; i < kPairs; ++i) {
    QN_UNROLL
    for (int j = 0; j < 2; ++j) {
      const f32 of_column = ptx::shfl(loaded[i / 8][j], i % 8 * 4 + lane % 4);
      sums[4 * i + j] = sums[4 * i + j] + of_column;
      sums[4 * i + 2 + j] = sums[4 * i + 2 + j] + of_column;
    }
  }
}

/// values += a thread's part of a row of c, of which the first `columns` exist.
template <class E, int kPairs>
QN_DEVICE void add_pairs(const E* row, i32 columns, i32 column, f32 (&values)[2 * kPairs]) {
  QN_UNROLL
  for (int i = 0; i < kPairs; ++i) {
    const i32 at = pair_column(column, i);
    f32 pair[2] = {values[2 * i], values[2 * i + 1]};
    if (at < columns) add_aligned(row + at, pair);
    values[2 * i] = pair[0], values[2 * i + 1] = pair[1];
  }
}

template <BlockSm90 C, int kPairs, class P>
QN_DEVICE void add_row_of_c(const P& p, i32 row, i32 column, f32 (&values)[2 * kPairs]) {
  using T = dtype_t<C.ending.dtype>;
  const i32 columns = row < p.m ? p.n : 0;
  const i64 at = i64(row) * p.c.stride;
  if (p.c.dtype == DType::f32) add_pairs<f32, kPairs>(static_cast<const f32*>(p.c.data) + at, columns, column, values);
  else add_pairs<T, kPairs>(static_cast<const T*>(p.c.data) + at, columns, column, values);
  ptx::sync_warp();  // c may be out, where lanes of a quad store each other's columns
}

/// How many pairs of a row are finished before the next ones begin. Their values of c are in flight together, beside the sums. Two kinds of
/// warpgroups have few registers left for that. One has a whole tile: its sums leave 40 registers. The other walks over narrow tiles beside
/// another warpgroup, with the registers of the launch: with 16 pairs at once, f32 results of 128 columns with c and gelu spilled 16 bytes.
template <BlockSm90 C>
constexpr bool kFewRegisters =
    C.tiles.alternate != 0 || (C.narrow.walk == 1 && C.narrow.warpgroups_n > 1 && C.ending.out_dtype == DType::f32);
template <BlockSm90 C>
constexpr int kPairsAtOnce = C.ending.has_c == 0 && C.ending.activation == 0 ? C.tiles.tile_n / 8
                             : kFewRegisters<C>                              ? 8
                                                                             : 16;

/// All that follows the sums, for a thread's part of a row from its pair kFirst on. `half`: which of its two rows in `sums`.
template <BlockSm90 C, int kFirst, int kRegisters, class P>
QN_DEVICE void finish_row(const P& p, i32 row, i32 column, int half, const f32 (&sums)[kRegisters]) {
  constexpr int kPairs = min_of(C.tiles.tile_n / 8 - kFirst, kPairsAtOnce<C>);
  f32 values[2 * kPairs];
  QN_UNROLL
  for (int i = 0; i < kPairs; ++i) {
    QN_UNROLL
    for (int j = 0; j < 2; ++j) values[2 * i + j] = half == 0 ? sums[4 * (kFirst + i) + j] : sums[4 * (kFirst + i) + 2 + j];
  }
  if constexpr (C.ending.has_c != 0) add_row_of_c<C, kPairs>(p, row, column + 8 * kFirst, values);
  activate<C.ending.activation>(values);
  write_row<C, kPairs>(p, row, column + 8 * kFirst, values);
  if constexpr (kFirst + kPairs < C.tiles.tile_n / 8)  // a branch also keeps the compiler from working at all of them at once
    if (column + 8 * (kFirst + kPairs) < p.n) finish_row<C, kFirst + kPairs>(p, row, column, half, sums);
}

QN_DEVICE void load_matrices(u32 (&words)[2], u32 place) { ptx::ldmatrix_x2(words, place); }
QN_DEVICE void load_matrices(u32 (&words)[4], u32 place) { ptx::ldmatrix_x4(words, place); }
QN_DEVICE void store_matrices(u32 place, const u32 (&words)[2]) { ptx::stmatrix_x2(place, words); }
QN_DEVICE void store_matrices(u32 place, const u32 (&words)[4]) { ptx::stmatrix_x4(place, words); }

/// 8 kPairs columns of a warp's box of results, from its 16 bytes `chunk` and from a thread's pair `pair` on. Where c has come into the
/// box, it is added.
template <BlockSm90 C, int kPairs, int kRegisters>
QN_DEVICE void write_columns(u32 box, int chunk, int pair, const f32 (&sums)[kRegisters]) {
  using Out = dtype_t<C.ending.out_dtype>;
  const u32 lane = ptx::lane_id(),
            place = box + dense_sm90_box_place(dense_sm90_boxes(C), lane % 16, u32(chunk) + (kPairs == 2 ? lane / 16 : 0));
  f32 values[4 * kPairs];
  QN_UNROLL
  for (int j = 0; j < 4 * kPairs; ++j) values[j] = sums[4 * pair + j];
  u32 words[2 * kPairs];
  if constexpr (C.store.c_boxes != 0) {
    load_matrices(words, place);
    QN_UNROLL
    for (int j = 0; j < 2 * kPairs; ++j) {
      f32 added[2];
      unpack_word(words[j], added, Out{});
      values[2 * j] = values[2 * j] + added[0], values[2 * j + 1] = values[2 * j + 1] + added[1];
    }
  }
  activate<C.ending.activation>(values);
  QN_UNROLL
  for (int j = 0; j < 2 * kPairs; ++j) words[j] = pack_word(values[2 * j], values[2 * j + 1], Out{});
  store_matrices(place, words);
}

/// Box `box` of a warp's part of the tile, to its slot.
template <BlockSm90 C, int kRegisters>
QN_DEVICE void write_box(u32 slot, int box, const f32 (&sums)[kRegisters]) {
  constexpr int kChunks = dense_sm90_boxes(C).columns / 8;
  QN_UNROLL
  for (int i = 0; i + 1 < kChunks; i += 2) write_columns<C, 2>(slot, i, box * kChunks + i, sums);
  if constexpr (kChunks % 2 != 0) write_columns<C, 1>(slot, kChunks - 1, box * kChunks + kChunks - 1, sums);
}

/// The rows of a box that exist. No lane takes a branch of its own: ptxas would keep the stage of the ring, which is alive here, in
/// ordinary registers instead of uniform ones, and a stage of scaled products took 10 % longer.
template <BlockSm90 C, class P>
QN_DEVICE void store_box_rows(const P& p, const u8* box, i32 first_row, i32 column) {
  using Out = dtype_t<C.ending.out_dtype>;
  constexpr i32 kChunks = dense_sm90_boxes(C).columns / 8, kAll = kSm90StoreRows * kChunks;
  QN_UNROLL
  for (i32 i = 0; i < kAll; i += 32) {
    const i32 index = i + i32(ptx::lane_id()), chunk = kAll % 32 == 0 ? index : min_of(index, kAll - 1), row = chunk / kChunks,
              at = column + 8 * (chunk % kChunks);
    const u32x4 results = ptx::ld_shared<u32x4>(box + dense_sm90_box_place(dense_sm90_boxes(C), u32(row), u32(chunk % kChunks)));
    if ((kAll % 32 == 0 || index < kAll) && first_row + row < p.m && at < p.n)
      ptx::st_global(static_cast<Out*>(p.out) + i64(first_row + row) * p.out_stride + at, results);
  }
}

/// From the beginning of shared memory to a warp's slot for box `box`.
template <BlockSm90 C>
QN_DEVICE u32 box_slot(int box) {
  constexpr Sm90Boxes kBoxes = dense_sm90_boxes(C);
  return u32(dense_sm90_smem(C).boxes) + ((ptx::warp_id() - 4) * kBoxes.slots + u32(box % kBoxes.slots)) * kBoxes.bytes;
}
/// The mbarrier of that slot, at which c comes.
template <BlockSm90 C>
QN_DEVICE u32 barrier_of_c(int box) {
  constexpr Sm90Boxes kBoxes = dense_sm90_boxes(C);
  QN_SMEM(memory);
  return ptx::smem_address(memory) + u32(dense_sm90_smem(C).c_barriers) +
         8 * ((ptx::warp_id() - 4) * kBoxes.slots + u32(box % kBoxes.slots));
}

/// By one thread: asks for c of a warp's box kBox, and of the next boxes that it has slots for. The results of earlier boxes may still be
/// leaving from these slots. So it waits until those in the same slot have been read; where a row of boxes begins, until all have.
template <BlockSm90 C, int kBox, class P>
QN_DEVICE void load_c(const P& p, i32 row, i32 column) {
  constexpr Sm90Boxes kBoxes = dense_sm90_boxes(C);
  constexpr int kSlot = kBox % kBoxes.slots;
  const i32 here = column + kBox * kBoxes.columns;
  if (here >= p.n) return;
  QN_SMEM(memory);
  ptx::bulk_wait_read<(kBox < kBoxes.slots ? 0 : kBoxes.slots - 1 - kSlot)>();
  ptx::mbarrier_arrive_expect_tx(barrier_of_c<C>(kBox), kBoxes.bytes);
  ptx::tma_load(ptx::smem_address(memory) + box_slot<C>(kBox), &p.addend, barrier_of_c<C>(kBox), CachePolicy::evict_normal, here, row, 0);
  if constexpr (kSlot + 1 < kBoxes.slots) load_c<C, kBox + 1>(p, row, column);
}

/// By a warp: c of its first boxes of 64 rows of a warpgroup from `first_row` on, where c comes by TMA.
template <BlockSm90 C, class P>
QN_DEVICE void start_c(const P& p, i32 first_row, i32 column) {
  if constexpr (C.store.c_boxes != 0)
    if (ptx::elect_sync()) load_c<C, 0>(p, first_row + kSm90StoreRows * i32(warp_of_warpgroup()), column);
}

/// Stores 64 rows of a warpgroup from `first_row`, 16 of each warp through its boxes, from box kFirst on. A warp fills as many boxes at
/// once as it has slots: the fence between results and TMA takes some 300 clocks (MEMBAR), however much lies before it. The boxes leave by
/// TMA while the warps go on. If the last row is among the 64, lanes store them instead, because the map of all groups does not end there.
/// `parities`: a bit for each slot, the parity of the wait for c.
template <BlockSm90 C, int kFirst, int kRegisters, class P>
QN_DEVICE void store_boxes(const P& p, i32 first_row, i32 column, const f32 (&sums)[kRegisters], u32& parities) {
  constexpr Sm90Boxes kBoxes = dense_sm90_boxes(C);
  constexpr int kNext = kFirst + kBoxes.slots;
  static_assert(C.tiles.tile_n % (kBoxes.columns * kBoxes.slots) == 0 && kBoxes.columns % 8 == 0);
  QN_SMEM(memory);
  const u32 smem = ptx::smem_address(memory);
  const i32 row = first_row + kSm90StoreRows * i32(warp_of_warpgroup());
  const auto column_of = [&](int box) { return column + box * kBoxes.columns; };
  if constexpr (C.store.c_boxes == 0) {
    if (ptx::elect_sync()) ptx::bulk_wait_read<0>();
    ptx::sync_warp();
  }
  QN_UNROLL
  for (int box = kFirst; box < kNext; ++box) {
    if (box > kFirst && column_of(box) >= p.n) continue;
    if constexpr (C.store.c_boxes != 0) {
      ptx::mbarrier_wait(barrier_of_c<C>(box), parities >> box % kBoxes.slots & 1);
      parities ^= 1u << box % kBoxes.slots;
    }
    write_box<C>(smem + box_slot<C>(box), box, sums);
  }
  if (first_row + 64 <= p.m) {
    ptx::fence_proxy_async_shared();
    ptx::sync_warp();
    if (ptx::elect_sync()) {
      QN_UNROLL
      for (int box = kFirst; box < kNext; ++box) {
        if (box > kFirst && column_of(box) >= p.n) continue;
        ptx::tma_store(results_of(p), smem + box_slot<C>(box), CachePolicy::evict_normal, column_of(box), row, matrix_of(p));
        ptx::bulk_commit();  // a group each: load_c() waits for boxes one by one
      }
    }
  } else {
    ptx::sync_warp();
    QN_UNROLL
    for (int box = kFirst; box < kNext; ++box) {
      if (box > kFirst && column_of(box) >= p.n) continue;
      store_box_rows<C>(p, memory + box_slot<C>(box), row, column_of(box));
    }
    if constexpr (C.store.c_boxes != 0) {  // the next c comes into what lanes have read and written
      ptx::fence_proxy_async_shared();
      ptx::sync_warp();
    }
  }
  if constexpr (kNext * kBoxes.columns < C.tiles.tile_n) {
    if (column_of(kNext) >= p.n) return;
    if constexpr (C.store.c_boxes != 0)
      if (ptx::elect_sync()) load_c<C, kNext>(p, row, column);
    store_boxes<C, kNext>(p, first_row, column, sums, parities);
  }
}

/// Of tiles that are `swapped`: sums += the bias of a thread's two rows of weights, the first of which is `row`.
template <class T, int kRegisters>
QN_DEVICE void add_bias_of_rows(const void* bias, DType dtype, i32 rows, i32 row, f32 (&sums)[kRegisters]) {
  f32 first[1], second[1];
  load_bias<T>(bias, dtype, row, rows - row, first);
  load_bias<T>(bias, dtype, row + 8, rows - row - 8, second);
  QN_UNROLL
  for (int i = 0; i < kRegisters; i += 4) {
    QN_UNROLL
    for (int j = 0; j < 2; ++j) sums[i + j] = sums[i + j] + first[0], sums[i + 2 + j] = sums[i + 2 + j] + second[0];
  }
}

/// Stores 64 columns of out from `column` of a swapped tile, by a warpgroup, from its box kFirst on. The tile begins at `row`. Box i has
/// its rows from 16 i on and all 64 columns: each warp puts its 16 columns into the box, turned by stmatrix, and one warp stores it. `rows`
/// rows are the tile's own: a multiple of eight, except at the end of out.
template <BlockSm90 C, int kFirst, int kRegisters>
QN_DEVICE void store_swapped(const DenseSm90Params& p, i32 column, i32 row, const f32 (&sums)[kRegisters]) {
  using Out = dtype_t<C.ending.out_dtype>;
  constexpr Sm90Boxes kBoxes = dense_sm90_boxes(C);
  constexpr int kAll = (C.tiles.tile_n + kSm90StoreRows - 1) / kSm90StoreRows, kNext = kFirst + 4 * kBoxes.slots;
  QN_SMEM(memory);
  const u32 lane = ptx::lane_id(), warp = warp_of_warpgroup(),
            boxes = u32(dense_sm90_smem(C).boxes) + (warpgroup_id() - 1) * 4 * u32(kBoxes.slots * kBoxes.bytes);
  const i32 rows = min_of(p.rows, p.n - row);  // the tile's own
  if (ptx::elect_sync()) ptx::bulk_wait_read<0>();
  sync_warpgroup();
  QN_UNROLL
  for (int box = kFirst; box < kNext && box < kAll; ++box) {
    if (kSm90StoreRows * box >= rows) continue;
    f32 values[8];
    QN_UNROLL
    for (int j = 0; j < 8; ++j) values[j] = sums[8 * box + j];
    activate<C.ending.activation>(values);
    const u32 words[4] = {pack_word(values[0], values[1], Out{}), pack_word(values[2], values[3], Out{}),
                          pack_word(values[4], values[5], Out{}), pack_word(values[6], values[7], Out{})};
    ptx::stmatrix_x4_trans(ptx::smem_address(memory) + boxes + u32((box - kFirst) * kBoxes.bytes) +
                               dense_sm90_box_place(kBoxes, lane / 16 * 8 + lane % 8, 2 * warp + lane / 8 % 2),
                           words);
  }
  ptx::fence_proxy_async_shared();
  sync_warpgroup();
  QN_UNROLL
  for (int i = 0; i < kBoxes.slots; ++i) {
    const i32 first = kSm90StoreRows * (kFirst + 4 * i + i32(warp));  // of the tile's rows
    const u32 box = boxes + (4 * u32(i) + warp) * u32(kBoxes.bytes);
    if (first >= rows) continue;
    if (first + kSm90StoreRows <= p.rows || row + p.rows >= p.n) {
      if (ptx::elect_sync()) {
        ptx::tma_store(&p.results, ptx::smem_address(memory) + box, CachePolicy::evict_normal, column, row + first, 0);
        ptx::bulk_commit();
      }
    } else {  // half of a box: the next eight rows are another tile's
      QN_UNROLL
      for (u32 chunk = lane; chunk < 64; chunk += 32) {
        const u32x4 results = ptx::ld_shared<u32x4>(memory + box + dense_sm90_box_place(kBoxes, chunk / 8, chunk % 8));
        if (column + 8 * i32(chunk % 8) < p.m)
          ptx::st_global(static_cast<Out*>(p.out) + i64(row + first + i32(chunk / 8)) * p.out_stride + column + 8 * i32(chunk % 8),
                         results);
      }
    }
    ptx::sync_warp();
  }
  if constexpr (kNext < kAll)
    if (kSm90StoreRows * kNext < rows) store_swapped<C, kNext>(p, column, row, sums);
}
template <BlockSm90 C, int kRegisters>
QN_DEVICE void write_swapped(const DenseSm90Params& p, i32 column, i32 row, f32 (&sums)[kRegisters]) {
  static_assert(dense_sm90_stores_boxes(C) && C.store.c_boxes == 0 && C.tiles.tile_n % kSm90StoreRows == 0 && C.tiles.tile_m == 128);
  if (column >= p.m) return;  // 64 of weights' rows that are not there
  if (p.bias != nullptr)
    add_bias_of_rows<dtype_t<C.ending.dtype>>(p.bias, p.bias_dtype, p.m, column + i32(16 * warp_of_warpgroup() + ptx::lane_id() / 4), sums);
  store_swapped<C, 0>(p, column, row, sums);
}

/// 64 rows of out from `first_row`, by a warpgroup; where c comes by TMA, after start_c. Rows before `begin` are left out, where lanes
/// store.
template <BlockSm90 C, int kRegisters, class P>
QN_DEVICE void write_rows(const P& p, i32 first_row, i32 column, f32 (&sums)[kRegisters], u32& parities, i32 begin = 0) {
  if (p.bias != nullptr) add_bias<dtype_t<C.ending.dtype>>(p.bias, p.bias_dtype, p.n, column, sums);
  if constexpr (dense_sm90_stores_boxes(C)) {
    store_boxes<C, 0>(p, first_row, column, sums, parities);
  } else {
    const i32 row = first_row + i32(16 * warp_of_warpgroup() + ptx::lane_id() / 4);
    constexpr int kAtOnce = C.ending.has_c == 0 || C.tiles.alternate
                                ? 2
                                : 1;  // without c it gains nothing; in turn, one code for both rows spilled 4 to 224 bytes
    QN_NO_UNROLL
    for (int first = 0; first < 2; first += kAtOnce) {
      QN_UNROLL
      for (int half = first; half < first + kAtOnce; ++half)
        finish_row<C, 0>(p, row + 8 * half < begin ? p.m : row + 8 * half, column, half, sums);
    }
  }
}
template <BlockSm90 C, int kRegisters, class P>
QN_DEVICE void write_rows(const P& p, i32 first_row, i32 column, f32 (&sums)[kRegisters], i32 begin = 0) {
  static_assert(C.store.c_boxes == 0);
  u32 parities = 0;
  write_rows<C>(p, first_row, column, sums, parities, begin);
}

/// By one thread, before the kernel before has ended: the operands' maps, where they are parameters.
template <class P>
QN_DEVICE void prefetch_maps(const P& p) {
  ptx::prefetch_tensormap(&p.a);
  ptx::prefetch_tensormap(&p.b);
}

/// The block: load(smem) is for its first warp, multiply(smem, warpgroup) for its second and third warpgroup, fill(smem) for the other
/// three warps of the first, which arrive `fills` times at a stage that they fill too. `releases`: warps that read a stage. The first
/// warpgroup keeps `registers` a thread, the others share what the first gives back. For P there is prefetch_maps.
template <BlockSm90 C, int registers, class P, class Load, class Multiply, class Fill>
QN_DEVICE void run_warpgroups(const P& p, u32 releases, u32 fills, const Load& load, const Multiply& multiply, const Fill& fill) {
  static_assert(C.tiles.tile_m % 128 == 0 && dense_sm90_smem(C).bytes <= 227 * 1024);
  constexpr int kLaunched = 65536 / kTilesSm90Threads / 8 * 8;  // registers of a thread that the block begins with
  QN_SMEM(memory);
  const u32 smem = ptx::smem_address(memory);
  if (threadIdx.x == 0) {
    prefetch_maps(p);
    if constexpr (C.store.c_boxes != 0)
      for (int i = 0; i < 8 * dense_sm90_boxes(C).slots; ++i) ptx::mbarrier_init(smem + u32(dense_sm90_smem(C).c_barriers) + 8 * u32(i), 1);
    pipeline_init<C.tiles.stages>(smem + dense_sm90_smem(C).barriers, releases * pair_blocks(C.tiles), 1 + fills);
  }
  if constexpr (C.tiles.pair == 0) {
    ptx::sync_block();
  } else {
    ptx::cluster_arrive();
    ptx::cluster_wait();
  }
  ptx::grid_dependency_wait();
  const u32 warpgroup = ptx::shfl(warpgroup_id(), 0);
  if (warpgroup == 0) {
    ptx::decrease_registers<registers>();
    if (threadIdx.x < 32) load(smem);
    else fill(smem);
  } else {
    ptx::increase_registers<(3 * kLaunched - registers) / 2>();
    multiply(smem, warpgroup - 1);
    if (dense_sm90_stores_boxes(C) && ptx::elect_sync()) ptx::bulk_wait_read<0>();  // the memory is the block's until it ends
  }
}
template <BlockSm90 C, class P, class Load, class Multiply>
QN_DEVICE void run_warpgroups(const P& p, u32 releases, const Load& load, const Multiply& multiply) {
  run_warpgroups<C, 40>(p, releases, 0, load, multiply, [](u32) {});
}

}  // namespace quern::gemm
