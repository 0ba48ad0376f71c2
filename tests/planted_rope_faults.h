// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Faults of the rope family.
#pragma once
#include "planted_faults.h"

namespace quern::planted {

inline const std::vector<FaultyCase>& rope_faults() {
  static const std::vector<FaultyCase> all = {
      {"ops/rope/rotate/angles.cuh",
       "rope.rope_inplace",
       "tokens=4",
       {{"no barrier before the turns are read", "    ptx::sync_block();\n  }\n}", "  }\n}", {"RACE", "UNINIT"}},
        {"the last pair's turns not staged", "i < kMaxPairs; i += kThreads", "i < p.half - 1; i += kThreads", {"UNINIT"}}}},
      {"ops/rope/rotate/angles.cuh",
       "rope.rope",
       "tokens=4 angles=2 beyond=1",
       {{"rows behind those of cos are read", "if (is_one(row)) {", "{", {"GLOBAL-OOB"}},
        {"sin of another row", "row * p.sin_row_stride, first", "row * p.cos_row_stride / 2, first", {"GLOBAL-OOB", kWrongResult}},
        {"a position that is none turns like the first", "if (!is_one(at)) r.sine[j] = nan, r.cosine[j] = nan;", "if (!is_one(at)) r.sine[j] = 0, r.cosine[j] = 1;", {kWrongResult}}}},
      {"ops/rope/rotate/angles.cuh",
       "rope.rope",
       "tokens=33 places=3",
       {{"the bisection goes one request too far", "high = p.batch;", "high = p.batch + 2;", {"GLOBAL-OOB", kWrongResult}},
        {"tokens of no request belong to the last one", "if (low == 0 || load_index<C.index_dtype>(p.positions, low) <= token) return 0;", "if (low == 0) return 0;", {kWrongResult}}}},
      {"ops/rope/rotate/angles.cuh",
       "rope.rope",
       "tokens=4 places=2",
       {{"width taken for height", "return s != 0 && pair < 3 * p.sections[s] ? s : 0;", "return s == 2 ? 1 : s;", {kWrongResult}},
        {"three positions a token read as if they were its neighbours", "s * p.position_stride + token", "3 * token + s + 0 * p.position_stride", {kWrongResult}}}},
      {"ops/rope/rotate/head.cuh",
       "rope.rope",
       "tokens=4 head_dim=80 rotary_dim=22",
       {{"lanes past the last pair load and store", "else return kN * lane + at % kN < half;", "else return kN * lane + at % kN < half + 40;", {"RACE", "GLOBAL-OOB", kWrongResult}},
        {"the rest past the head's end", "if (element < head_dim) f(", "f(", {"GLOBAL-OOB", "RACE"}}}},
      {"ops/rope/rotate/head.cuh",
       "rope.rope",
       "tokens=4 head_dim=576 rotary_dim=22",
       {{"units of the rest left out", "unit += C.lanes)", "unit += 1024)", {kWrongResult}}}},
      {"ops/rope/rotate/kernel.cuh",
       "rope.rope",
       "tokens=33",
       {{"heads of k counted from those of q", "token * p.k_token_stride + (head - p.heads_q)", "token * p.k_token_stride + head", {"GLOBAL-OOB", kWrongResult}},
        {"a part taken twice", "const i64 begin = i64(blockIdx.x) * kSlots", "const i64 begin = i64(blockIdx.x) / 2 * kSlots", {"RACE", kWrongResult}},
        {"stored into q", "static_cast<T*>(p.q_out) + token", "(T*)p.q + token", {"WRITE-TO-INPUT"}}}},
      {"ops/rope/rope_append_paged/kernel.cuh",
       "rope.rope_append_paged",
       "tokens=33 slots=1 norms=1 weight_bias=1 fp8=1 scales=2",
       {{"sums over heads of neighbours", "warp_sum<C.head.lanes>(squares)", "warp_sum<32>(squares)", {kWrongResult}},
        {"the bias of the weights left out", "(weight[j] + f32(p.weight_bias))", "weight[j]", {kWrongResult}},
        {"v by the scale of k", "at.is_v ? p.v_scale : p.k_scale;", "p.k_scale;", {kWrongResult}},
        {"all heads by the scale of the first", "ptx::ld_global<f32>(scales + at.number", "ptx::ld_global<f32>(scales + 0 * at.number", {kWrongResult}},
        {"a skipped token appended", "} else if (place.page >= 0) {", "} else {", {"GLOBAL-OOB"}},
        {"lanes past the last token store", "  if (!mine) return;\n", "", {"GLOBAL-OOB", "UNINIT", "RACE"}}}},
      {"ops/rope/rope_append_paged/kernel.cuh",
       "rope.rope_append_paged",
       "tokens=9 rotary_dim=22 head_dim=80 norms=1",
       {{"squares behind rotary_dim left out", "each_rest<C.head>(from, p.angles.half, p.head_dim, lane, held, [&](int, const", "each_rest<C.head>(from, p.angles.half, 0, lane, held, [&](int, const", {kWrongResult}},
        {"v rotated as k is", "if (at.is_v) append_as_it_is", "if (false) append_as_it_is", {kWrongResult}},
        {"the weight of q for k", "at.is_v ? nullptr : p.k_weight;", "at.is_v ? nullptr : p.q_weight;", {kWrongResult}},
        {"k appended to the cache of v", "return at.is_v ? static_cast<S*>(p.v_cache)", "return true ? static_cast<S*>(p.v_cache)", {"RACE", kWrongResult}}}},
      {"ops/rope/rope_quantise_fp8/kernel.cuh",
       "rope.rope_quantise_fp8",
       "tokens=5 heads_kv=2 scales=2 k_nope_dim=9 q_nope_dim=7",
       {{"times the scale", "fp8_inverse(ptx::ld_global<f32>(heads.scale))", "ptx::ld_global<f32>(heads.scale)", {kWrongResult}},
        {"what is not rotated stored past its end", "if (first + a * C.head.vector < heads.nope_dim) store_quantised", "store_quantised", {"GLOBAL-OOB", "RACE", "UNINIT"}},
        {"heads of k counted from those of q", "token, head - p.heads_q, lane", "token, head, lane", {"GLOBAL-OOB", "RACE", kWrongResult}}}},
      {"ops/rope/rope_quantise_fp8/kernel.cuh",
       "rope.rope_quantise_fp8",
       "tokens=3",
       {{"units of what is not rotated left out", "first += C.head.lanes * kUnit", "first += 32 * kUnit", {kWrongResult}}}},
  };
  return all;
}

}  // namespace quern::planted
