// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"ops/gemm/scaled/swap_ab_sm90/kernel.cuh",
     "gemm.scaled",
     "variant=swap_ab_sm90 m=17 n=136 k=2600 recipe=2",
     {{"a part scaled before its scales have come",
       "  begin_read(Consumer<scale_stages(C).stages>{smem + u32(scale_stages(C).barriers)});\n",
       "",
       {"RACE", "UNINIT"}},
      {"the scales of all of K left out",
       "if constexpr (C.product.of_all_k) scale_part<C.product>",
       "if constexpr (false) scale_part<C.product>",
       {kWrongResult}}}},
}};

}  // namespace quern::planted
