// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"bricks/gemm/mma/ring.cuh",
     "gemm.dense",
     "variant=portable m=17 n=128 k=1000",
     {{"no wait for the copies", "ptx::cp_async_wait<kAhead - 1>();", "", {"RACE"}},
      {"the wait leaves a tile in flight", "cp_async_wait<kAhead - 1>", "cp_async_wait<kAhead>", {"RACE"}},
      {"copies never committed", "ptx::cp_async_commit();  //", "//", {"RACE"}},
      {"no barrier of the ring", "ptx::sync_block();\n    }\n    if (next", "}\n    if (next", {"RACE", "UNINIT"}},
      {"the next stage multiplied",
       "multiply_stage<C>(smem + slot * L.stage",
       "multiply_stage<C>(smem + (slot + 1) % C.stages * L.stage",
       {"RACE", "UNINIT"}},
      {"rows past m not zeroed", "S::CopyA::zero_rows(a, smem + slot * L.stage + L.a);", "", {"UNINIT"}},
      {"rows past m stored", "if (row < p.m) store_aligned<Out>", "store_aligned<Out>", {"GLOBAL-OOB"}}}},
    {"bricks/gemm/mma/ring.cuh",
     "gemm.dense",
     "variant=portable m=17 n=77 k=1000 a.transposed=1 a.pad=7 b.transposed=1 b.pad=3",
     {{"columns in the other order", "kPairs ? 2 * j + 1 : j + kN", "kPairs ? 2 * j + 1 : 2 * kN - 1 - j", {kWrongResult}},
      {"rows of a K-major a", "kRowStep = C.a_major == Major::k ? 8 : 1", "kRowStep = 8", {"RACE"}}}},
    {"bricks/gemm/mma/ring.cuh",
     "gemm.dense",
     "variant=portable m=17 n=77 k=600 bias.present=1",
     {{"results staged in a ring that is still read", "ptx::sync_block();  // nobody", "// nobody", {"RACE"}}}},
    {"bricks/gemm/mma/ring.cuh",
     "gemm.dense",
     "variant=portable m=1 n=128 k=4104",
     {{"partial sums of a split not written",
       "if (row < p.m) store_aligned<f32>",
       "if (row < p.m && blockIdx.y != 1) store_aligned<f32>",
       {"UNINIT"}},
      {"partial sums of all splits in one place", "i64(blockIdx.y) * p.m", "0 * p.m", {"RACE", "UNINIT"}}}},
    {"bricks/gemm/mma/scaled_ring.cuh",
     "gemm.scaled",
     "variant=portable m=17 n=128 k=1000 recipe=1",
     {{"no wait for the copies", "ptx::cp_async_wait<kAhead - 1>();", "", {"RACE"}},
      {"no barrier of the ring", "ptx::sync_block();\n    }\n    if (next", "}\n    if (next", {"RACE", "UNINIT"}},
      {"scales of rows past m not zeroed", "ScaleCopy<C>::zero_rows(scales, stage + L.scales);", "", {"UNINIT"}},
      {"scales of rows past m copied", "entry < kRows && row < (of_a ? p.m : p.n)", "entry < kRows", {"GLOBAL-OOB"}},
      {"scales of the group before", "+ group * self.step[i]", "+ (group > 0 ? group - 1 : 0) * self.step[i]", {kWrongResult}},
      {"a group summed onto the one before", "      sum = 0.f;\n", "", {kWrongResult}},
      {"rows past m stored", "if (row >= p.m) continue;", "", {"GLOBAL-OOB"}}}},
    // A block of rows of b for each scale
    {"bricks/gemm/mma/scaled_ring.cuh",
     "gemm.scaled",
     "variant=portable m=17 n=264 k=300 recipe=0",
     {{"a scale of b for each row", "(row >> row_shift)", "row", {"GLOBAL-OOB"}}}},
}};

static const Asan asan{{
    {"bricks/gemm/mma/ring.cuh",
     "gemm.dense",
     "variant=portable m=17 n=128 k=1000",
     {{"a row of fragments past the warp's", "load(at.b[j], stage", "load(at.b[j + 1], stage", {"INDEX-OOB", "LOCAL-OOB"}},
      {"a stage past the ring",
       "S::CopyB::issue(b, smem + next_slot * L.stage",
       "S::CopyB::issue(b, smem + (next_slot + C.stages) * L.stage",
       {"SMEM-OOB"}},
      {"rows past m stored", "if (row < p.m) store_aligned<Out>", "store_aligned<Out>", {"GLOBAL-OOB"}}}},
}};

}  // namespace quern::planted
