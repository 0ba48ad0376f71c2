// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Textual changes that break a kernel of an op or a brick of the kit, each with a case of the op on which asan must
// report it.
#pragma once
#include "planted_faults.h"

namespace quern::planted {

inline const std::vector<FaultyCase>& asan_faults() {
  static const std::vector<FaultyCase> all = {
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
      {"ops/norm/norm_row_backward/kernel.cuh",
       "norm.rms_norm_backward",
       "tokens=3 hidden=2056",
       {{"dw past those of the thread",
         "sums.dw[C.with_dw != 0 ? i : 0][j]",
         "sums.dw[C.with_dw != 0 ? i + 1 : 0][j]",
         {"INDEX-OOB", "LOCAL-OOB"}}}},
      {"ops/activation/activate_row/function.cuh",
       "activation.silu_and_mul",
       "tokens=3 intermediate=1000",
       {{"a value past the access's", "f32(0.f) : second[j];", "f32(0.f) : second[j + 1];", {"INDEX-OOB", "LOCAL-OOB"}}}},
      {"ops/rope/rotate/head.cuh",
       "rope.rope_inplace",
       "tokens=4",
       {{"a pair past the lane's", "f32(0.f) - b * r.sine[j]);", "f32(0.f) - b * r.sine[j + 1]);", {"INDEX-OOB", "LOCAL-OOB"}}}},
      {"ops/rope/rotate/angles.cuh",
       "rope.rope_inplace",
       "tokens=4",
       {{"turns behind the shared memory", "smem[first + j], turns", "smem[first + j + 10000], turns", {"SMEM-OOB"}}}},
      {"bricks/paged/place.cuh",
       "kv_cache.append_paged",
       "tokens=4 heads_kv=3",
       {{"position taken modulo a page size of 0", "= position / p.page_size;", "= position / (p.page_size / 0x10000);", {"UNDEFINED"}}}},
      {"ops/kv_cache/append_paged/kernel.cuh",
       "kv_cache.append_paged",
       "tokens=4 heads_kv=3",
       {{"rows stored into k", "(p.k_cache + to.page", "((char*)p.k + 0 * to.page", {"WRITE-TO-INPUT", "GLOBAL-OOB"}}}},
      {"bricks/gemm/mma/ring.cuh",
       "gemm.dense",
       "variant=portable m=17 n=128 k=1000",
       {{"a row of fragments past the warp's", "load(at.b[j], stage", "load(at.b[j + 1], stage", {"INDEX-OOB", "LOCAL-OOB"}},
        {"a stage past the ring",
         "S::CopyB::issue(b, smem + next_slot * L.stage",
         "S::CopyB::issue(b, smem + (next_slot + C.stages) * L.stage",
         {"SMEM-OOB"}},
        {"rows past m stored", "if (row < p.m) store_aligned<Out>", "store_aligned<Out>", {"GLOBAL-OOB"}}}},
      {"kit/copy_tile.cuh",
       "gemm.dense",
       "variant=portable m=17 n=128 k=1000",
       {{"columns past the end copied", "min_of(kUnit, cols - self.col)", "min_of(kUnit, cols)", {"GLOBAL-OOB"}}}},
      {"ops/attention/paged/split_kv/kernel.cuh",
       "attention.paged",
       "variant=portable head_dim=64",
       {{"a logit past the thread's", "(x[n][2 * r + 1], base)", "(x[n][2 * r + 4], base)", {"INDEX-OOB", "LOCAL-OOB"}}}},
      {"ops/attention/prefill/logits.cuh",
       "attention.ragged",
       "variant=portable batch=1 queries=20 keys=70 head_dim=64",
       {{"a logit past the thread's",
         "f32& value = x[m][n][2 * half + e];\n          value = ptx::exp2_approx",
         "f32& value = x[m][n][2 * half + e + 3];\n          value = ptx::exp2_approx",
         {"INDEX-OOB", "LOCAL-OOB"}}}},
  };
  return all;
}

}  // namespace quern::planted
