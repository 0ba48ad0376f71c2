// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"ops/gemm/grouped/swap_ab_sm90/kernel.cuh",
     "gemm.grouped_masked",
     "variant=swap_ab_sm90 max_m=20 groups=5 n=136 k=200 bits8=0 spread=0 a.pad=0 out.pad=0 hopper=1",
     {{"sums not handed to TMA", "    ptx::fence_proxy_async_shared();  // TMA", "    // TMA", {"PROXY"}},
      {"the next tile loaded over sums that are still read",
       "TMA writes over the sums next\n    ptx::sync_block();",
       "TMA writes over the sums next",
       {"RACE"}},
      {"a of another group", "part.row, matrix_of(p, tile));", "part.row, 0);", {kWrongResult}}},
     1},
    {"ops/gemm/grouped/swap_ab_sm90/scaled_kernel.cuh",
     "gemm.grouped_masked",
     "variant=swap_ab_sm90 max_m=20 groups=5 n=136 k=400 bits8=1 spread=0 a.pad=0 out.pad=0 hopper=1",
     {{"one arrival a warp counted",
       "kScaleFills<S>, u32(S.warps)",
       "u32(S.warps), u32(S.warps)",
       {"RACE", "UNINIT", "DEADLOCK", "MBARRIER"}},
      {"scales of the first group for all",
       "scales_of_group(p, tile), part.row",
       "scales_of_group(p, GroupedTile{}), part.row",
       {"GLOBAL-OOB"}}},
     1},
}};

}  // namespace quern::planted
