// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"ops/gemm/k_grouped/spans.cuh",
     "gemm.k_grouped",
     "variant=portable m=20 n=24 k=1000 groups=37 bits8=1 sizes=0 spread=3 poison=1",
     {{"bounds inside a group of scales", "bound >= p.k ? p.k : bound - bound % p.unit", "bound", {"MISALIGNED", kWrongResult}},
      {"a bound below an earlier one", "max_of(before, warp_prefix_max(own))", "own", {"GLOBAL-OOB", kWrongResult}},
      {"every group as if it were the first", "if (lane == 0) begin = before;", "begin = 0;", {kWrongResult}}}},
    {"ops/gemm/k_grouped/spans.cuh",
     "gemm.k_grouped",
     "bits8=0 a.transposed=1 b.transposed=0 m=130 n=136 k=400 groups=3 sizes=1 spread=0 poison=1 a.pad=0 out.pad=0 c.pad=0 hopper=1",
     {{"a map that ends where all columns end",
       "if (x.major == Major::k) ptx::tensormap_replace_extent<0>(map, u32(columns));\n    else ptx::",
       "if (x.major == Major::k) ptx::tensormap_replace_extent<0>(map, u32(columns));\n    if (false) ptx::",
       {"GLOBAL-OOB"}},
      {"a map that begins where all columns begin", "x.data) + begin * x.column_bytes", "x.data)", {kWrongResult}},
      {"the map of a under the map of b", "make_map(p.b, maps + 1, mine", "make_map(p.a, maps + 1, mine", {"DEADLOCK"}}},
     1},
    {"ops/gemm/k_grouped/spans.cuh",
     "gemm.k_grouped",
     "packed=1 bits8=1 m=130 n=136 k=400 groups=3 sizes=1 spread=0 poison=1 a.pad=0 out.pad=0 c.pad=0 hopper=1",
     {{"rows as long as those of all columns", "if (x.packed) ptx", "if (false) ptx", {"GLOBAL-OOB"}}},
     1},
    {"ops/gemm/k_grouped/spans.cuh",
     "gemm.k_grouped",
     "variant=portable m=20 n=24 k=1000 groups=3 bits8=0 a.transposed=1 b.transposed=1 sizes=1 alignment=1 spread=3 poison=1",
     {{"entries not cut",
       "return min_of(max_of(ptx::ld_global<i32>(static_cast<const i32*>(p.given) + index), 0), p.k);",
       "return ptx::ld_global<i32>(static_cast<const i32*>(p.given) + index);",
       {kWrongResult}}}},
}};

}  // namespace quern::planted
