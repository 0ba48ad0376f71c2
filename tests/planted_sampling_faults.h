// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Textual changes that break the ops that choose tokens, see planted_faults.h.
#pragma once
#include "planted_faults.h"

namespace quern::planted {

inline const std::vector<FaultyCase>& sampling_faults() {
  static const std::vector<FaultyCase> all = {
      {"bricks/select/threshold.cuh",
       "sampling.sample",
       "vocab=513 data=2 tensors=false top_k=5 temperature=1",
       {{"of equal values one more is kept", "return {key, i64(last.index) + 1};", "return {key, i64(last.index) + 2 + 40};", {kWrongResult}},
        {"all that equal the last one are kept", "  if (!(rest < found.entry)) return {key, row.length};", "  return {key, row.length};", {kWrongResult}},
        {"bins are not cleared before they are filled", "    clear_bins(m, bins, L.threads);\n    ptx::sync_block();\n", "    ptx::sync_block();\n", {"UNINIT", kWrongResult}}}},
      {"bricks/select/threshold.cuh",
       "sampling.mask",
       "rows=23 vocab=513 tensors=false top_k=3 temperature=1 top_p=1",
       {{"a list of candidates that ends", "if (!is_zero(more)) add_to_bin", "if (!is_zero(more) && index < 256) add_to_bin", {kWrongResult}}}},
      {"bricks/select/find.cuh",
       "sampling.mask",
       "rows=23 vocab=513 tensors=false top_k=3 temperature=1 top_p=1",
       {{"a sum that only reaches the target ends the search", "      if (wanted < before + e) {\n        *m.found = {of_step", "      if (wanted <= before + e) {\n        *m.found = {of_step", {kWrongResult}}}},
      {"bricks/select/find.cuh",
       "sampling.sample",
       "vocab=4099 data=0 tensors=false temperature=1",
       {{"the sum of a step lies one too far", "clear_bins(m, steps, L.threads);", "clear_bins(m, steps - 1, L.threads);", {"UNINIT", kWrongResult}},
        {"no barrier before a warp walks over the entries", "template <class Entry, class Target> QN_DEVICE Found find_above(const SelectMemory& m, u32 count, Entry entry, Target target) {\n  ptx::sync_block();",
         "template <class Entry, class Target> QN_DEVICE Found find_above(const SelectMemory& m, u32 count, Entry entry, Target target) {", {"RACE", kWrongResult}}}},
      {"bricks/mass/mass.cuh",
       "sampling.softmax",
       "vocab=513 logits.dtype=f32 temperatures.present=false temperature=0.6",
       {{"a product is rounded before it is added, as code that is not contracted does", "f32 fraction = ptx::fma(logit, scale.high, ptx::f32_of_bits(ptx::bits_of(whole) ^ 0x80000000u));", "f32 fraction = x - whole;", {kWrongResult}},
        {"the low part of log2(e) / temperature is left out", "fraction = ptx::fma(logit, scale.low, fraction);", "", {kWrongResult}},
        {"2^f by the approximate instruction", "ptx::bits_of(exp2_of_fraction(fraction))", "ptx::bits_of(ptx::exp2_approx(fraction))", {kWrongResult}}}},
      {"ops/sampling/softmax/kernel.cuh",
       "sampling.softmax",
       "vocab=513 logits.dtype=f32 temperatures.present=false temperature=0.6",
       {{"a float sum of masses", "mine = mine + mass_of(weights, x);", "mine = U128{0, u64(f32(float(mine.high)) + f32(float(mass_of(weights, x).high)))};", {kWrongResult}}}},
      {"bricks/random/philox.cuh",
       "sampling.sample",
       "vocab=513 data=0 tensors=false",
       {{"a round is missing", "round < 10", "round < 9", {kWrongResult}},
        {"the high half of the seed is not read", "u32(seed), u32(seed >> 32)", "u32(seed), 0u", {kWrongResult}}}},
      {"ops/sampling/sample/kernel.cuh",
       "sampling.sample",
       "vocab=513 data=0 tensors=false",
       {{"every row draws by the first seed", "ptx::ld_global<i64>(p.seeds + row)", "ptx::ld_global<i64>(p.seeds)", {kWrongResult}},
        {"the random number reaches 1", "scaled_by_bits(bits, total)", "scaled_by_bits(bits, total) + U128{~u64(0), 0xfffffff}", {kWrongResult}}}},
      {"ops/topk/select_row/kernel.cuh",
       "topk.select",
       "length=513 k=33 lengths.present=false",
       {{"warps do not know what others keep", "if (w < warp) at +=", "if (w < warp && w < 0) at +=", {"RACE", kWrongResult}},
        {"equal values in descending order of their indices", "<< 32 | u32(index);", "<< 32 | ~u32(index);", {"GLOBAL-OOB", kWrongResult}}}},
  };
  return all;
}

}  // namespace quern::planted
