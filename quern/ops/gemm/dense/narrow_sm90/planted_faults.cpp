// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"ops/gemm/dense/narrow_sm90/kernel.cuh",
     "gemm.dense",
     "variant=narrow_sm90 m=21 n=200 k=1984",
     {{"the first chunk of a by every chunk of b", "stage + L.a + chunk * C.tiles.tile_m * 128", "stage + L.a", {kWrongResult}}}},
    {"ops/gemm/dense/narrow_sm90/kernel.cuh",
     "gemm.dense",
     "variant=narrow_sm90 m=40 n=19008 k=64",
     {{"the first half of b for both", "first_column_of<C>(group) * 128", "0", {kWrongResult}}}},
}};

}  // namespace quern::planted
