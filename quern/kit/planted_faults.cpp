// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"kit/reduce.cuh",
     "norm.rms_norm",
     "tokens=3 hidden=2056",
     {{"no barrier before the warps' sums are read", "  ptx::sync_block();\n  f32 sum", "  f32 sum", {"RACE", "UNINIT"}}}},
    {"kit/scan.cuh",
     "attention.paged",
     "variant=portable head_dim=64",
     {{"no barrier before the sums are read", "  ptx::sync_block();\n  u32 base", "  u32 base", {"RACE", "UNINIT"}},
      {"the next sums written while these are read", "  ptx::sync_block();\n  return", "  return", {"RACE"}}}},
    {"kit/copy_tile.cuh",
     "gemm.dense",
     "variant=portable m=17 n=128 k=1000",
     {{"rows past the end copied",
       "if (i * kRowsPerPass < self.rows_left) Unit::issue_unit(from, tile, self.to + further(self, i), kUnit)",
       "Unit::issue_unit(from, tile, self.to + further(self, i), kUnit)",
       {"GLOBAL-OOB"}},
      {"columns past the end copied", "min_of(kUnit, cols - self.col)", "min_of(kUnit, cols)", {"GLOBAL-OOB"}}}},
    {"kit/copy_tile.cuh",
     "gemm.dense",
     "variant=portable m=17 n=77 k=1000 a.transposed=1 a.pad=7 b.transposed=1 b.pad=3",
     {{"values of K past the end copied", "self.row + i * kRowsPerPass < ks ? self.left : 0", "self.left", {"GLOBAL-OOB"}},
      {"columns past the end copied", "max_of(0, min_of(kUnit, int(min_of<i64>(count, kMn)) - column))", "kUnit", {"GLOBAL-OOB"}},
      {"units of a pass in the places of another", "(self.to ^ Tile::exchange(i * kRowsPerPass))", "self.to", {kWrongResult}}}},
    {"kit/mma_tile.cuh",
     "gemm.dense",
     "variant=portable m=17 n=77 k=1000 a.transposed=1 a.pad=7",
     {{"fragments of the lines without the exchange",
       "tile + (self.first ^ (further - line))",
       "tile + (self.first + (further - line))",
       {kWrongResult}},
      {"values of K in pairs of two steps", "(2 * w + i) * Tile::kRowBytes", "(w + 4 * i) * Tile::kRowBytes", {kWrongResult}}}},
    {"kit/wgmma_ring.cuh",
     "gemm.dense",
     "variant=warp_specialised_sm90:128x96 m=130 n=136 k=1000 bias.present=1",
     {{"a stage released while it is read", "ptx::wgmma_wait<1>();", "", {"RACE"}},
      {"the wait leaves two products in flight", "ptx::wgmma_wait<1>();", "ptx::wgmma_wait<2>();", {"RACE"}},
      {"results read before the last wait", "ptx::wgmma_wait<0>();", "", {"WGMMA"}},
      {"no fence before the products", "ptx::wgmma_fence();", "", {"WGMMA"}},
      {"a stage read before it is full", "    begin_read(read);\n", "", {"RACE", "UNINIT"}}}},
    {"kit/wgmma_ring.cuh",
     "gemm.dense",
     "variant=swap_ab_sm90 m=5 n=136 k=2000 bias.present=1",
     {{"a stage read before it is full", "    begin_read(read);\n", "", {"RACE", "UNINIT"}},
      {"a stage released while it is read", "ptx::wgmma_wait<1>();", "ptx::wgmma_wait<2>();", {"RACE"}}},
     1},
    // Rows of every group
    {"kit/pipeline.cuh",
     "gemm.grouped_masked",
     "hopper=3 bits8=1 out_f32=0 k=1300 n=264 spread=0 a.pad=0 out.pad=0",
     {{"the next stage's answer from the current one", "first ? 0 : consumer.stage + 1", "consumer.stage", {"RACE", "UNINIT"}}},
     1},
    {"kit/copy_tile.cuh",
     "gemm.scaled",
     "variant=portable m=17 n=128 k=1001 a.pad=3",
     {{"bytes past the end loaded", "if (kWord * w + i < left) words", "words", {"GLOBAL-OOB", "UNINIT", kWrongResult}}}},
}};

static const Asan asan{{
    {"kit/copy_tile.cuh",
     "gemm.dense",
     "variant=portable m=17 n=128 k=1000",
     {{"columns past the end copied", "min_of(kUnit, cols - self.col)", "min_of(kUnit, cols)", {"GLOBAL-OOB"}}}},
}};

}  // namespace quern::planted
