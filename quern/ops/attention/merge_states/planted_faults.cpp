// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"ops/attention/merge_states/kernel.cuh",
     "attention.merge_states",
     "empty=1 other=1 mask.present=1",
     {{"v of empty parts read", "      if (lse == negative_infinity()) continue;\n", "", {kWrongResult}},
      {"the mask ignored", "p.mask_stride) == 0) continue;", "p.mask_stride) == 256) continue;", {kWrongResult}},
      {"v_other left out", "p.parts + (p.v_other != nullptr ? 1 : 0)", "p.parts", {kWrongResult}},
      {"a row past the last", "index < p.rows;", "index < p.rows + 1;", {"GLOBAL-OOB"}},
      {"a head's parts in the place of its neighbour's", "row.head * p.lse_strides[2]", "0 * p.lse_strides[2]", {kWrongResult}}}},
    {"ops/attention/merge_states/kernel.cuh",
     "attention.merge_states",
     "tokens=3 other=1 out_lse.in_place=1 head_dim=512",
     {{"out_lse over lse_other before the other lanes have read it", "  ptx::sync_warp();  // out_lse", "  // out_lse", {"RACE"}}}},
}};

}  // namespace quern::planted
