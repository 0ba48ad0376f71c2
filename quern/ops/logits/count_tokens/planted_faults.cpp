// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"ops/logits/count_tokens/kernel.cuh",
     "logits.count_tokens",
     "tokens=300 slots=3 vocab=33",
     {{"tokens are counted without atomics",
       "ptx::red_add(p.counts + slot * p.counts_stride + id, 1u);",
       "++p.counts[slot * p.counts_stride + id];",
       {"RACE", kWrongResult}},
      {"bits are set without atomics",
       "const u32 before = ptx::atomic_cas(word, seen, seen | bits);",
       "const u32 before = seen;\n    *word = seen | bits;",
       {"RACE", kWrongResult}},
      {"negative ids are counted", "if (id < 0 || id >= p.vocab", "if (id >= p.vocab", {"GLOBAL-OOB", kWrongResult}}}},
    {"ops/logits/count_tokens/kernel.cuh",
     "logits.count_tokens",
     "tokens=300 slots=3 vocab=33 beyond=1",
     {{"slots beyond the counts are written", " || slot >= p.slot_rows", "", {"GLOBAL-OOB"}}}},
}};

}  // namespace quern::planted
