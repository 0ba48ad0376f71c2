// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"ops/rope/rope_append_paged/kernel.cuh",
     "rope.rope_append_paged",
     "tokens=33 slots=1 norms=1 weight_bias=1 fp8=1 scales=2",
     {{"sums over heads of neighbours", "warp_sum<C.head.lanes>(squares)", "warp_sum<32>(squares)", {kWrongResult}},
      {"the bias of the weights left out", "(weight[j] + f32(p.weight_bias))", "weight[j]", {kWrongResult}},
      {"v by the scale of k", "at.is_v ? p.v_scale : p.k_scale;", "p.k_scale;", {kWrongResult}},
      {"all heads by the scale of the first",
       "ptx::ld_global<f32>(scales + at.number",
       "ptx::ld_global<f32>(scales + 0 * at.number",
       {kWrongResult}},
      {"a skipped token appended", "} else if (place.page >= 0) {", "} else {", {"GLOBAL-OOB"}},
      {"lanes past the last token store", "  if (!mine) return;\n", "", {"GLOBAL-OOB", "UNINIT", "RACE"}}}},
    {"ops/rope/rope_append_paged/kernel.cuh",
     "rope.rope_append_paged",
     "tokens=9 rotary_dim=22 head_dim=80 norms=1",
     {{"squares behind rotary_dim left out",
       "each_rest<C.head>(from, p.angles.half, p.head_dim, lane, held, [&](int, const",
       "each_rest<C.head>(from, p.angles.half, 0, lane, held, [&](int, const",
       {kWrongResult}},
      {"v rotated as k is", "if (at.is_v) append_as_it_is", "if (false) append_as_it_is", {kWrongResult}},
      {"the weight of q for k", "at.is_v ? nullptr : p.k_weight;", "at.is_v ? nullptr : p.q_weight;", {kWrongResult}},
      {"k appended to the cache of v",
       "return at.is_v ? static_cast<S*>(p.v_cache)",
       "return true ? static_cast<S*>(p.v_cache)",
       {"RACE", kWrongResult}}}},
}};

}  // namespace quern::planted
