// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Kernels that do not wait for the launch before theirs. Launches of a stream run one after the other on an emulated device, so results
// stay right.
#pragma once
#include "planted_faults.h"

namespace quern::planted {

inline const std::vector<FaultyCase>& pdl_faults() {
  static const std::vector<FaultyCase> all = {
      {"ops/norm/norm_row/kernel.cuh",
       "norm.rms_norm",
       "tokens=3 hidden=2056 pdl=true",
       {{"held rows are read before the wait",
         "  ptx::grid_dependency_wait();\n  HeldRow<C> held;\n  if (row < p.tokens) load_row<C>(p, row, lane, held);",
         "  HeldRow<C> held;\n  if (row < p.tokens) load_row<C>(p, row, lane, held);\n  ptx::grid_dependency_wait();",
         {"RACE"}}}},
      {"ops/rope/rotate/kernel.cuh",
       "rope.rope_inplace",
       "tokens=5 pdl=true",
       {{"no wait", "  ptx::grid_dependency_wait();\n", "", {"RACE"}}}},
      {"bricks/gemm/sm90/tiles.cuh",
       "gemm.dense",
       "variant=warp_specialised_sm90 m=130 n=136 k=200 pdl=true",
       {{"no wait", "  ptx::grid_dependency_wait();\n", "", {"RACE"}}}},
      {"bricks/gemm/sm90/swap_ab.cuh",
       "gemm.dense",
       "variant=swap_ab_sm90 m=17 n=136 k=200 pdl=true",
       {{"a is read before the wait",
         "  ptx::grid_dependency_wait();\n  QN_NO_UNROLL\n  for (int step = 0; step < ahead; ++step)\n    load_a",
         "  QN_NO_UNROLL\n  for (int step = 0; step < ahead; ++step)\n    load_a",
         {"RACE"}}}},
      {"ops/attention/paged/split_kv/kernel.cuh",
       "attention.paged",
       "variant=portable sizes=0 pdl=true",
       {{"no wait", "  ptx::grid_dependency_wait();\n", "", {"RACE"}}}},
  };
  return all;
}

}  // namespace quern::planted
