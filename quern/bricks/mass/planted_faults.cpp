// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"bricks/mass/mass.cuh",
     "sampling.softmax",
     "vocab=513 logits.dtype=f32 temperatures.present=false temperature=0.6",
     {{"a product is rounded before it is added, as code that is not contracted does",
       "f32 fraction = ptx::fma(x, scale.high, ptx::f32_of_bits(ptx::bits_of(whole) ^ 0x80000000u));",
       "f32 fraction = product - whole;",
       {kWrongResult}},
      {"the low part of log2(e) / temperature is left out", "fraction = ptx::fma(x, scale.low, fraction);", "", {kWrongResult}},
      {"2^f by the approximate instruction",
       "ptx::bits_of(exp2_of_fraction(fraction))",
       "ptx::bits_of(ptx::exp2_approx(fraction))",
       {kWrongResult}},
      {"a quotient is not corrected", "return ptx::fma(rest, total.reciprocal, near);", "return near;", {kWrongResult}},
      {"large masses lose a part of their power", "1u << (above & 31)", "1u << (above & 15)", {kWrongResult}}}},
}};

}  // namespace quern::planted
