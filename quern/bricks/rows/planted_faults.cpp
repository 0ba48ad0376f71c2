// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"bricks/rows/whole.cuh",
     "norm.layer_norm",
     "tokens=3 hidden=2056",
     {{"one slot for all reductions of a row", "reducer.turn ^= 1;", "reducer.turn = 1;", {"RACE"}},
      {"a unit stored past the row's end", "    if (column + a < columns) store_f32", "    store_f32", {"GLOBAL-OOB", "RACE"}}}},
    {"bricks/rows/whole.cuh",
     "norm.layer_norm",
     "tokens=17 hidden=96",
     {{"rows taken by two warps", "row += i64(gridDim.x) * kRows", "row += i64(gridDim.x)", {"RACE"}}}},
    {"bricks/rows/chunks.cuh",
     "activation.silu_and_mul",
     "tokens=3 intermediate=1000",
     {{"load past the row's end", "      if (first + a * kStep < columns) load(", "      load(", {"GLOBAL-OOB"}},
      {"a chunk taken twice", "at / chunks, first", "at / chunks / 2, first", {"RACE", kWrongResult}},
      {"stored past the row's end", "      if (first + a * kStep < columns) store(", "      store(", {"GLOBAL-OOB", "RACE", "UNINIT"}}}},
    {"bricks/rows/dots.cuh",
     "elementwise.diag_scale_backward",
     "tokens=3 hidden=96 ddiagonal.present=true dx.present=true",
     {{"threads without a chunk read", "end = mine ? columns : i64(0)", "end = columns", {"GLOBAL-OOB"}},
      {"every thread of a chunk writes its sum", "if (mine && lane == 0) sum(", "if (mine) sum(", {"RACE"}},
      {"a sum over too few lanes",
       "warp_sum<kDots.chunk_threads>(dot)",
       "warp_sum<max_of(1, kDots.chunk_threads / 2)>(dot)",
       {kWrongResult}}}},
    {"bricks/rows/dots.cuh",
     "elementwise.diag_scale_backward",
     "tokens=301 hidden=2056 ddiagonal.present=true dx.present=true",
     {{"one slot for neighbouring chunks", ", slot ^= 1) {", ") {", {"RACE"}}},
     1},
    {"bricks/rows/dots.cuh",
     "elementwise.diag_scale_backward",
     "tokens=3 hidden=20000 ddiagonal.present=true dx.present=true",
     {{"the second chunk is the first again", "begin = chunk * kColumns +", "begin = i64(0) * kColumns +", {"RACE", kWrongResult}}}},
}};

}  // namespace quern::planted
