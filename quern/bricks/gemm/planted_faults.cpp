// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    // Nine tiles along m: a group of eight and one of one
    {"bricks/gemm/tile_order.cuh",
     "gemm.dense",
     "variant=warp_specialised_sm90 m=1100 n=300 k=64",
     {{"tiles of the next group as of this one", "  ++walk.group;\n", "", {"RACE", kWrongResult}},
      {"the last group as if it were whole", "if (rows >> group_log2 != 0)", "if (rows > 0)", {kWrongResult}}},
     1},
    // Two groups, of 32 tiles above each other and of one, eight tiles at a time
    {"bricks/gemm/tile_order.cuh",
     "gemm.dense",
     "variant=warp_specialised_sm90 m=4097 n=1536 k=64",
     {{"groups of eight in a walk of others",
       "const u32 group_tiles = walk.tiles_n << walk.group_log2;",
       "const u32 group_tiles = walk.tiles_n << 3;",
       {"RACE", kWrongResult}}},
     8},
    // Forty tiles above each other, sixteen at a time
    {"bricks/gemm/tile_order.cuh",
     "gemm.dense",
     "variant=warp_specialised_sm90:128x96 m=5000 n=128 k=64",
     {{"groups that a step passes over left out", "  walk.group += walk.step_groups;\n", "", {"RACE", kWrongResult}}},
     16},
    {"bricks/gemm/store.cuh",
     "gemm.dense",
     "variant=portable m=17 n=77 k=600 bias.present=1",
     {{"bias read past its end", "if (i < count) load_f32", "load_f32", {"GLOBAL-OOB"}}}},
    {"bricks/gemm/store.cuh",
     "gemm.dense",
     "variant=portable m=17 n=77 k=600 c.present=1 activation=gelu",
     {{"the first row of c added to all", "row * c.stride + column", "column", {kWrongResult}},
      {"no activation", "activated<Activation(kActivation)>(values[i])", "values[i]", {kWrongResult}}}},
}};

}  // namespace quern::planted
