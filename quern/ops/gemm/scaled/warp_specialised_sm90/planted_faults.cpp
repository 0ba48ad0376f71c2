// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    // More tiles than a block keeps scales of
    {"ops/gemm/scaled/warp_specialised_sm90/kernel.cuh",
     "gemm.scaled",
     "variant=warp_specialised_sm90:128x128 m=600 n=136 k=129 recipe=2",
     {{"a tile scaled before its scales have come", "      begin_read(scales);\n      QN_UNROLL", "      QN_UNROLL", {"RACE", "UNINIT"}},
      {"the scales of a tile never released",
       "total[half]);\n      end_read(scales);\n",
       "total[half]);\n      skip_read(scales);\n",
       {"DEADLOCK"}},
      {"the scales of one tile for all",
       "total[half]);\n      end_read(scales);\n",
       "total[half]);\n      release(scales, scales.stage);\n",
       {"RACE", "DEADLOCK"}}},
     1},
    // Pairs of tiles, of which the last has one with rows alone; a block makes several
    {"ops/gemm/scaled/warp_specialised_sm90/kernel.cuh",
     "gemm.scaled",
     "variant=warp_specialised_sm90:128x192_pair m=300 n=5640 k=200 recipe=2",
     {{"the scales of a tile without rows not passed over",
       "        begin_read(scales);\n        end_read(scales);\n",
       "",
       {"DEADLOCK", "RACE", kWrongResult}}},
     6},
    // A tile of 256 rows, 140 of which exist
    {"ops/gemm/scaled/warp_specialised_sm90/kernel.cuh",
     "gemm.scaled",
     "variant=warp_specialised_sm90 m=140 n=12680 k=300 recipe=2",
     {{"the first half's scales for both",
       "first_row + 64 * half, total[half]);\n      end_read",
       "first_row, total[half]);\n      end_read",
       {kWrongResult}}},
     8},
    {"ops/gemm/scaled/warp_specialised_sm90/kernel.cuh",
     "gemm.scaled",
     "variant=warp_specialised_sm90 m=140 n=136 k=200 recipe=0",
     {{"rows of the last tile with 8 bits read where those of other tiles lie",
       "rows_earlier_of_tile<C.block.tiles>(tile.row, p.gemm.m)",
       "0",
       {kWrongResult}}}},
}};

}  // namespace quern::planted
