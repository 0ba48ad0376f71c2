// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"ops/norm/norm_row/kernel.cuh",
     "norm.rms_norm",
     "tokens=700 hidden=2056",
     {{"one scratch slot for neighbouring rows", "row += step, slot ^= 1", "row += step", {"RACE"}}}},
    {"ops/norm/norm_row/kernel.cuh",
     "norm.rms_norm",
     "tokens=17 hidden=96",
     {{"rows taken by two warps", "i64(gridDim.x) * kRows;", "i64(gridDim.x);", {"RACE"}}}},
    {"ops/norm/norm_row/unit.cuh",
     "norm.fused_add_rms_norm",
     "tokens=3 hidden=2056",
     {{"load past the row's end", "if (h + a * C.vector < hidden) unit.access", "unit.access", {"GLOBAL-OOB", "RACE"}},
      {"store past the row's end", "if (h + a * C.vector < hidden) store", "store", {"GLOBAL-OOB", "RACE"}}}},
    {"ops/norm/norm_row/kernel.cuh",
     "norm.fused_add_rms_norm",
     "tokens=3 hidden=2056",
     {{"sum stored into x",
       "static_cast<T*>(p.residual) + row * p.residual_stride, h, p.hidden, v",
       "(T*)p.x + row * p.x_stride, h, p.hidden, v",
       {"WRITE-TO-INPUT"}}}},
    {"ops/norm/norm_row/kernel.cuh",
     "norm.rms_norm",
     "tokens=3 hidden=2056 pdl=true",
     {{"held rows are read before the wait",
       "  ptx::grid_dependency_wait();\n  HeldRow<C> held;\n  if (row < p.tokens) load_row<C>(p, row, lane, held);",
       "  HeldRow<C> held;\n  if (row < p.tokens) load_row<C>(p, row, lane, held);\n  ptx::grid_dependency_wait();",
       {"RACE"}}}},
}};

static const Asan asan{{
    {"ops/norm/norm_row/kernel.cuh",
     "norm.fused_add_rms_norm",
     "tokens=3 hidden=2056",
     {{"a weight past those of the thread",
       "int j = 0; j < kUnit<C>; ++j) y[j] = v[j] * scale * weight[j]",
       "int j = 0; j < kUnit<C>; ++j) y[j] = v[j] * scale * weight[j + 1]",
       {"INDEX-OOB", "LOCAL-OOB"}},
      {"sum stored into x",
       "static_cast<T*>(p.residual) + row * p.residual_stride, h, p.hidden, v",
       "(T*)p.x + row * p.x_stride, h, p.hidden, v",
       {"WRITE-TO-INPUT"}}}},
    {"ops/norm/norm_row/unit.cuh",
     "norm.fused_add_rms_norm",
     "tokens=3 hidden=2056",
     {{"load past the row's end", "if (h + a * C.vector < hidden) unit.access", "unit.access", {"GLOBAL-OOB"}}}},
}};

}  // namespace quern::planted
