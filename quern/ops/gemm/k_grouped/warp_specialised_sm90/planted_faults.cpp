// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"ops/gemm/k_grouped/warp_specialised_sm90/tiles.cuh",
     "gemm.k_grouped",
     "bits8=0 a.transposed=1 b.transposed=1 m=130 n=136 k=400 groups=3 sizes=1 spread=0 poison=1 a.pad=0 out.pad=0 c.pad=0 hopper=1",
     {{"maps of the first group for all",
       "static_cast<const TensorMap*>(p.maps) + 2 * i64(tile.group)",
       "static_cast<const TensorMap*>(p.maps)",
       {kWrongResult}}},
     1},
    {"ops/gemm/k_grouped/warp_specialised_sm90/scaled_kernel.cuh",
     "gemm.k_grouped",
     "bits8=1 m=130 n=136 k=400 groups=3 sizes=1 spread=0 poison=1 a.pad=0 out.pad=0 c.pad=0 hopper=1",
     {{"scales of b from the first column on",
       "static_cast<const f32*>(p.scales_b.data) + first * p.scales_b.column_stride",
       "static_cast<const f32*>(p.scales_b.data)",
       {kWrongResult}}},
     1},
}};

}  // namespace quern::planted
