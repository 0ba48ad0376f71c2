// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"ops/gemm/dense/warp_specialised_sm90/kernel.cuh",
     "gemm.dense",
     "variant=warp_specialised_sm90:128x96 m=130 n=136 k=1000 bias.present=1",
     {{"a release that nobody makes", "C.block.tiles.alternate ? 4 : 8,", "C.block.tiles.alternate ? 5 : 9,", {"DEADLOCK"}},
      {"rows of the other half", "i32(first_row) + 64 * (first + m)", "i32(64 - first_row) + 64 * (first + m)", {kWrongResult}}}},
    {"ops/gemm/dense/warp_specialised_sm90/kernel.cuh",
     "gemm.dense",
     "variant=warp_specialised_sm90:128x128_turns m=300 n=176 k=704 b.transposed=1 c.present=1",
     {{"c of the second 64 rows never asked for", "        if (first + m > 0) start_c<C>(p, row, tile.column);\n", "", {"DEADLOCK"}},
      {"the first 64 rows stored twice", "sums[0][i] = sums[kM - 1][i]", "sums[0][i] = sums[0][i]", {kWrongResult}},
      {"c of the first 64 rows for all",
       "if (first + m > 0) start_c<C>(p, row, tile.column)",
       "if (first + m > 0) start_c<C>(p, row - 64, tile.column)",
       {kWrongResult}}},
     1},
    {"ops/gemm/dense/warp_specialised_sm90/kernel.cuh",
     "gemm.dense",
     "variant=warp_specialised_sm90:128x96 m=300 n=136 k=1000 c.present=1 out.in_place=1",
     {{"c asked for twice", "        started = true;\n", "", {"ASYNC", "MBARRIER", "RACE", "DEADLOCK"}},
      {"c of the other warpgroup's rows",
       "if (!started) start_c<C>(p, tile.row + i32(first_row), tile.column);",
       "if (!started) start_c<C>(p, tile.row, tile.column);",
       {kWrongResult, "RACE"}}},
     1},
    // Parts of K one after another, of which one is left out
    {"ops/gemm/dense/warp_specialised_sm90/kernel.cuh",
     "gemm.dense",
     "variant=warp_specialised_sm90:128x128 m=130 n=136 k=4160 batch_invariant=1",
     {{"a part of K not added", "total[m][i] = total[m][i] + sums[m][i]", "total[m][i] = sums[m][i]", {kWrongResult}}}},
    // Several tiles of 11 steps with 6 stages: the warpgroups take them in turn
    {"ops/gemm/dense/warp_specialised_sm90/kernel.cuh",
     "gemm.dense",
     "variant=warp_specialised_sm90:128x128_turns m=300 n=176 k=704 b.transposed=1",
     {{"no wait for the turn",
       "if (C.tiles.alternate && walk.index != blockIdx.x) ptx::bar_sync",
       "if (false) ptx::bar_sync",
       {"RACE", "UNINIT", "DEADLOCK"}},
      {"stages of the other's tile not passed over",
       "    if constexpr (C.tiles.alternate) skip_reads(read, steps);\n",
       "",
       {"RACE", "UNINIT", "DEADLOCK"}}},
     1},
    {"ops/gemm/dense/warp_specialised_sm90/kernel.cuh",
     "gemm.dense",
     "variant=warp_specialised_sm90:128x96 m=140 n=136 k=200",
     {{"its rows read where those of other tiles lie",
       "first_row + u32(rows_earlier_of_tile<C.tiles>(tile.row, p.m))",
       "first_row",
       {kWrongResult}}}},
}};

}  // namespace quern::planted
