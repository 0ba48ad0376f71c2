// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"ops/norm/norm_row_backward/kernel.cuh",
     "norm.rms_norm_backward",
     "tokens=700 hidden=2056",
     {{"both sums of a row in one place", "scratch + C.threads / 32);", "scratch);", {"RACE"}},
      {"a part stored past the row's end", "if (h < hidden) store_f32", "store_f32", {"GLOBAL-OOB", "RACE"}},
      {"dx stored into x",
       "static_cast<dtype_t<C.dtype>*>(p.dx) + row * p.dx_stride, h",
       "(dtype_t<C.dtype>*)p.x + row * p.x_stride, h",
       {"WRITE-TO-INPUT"}}}},
    {"ops/norm/norm_row_backward/kernel.cuh",
     "norm.rms_norm_backward",
     "tokens=17 hidden=96",
     {{"no barrier between the turns of the warps", "    ptx::sync_block();\n  }\n}", "  }\n}", {"RACE", "UNINIT"}},
      {"the first warp adds to what lay there", "if (w > 0) sums[i][j]", "sums[i][j]", {"UNINIT"}}}},
    {"ops/norm/norm_row_backward/kernel.cuh",
     "norm.rms_norm_backward",
     "tokens=3 hidden=20000",
     {{"a block's first row added to what lay there",
       "const bool first = row == i64(blockIdx.x);",
       "const bool first = false;",
       {"UNINIT"}}}},
    {"ops/norm/norm_row_backward/kernel.cuh",
     "norm.layer_norm_backward",
     "tokens=3 hidden=95 offset=100",
     {{"zeros past the row's end are centred", "d = h + j < p.hidden ? d - row.mean : f32(0.f);", "d = d - row.mean;", {kWrongResult}},
      {"the mean of g left out", "g = g - row.level;", "", {kWrongResult}},
      {"dbias in the place of dw",
       "part_of_block<C>(p) + p.dbias_part, p.hidden",
       "part_of_block<C>(p), p.hidden",
       {"UNINIT", kWrongResult}}}},
    {"ops/norm/norm_row_backward/kernel.cuh",
     "norm.fused_add_rms_norm_backward",
     "tokens=3 hidden=2056 dresidual.pad=8 dx.pad=0",
     {{"the residual's gradient read by dx's stride",
       "row * p.dresidual_stride, first_element",
       "row * p.dx_stride, first_element",
       {"GLOBAL-OOB", "UNINIT", kWrongResult}}}},
}};

static const Asan asan{{
    {"ops/norm/norm_row_backward/kernel.cuh",
     "norm.rms_norm_backward",
     "tokens=3 hidden=2056",
     {{"dw past those of the thread",
       "sums.dw[C.with_dw != 0 ? i : 0][j]",
       "sums.dw[C.with_dw != 0 ? i + 1 : 0][j]",
       {"INDEX-OOB", "LOCAL-OOB"}}}},
}};

}  // namespace quern::planted
