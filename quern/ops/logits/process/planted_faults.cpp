// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"ops/logits/process/kernel.cuh",
     "logits.process",
     "vocab=4099 state=4 bias_form=3 logits.dtype=f32",
     {{"no barrier before the lists are walked over",
       "  ptx::sync_block();\n  if constexpr (C.state == TokenState::lists) {\n    if (p.prompt_tokens)",
       "  if constexpr (C.state == TokenState::lists) {\n    if (p.prompt_tokens)",
       {"RACE", "UNINIT"}},
      {"no barrier before what was gathered is read", "u32(i) + 1); });\n  ptx::sync_block();", "u32(i) + 1); });", {"RACE"}},
      {"tokens of a list are counted without atomics", "ptx::atomic_add(g.counts + at, 1u);", "++g.counts[at];", {"RACE", kWrongResult}},
      {"any of several biases of a token counts",
       "ptx::atomic_max(g.bias + at, u32(i) + 1);",
       "g.bias[at] = u32(i) + 1;",
       {"RACE", kWrongResult}},
      {"tokens of other chunks are gathered",
       "token >= first && token < first + columns",
       "token >= 0 && token < first + columns",
       {"SMEM-OOB", "GLOBAL-OOB", kWrongResult}}}},
    {"ops/logits/process/kernel.cuh",
     "logits.process",
     "rows=34 vocab=1000 state=1 mask=2 beyond=1 logits.dtype=f32",
     {{"slots beyond the counts are read", "slot >= 0 && slot < p.slot_rows", "slot >= 0", {"GLOBAL-OOB"}},
      {"masks beyond the bitmask are read", "mask >= 0 && mask < p.masks", "mask >= 0", {"GLOBAL-OOB"}},
      {"a row of no slot takes the one before its first", "slot >= 0 && slot < p.slot_rows", "slot < p.slot_rows", {"GLOBAL-OOB"}},
      {"a count's penalty is rounded before it is subtracted",
       "ptx::fma(r.frequency, f32(float(-count)), x)",
       "x - ptx::fma(r.frequency, f32(float(count)), f32(-0.f))",
       {kWrongResult}},
      {"multiplied by a rounded reciprocal", "ptx::div(x, r.repetition)", "x * ptx::div(f32(1.f), r.repetition)", {kWrongResult}},
      {"presence of tokens of the prompt alone",
       "    if (count > 0) {",
       "    if (count > 0 || (access.in_prompt >> j & 1)) {",
       {kWrongResult}}}},
    {"ops/logits/process/kernel.cuh",
     "logits.process",
     "vocab=1000 state=0 mask=1 short_mask=1 soft_cap=5",
     {{"what was masked before is capped", " || ptx::bits_of(x) == kMinusInfinity) return", ") return", {kWrongResult}},
      {"words behind the mask are read",
       "(column >> 5) < p.mask_words ? bits_at(r.mask, column)",
       "(column >> 5) >= 0 ? bits_at(r.mask, column)",
       {"GLOBAL-OOB", kWrongResult}}}},
}};

}  // namespace quern::planted
