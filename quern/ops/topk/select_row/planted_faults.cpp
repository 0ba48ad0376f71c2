// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"ops/topk/select_row/kernel.cuh",
     "topk.select",
     "rows=5 length=4099 k=33 sorted=false lengths.present=false x.dtype=f32",
     {{"a list's order is that of its indices", "list[i] = u32(list[i]);", ";", {kWrongResult}}}},
    {"ops/topk/select_row/kernel.cuh",
     "topk.select",
     "rows=5 length=4099 k=3000 lengths.present=false x.dtype=f32",
     {{"warps do not know what others keep", "i64 at = i64(ptx::shfl(u32(sums.before.low), 0));", "i64 at = 0;", {"RACE", kWrongResult}},
      {"equal values in descending order of their indices", "<< 32 | u32(index);", "<< 32 | ~u32(index);", {"GLOBAL-OOB", kWrongResult}}}},
    {"ops/topk/select_row/kernel.cuh",
     "topk.page_table_transform",
     "rows=5 length=4099 k=3000 lengths.present=false x.dtype=f32",
     {{"indices of other threads are read before they are written",
       "  sync_team<C.row>();\n  if (team.rank == 0)",
       "  if (team.rank == 0)",
       {"RACE", "UNINIT"}}}},
    {"ops/topk/select_row/kernel.cuh",
     "topk.page_table_transform",
     "length=513 k=33 lengths.present=false",
     {{"a row's tokens begin at the table's first column",
       "p.table + request * p.stride + first, ",
       "p.table + request * p.stride, ",
       {"GLOBAL-OOB", kWrongResult}},
      {"every row has the pages of the first request", "p.table + request * p.stride", "p.table", {kWrongResult}},
      {"every token has its page's first slot", " + (index - entry * p.page_size)", "", {kWrongResult}}}},
    {"ops/topk/select_row/kernel.cuh",
     "topk.page_table_transform",
     "length=513 k=33 beyond=1",
     {{"indices are not told behind the last", "indices[i] = index;", "indices[i] = out[i];", {"UNINIT", kWrongResult}},
      {"requests beyond the table are read", "request >= p.batch || ", "", {"GLOBAL-OOB"}},
      {"columns beyond the table are read", "  if (entry >= p.count) return -1;\n", "", {"GLOBAL-OOB", "FAULT"}}}},
    // Each row has a request of its own: rows that share one overwrite the pages without slots
    {"ops/topk/select_row/kernel.cuh",
     "topk.page_table_transform",
     "rows=23 length=513 k=33 beyond=1 page_size=64 row_to_batch.present=false",
     {{"a slot beyond i32 wraps", "place >= 0 && place <= 2147483647 ?", "place >= 0 ?", {kWrongResult}}}},
    {"ops/topk/select_row/kernel.cuh",
     "topk.ragged_transform",
     "length=513 k=33",
     {{"every row has the first one's offset", "ptx::ld_global<i32>(offsets + row)", "ptx::ld_global<i32>(offsets)", {kWrongResult}},
      {"what lies behind the last index is written",
       "i < n ? place_or_none(offset + out[i]) : -1",
       "place_or_none(offset + (i < n ? out[i] : -1))",
       {kWrongResult}}}},
}};

}  // namespace quern::planted
