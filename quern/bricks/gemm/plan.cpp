// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/bricks/gemm/plan.h"

#include <algorithm>
#include <cmath>

#include "quern/base/host_dtype.h"
#include "quern/bricks/gemm/scales_spec.h"

namespace quern::gemm {

/// One rounding of the result. Of the terms' magnitude: products are exact. In mma.sync a group's sum of 128 is off by about
/// 2 sqrt(128) units of its terms, as it cuts off where it aligns 17 addends, each by at most one unit of the largest. wgmma cuts
/// 13 bits behind the largest of 33 (docs/emulator.md), four times a group: with addends of both signs about
/// 2 sqrt(4 * 33 / 3) units of 2^-13 of a group's sum, which is about 1 / sqrt(128) of its terms: below 2^-12, twice that for
/// rows that are worse than others. Then one rounding of the two scales' product, and one of the sum of groups for each
/// (independent: sqrt of their number, as the groups' own errors), the bias and c. Groups are uneven: a last one has fewer
/// columns, by which 288 are 2.45 groups and not 3, and scales differ. They count as k / 128, here 2.25. Of 19 million sums of 288 columns
/// of e5m2 the worst is 0.96 of this, by an H200 and by the emulated device alike, the next of other seeds 0.69.
Budget scaled_budget(DType out, i64 k, bool portable) {
  const double groups = std::max(1.0, double(ceil_div<i64>(k, kScaledGroup))), whole = std::max(1.0, double(k) / double(kScaledGroup));
  const double of_group = portable ? 2 * std::sqrt(double(kScaledGroup)) * 0x1p-24 : 0x1p-11 / std::sqrt(whole);
  return {.of_value = unit_roundoff(out), .of_magnitude = of_group + (8 + 2 * std::sqrt(groups)) * 0x1p-24};
}

}  // namespace quern::gemm
