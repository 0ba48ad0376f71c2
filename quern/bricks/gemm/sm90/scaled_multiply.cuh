// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Two-level sums of 8-bit operands: the tensor cores sum a stage of 128 columns of K, whose products a thread then scales and
// adds to sums of its own. The tensor cores keep about 14 bits of a sum of e4m3 (docs/emulator.md), so longer runs lose more.
//
// Of all walks over `steps` stages: products(stage, sums) issues the instructions of one, the first of which does not add, load(stage)
// gives a thread's scales of it, and add(scales, sums) adds its products to the thread's sums.
#pragma once
#include "quern/kit/kit.cuh"
#include "quern/kit/wgmma_ring.cuh"

namespace quern::gemm {

/// How far it is in a ring of stages of `bytes` each from a place in `stage` to the same place in the next one.
template <int stages>
QN_DEVICE u32 to_next_stage(u32 stage, u32 bytes) {
  return bytes * (stage + 1 == u32(stages) ? 1 - u32(stages) : 1);
}

/// Where the operands of a stage lie: the low words of their descriptors. They are carried from stage to stage. Otherwise ptxas makes what
/// does not change in the loop again for every stage, and what a warp does between a wait and its products is a part of each stage's time
/// (to make the row of a thread, for whose scales the products wait, took 3 to 7 % of the kernel for many rows).
struct StageOperands {
  u32 rows, columns;
};
QN_DEVICE StageOperands stage_operands(u32 rows, u32 columns) {
  return {u32(k_major_descriptor(rows, Swizzle::b128).bits), u32(k_major_descriptor(columns, Swizzle::b128).bits)};
}
/// On to those of the stage behind `stage`, of kBytes each.
template <int stages, int kBytes>
QN_DEVICE void next_operands(StageOperands& o, u32 stage) {
  const u32 step = to_next_stage<stages>(stage, u32(kBytes / 16));
  o.rows += step, o.columns += step;
}
/// sums = their products, of the 64 rows from `row` on.
template <class Rows, class Columns, int count>
QN_DEVICE void multiply_rows(const StageOperands& o, u32 row, f32 (&sums)[count]) {
  constexpr u64 kForm = k_major_descriptor(0, Swizzle::b128).bits >> 32 << 32;
  QN_UNROLL
  for (u32 k = 0; k < 4; ++k)
    ptx::wgmma<Rows, Columns>(sums, MatrixDescriptor{kForm | (o.rows + row * (128 / 16) + 2 * k)},
                              MatrixDescriptor{kForm | (o.columns + 2 * k)}, k > 0);
}
/// The same of the first ones; then on.
template <class Rows, class Columns, int stages, int kBytes, int count>
QN_DEVICE void multiply_operands(StageOperands& o, u32 stage, f32 (&sums)[count]) {
  multiply_rows<Rows, Columns>(o, 0, sums);
  next_operands<stages, kBytes>(o, stage);
}

/// Where a thread's scales of a stage lie: bytes from the first stage's first scale to this stage's first (and, `columns`, to that of a
/// warpgroup's first column instead of the tile's), and to that of the thread's first row. They go from stage to stage, as operands do.
struct StageScales {
  u32 first, own;
};
QN_DEVICE StageScales stage_scales(u32 stage, u32 bytes, u32 row_of_thread, u32 columns = 0) {
  return {stage * bytes + columns, stage * bytes + row_of_thread};
}
/// On to those of the stage behind `stage`.
template <int stages>
QN_DEVICE void next_stage(StageScales& s, u32 stage, u32 bytes) {
  const u32 step = to_next_stage<stages>(stage, bytes);
  s.first += step, s.own += step;
}

/// What load() gives where stages have no scales of their own.
struct Unscaled {};

/// `batch` stages: their products one behind the other, then their sums scaled, in order.
template <int batch, int count, int stages, int blocks, class Products, class Load, class Add>
QN_DEVICE void multiply_batch(Consumer<stages, blocks>& read, const Products& products, const Load& load, const Add& add) {
  f32 sums[batch][count];
  zero(sums);
  Consumer<stages, blocks> ahead = read;
  u32 index[batch];
  QN_UNROLL
  for (int i = 0; i < batch; ++i) {
    begin_read(ahead);
    index[i] = ahead.stage;
    skip_read(ahead);
  }
  hold(sums);
  ptx::wgmma_fence();
  QN_UNROLL
  for (int i = 0; i < batch; ++i) products(index[i], sums[i]);
  ptx::wgmma_commit();
  hold(sums);
  decltype(load(0u)) scales[batch];
  QN_UNROLL
  for (int i = 0; i < batch; ++i) scales[i] = load(index[i]);
  ptx::wgmma_wait<0>();
  hold(sums);
  QN_UNROLL
  for (int i = 0; i < batch; ++i) end_read(read);
  QN_UNROLL
  for (int i = 0; i < batch; ++i) add(scales[i], sums[i]);
}
template <int batch, int count, int stages, int blocks, class Products, class Load, class Add>
QN_DEVICE void multiply_stages_in_batches(Consumer<stages, blocks>& read, int steps, const Products& products, const Load& load,
                                          const Add& add) {
  int step = 0;
  QN_NO_UNROLL
  for (; step + batch <= steps; step += batch) multiply_batch<batch, count>(read, products, load, add);
  QN_NO_UNROLL
  for (; step < steps; ++step) multiply_batch<1, count>(read, products, load, add);
}

/// `batch` stages in order, straight-line code: the products of the next one are issued before the sums of one are scaled. `first`: its
/// scales are loaded ahead of its products, not behind them.
template <int batch, bool late, bool first, int count, int stages, int blocks, class Products, class Load, class Add>
QN_DEVICE void multiply_batch_ahead(Consumer<stages, blocks>& read, const Products& products, const Load& load, const Add& add) {
  constexpr int kSets = batch > 1 ? 2 : 1;
  f32 sums[kSets][count];
  zero(sums);
  decltype(load(0u)) scales[kSets];
  Consumer<stages, blocks> ahead = read;
  const auto issue = [&](int set) {
    begin_read(ahead);
    // Where another stage is in flight they are better late (7168 x 16384: 752 us and 778), but of narrow tiles ptxas puts what waits for
    // them between the first product and the second (README)
    if (first || batch == 1) scales[set] = load(ahead.stage);
    hold(sums[set]);
    ptx::wgmma_fence();
    products(ahead.stage, sums[set]);
    ptx::wgmma_commit();
    hold(sums[set]);
    skip_read(ahead);
  };
  issue(0);
  QN_UNROLL
  for (int i = 0; i < batch; ++i) {
    if (i + 1 < batch) issue((i + 1) % kSets);
    if (!first && batch > 1) scales[i % kSets] = load(read.stage);
    if (i + 1 < batch) ptx::wgmma_wait<1>();
    else ptx::wgmma_wait<0>();
    hold(sums[i % kSets]);
    if constexpr (!late) end_read(read);
    add(scales[i % kSets], sums[i % kSets]);
    if constexpr (late) end_read(read);
  }
}
/// add() may (`late`) still read the stage. There are two sets of sums, and the tensor cores go on while one is scaled;
/// a batch ends with none in flight, as ptxas serialises wgmma (C7510) where sums in flight are those of another iteration.
template <int batch, bool late, bool first, int count, int stages, int blocks, class Products, class Load, class Add>
QN_DEVICE void multiply_stages_ahead(Consumer<stages, blocks>& read, int steps, const Products& products, const Load& load,
                                     const Add& add) {
  int step = 0;
  QN_NO_UNROLL
  for (; step + batch <= steps; step += batch) multiply_batch_ahead<batch, late, first, count>(read, products, load, add);
  QN_NO_UNROLL
  for (; step < steps; ++step) multiply_batch_ahead<1, late, first, count>(read, products, load, add);
}

/// One stage with one set of sums; the other warpgroup's products are in the tensor cores while it is scaled.
template <bool late, int count, int stages, int blocks, class Products, class Load, class Add>
QN_DEVICE void multiply_in_turn(Consumer<stages, blocks>& read, f32 (&sums)[count], const Products& products, const Load& load,
                                const Add& add) {
  begin_read(read);
  const auto scales = load(read.stage);  // ahead of the products: behind them the last one waits for the load (8192^3: 880 us and 850)
  hold(sums);
  ptx::wgmma_fence();
  products(read.stage, sums);
  ptx::wgmma_commit();
  hold(sums);
  ptx::wgmma_wait<0>();
  hold(sums);
  if constexpr (!late) end_read(read);
  add(scales, sums);
  if constexpr (late) end_read(read);
}
template <bool late, int count, int stages, int blocks, class Products, class Load, class Add>
QN_DEVICE void multiply_stages_in_turn(Consumer<stages, blocks>& read, int steps, const Products& products, const Load& load,
                                       const Add& add) {
  f32 sums[count];
  zero(sums);
  QN_NO_UNROLL
  for (int step = 0; step < steps; ++step) multiply_in_turn<late>(read, sums, products, load, add);
}

/// The same in rounds of the ring. Each stage of the ring has code of its own, in which its number is a constant. Steps before the ring's
/// first stage share one more copy of the code; so do all steps where they are not `unrolled`.
/// load(stage, scales) loads the scales that come with a stage. load_ahead(scales) loads those that do not, stage after stage: while the
/// sums of one stage are scaled, it loads for the next one, and the barrier of the next one is asked. It is called once more behind the
/// last stage, because ptxas would make other code of a test whether there is a next one. All this saves 20 instructions between a warp's
/// products and the next ones.
template <int count, class Scales, bool unrolled = true, int stages, int blocks, class Products, class LoadAhead, class Load, class Add>
QN_DEVICE void multiply_rounds(Consumer<stages, blocks>& read, int steps, const Products& products, const LoadAhead& load_ahead,
                               const Load& load, const Add& add) {
  f32 sums[count];
  zero(sums);
  Scales scales{};
  QN_NO_UNROLL
  for (; (!unrolled || read.stage != 0) && steps > 0; --steps)
    multiply_in_turn<false>(
        read, sums, products,
        [&](u32 stage) {
          load_ahead(scales);
          load(stage, scales);
          return scales;
        },
        add);
  if (!unrolled || steps <= 0) return;
  begin_read(read);
  load_ahead(scales);
  QN_NO_UNROLL
  for (;; read.parity ^= 1) {
    QN_UNROLL
    for (u32 stage = 0; stage < u32(stages); ++stage) {
      Consumer<stages, blocks> at{read.barriers, stage, read.parity};
      load(stage, scales);
      hold(sums);
      ptx::wgmma_fence();
      products(stage, sums);
      ptx::wgmma_commit();
      hold(sums);
      ptx::wgmma_wait<0>();
      hold(sums);
      release(at, stage);
      const bool more = --steps > 0;
      Scales next = scales;
      load_ahead(next);
      const bool full = more && next_is_full(at);
      add(scales, sums);
      skip_read(at);
      if (!full) {
        if (!more) {
          read = at;
          return;
        }
        begin_read(at);
      }
      scales = next;
    }
  }
}

/// The same of 128 rows, first one half of 64 and then the other, through at least one step. products(stage, half, sums) and add(scales,
/// sums, half) are of one half. There is one set of sums: while a warp scales them, the tensor cores have the other warpgroup's products.
/// While the tensor cores have the products of the second half, the warp waits for the next stage, and load(stage, scales) loads its
/// scales. So nothing lies between the last sum scaled and the next product (2 to 3 % of the kernel).
template <int count, class Scales, int stages, int blocks, class Products, class Load, class Add>
QN_DEVICE void multiply_rounds_of_halves(Consumer<stages, blocks>& read, int steps, const Products& products, const Load& load,
                                         const Add& add) {
  static_assert(stages > 1, "the next stage is waited for before this one is released");
  f32 sums[count];
  zero(sums);
  begin_read(read);
  Scales next{};
  load(read.stage, next);
  const auto step = [&](Consumer<stages, blocks>& at) {  // goes on to the next stage; false behind the last one
    const u32 current = at.stage;
    const Scales scales = next;
    const bool more = --steps > 0;
    QN_UNROLL
    for (u32 half = 0; half < 2; ++half) {
      hold(sums);
      ptx::wgmma_fence();
      products(current, half, sums);
      ptx::wgmma_commit();
      hold(sums);
      if (half == 1) {
        skip_read(at);
        if (more) {
          begin_read(at);
          load(at.stage, next);
        }
      }
      ptx::wgmma_wait<0>();
      hold(sums);
      if (half == 1) release(at, current);
      add(scales, sums, half);
    }
    return more;
  };
  QN_NO_UNROLL
  while (read.stage != 0)
    if (!step(read)) return;
  QN_NO_UNROLL
  for (;; read.parity ^= 1) {
    QN_UNROLL
    for (u32 stage = 0; stage < u32(stages); ++stage) {
      Consumer<stages, blocks> at{read.barriers, stage, read.parity};
      if (step(at)) continue;
      read = at;
      return;
    }
  }
}

}  // namespace quern::gemm
