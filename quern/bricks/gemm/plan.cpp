// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/bricks/gemm/plan.h"

#include <algorithm>
#include <cmath>

#include "quern/base/host_dtype.h"
#include "quern/bricks/gemm/scales_spec.h"

namespace quern::gemm {

/// One rounding of the result. All other errors are relative to the magnitude of the terms; products are exact.
/// * A group of 128 by mma.sync: its sum is off by about 2 sqrt(128) units of its terms. An instruction aligns 17 addends and cuts each
///   off, by at most one unit of the largest.
/// * A group by wgmma: four times a group it cuts 13 bits behind the largest of 33 addends (docs/emulator.md). With addends of both signs
///   that is about 2 sqrt(4 * 33 / 3) units of 2^-13 of the group's sum, and the sum is about 1 / sqrt(128) of its terms: below 2^-12.
///   Twice that is allowed, for rows that are worse than others.
/// * All groups: one rounding of the product of the two scales; one of the sum for each group; the bias and c. Errors of groups are
///   independent, so they grow as the sqrt of the groups' number.
/// Groups are uneven: the last one may have fewer columns, so that 288 columns are 2.45 groups and not 3, and scales differ. They count as
/// k / 128, here 2.25. Of 19 million sums of 288 columns of e5m2 the worst is 0.96 of this, on an H200 and on the emulated device.
Budget scaled_budget(DType out, i64 k, bool portable) {
  const double groups = std::max(1.0, double(ceil_div<i64>(k, kScaledGroup))), whole = std::max(1.0, double(k) / double(kScaledGroup));
  const double of_group = portable ? 2 * std::sqrt(double(kScaledGroup)) * 0x1p-24 : 0x1p-11 / std::sqrt(whole);
  return {.of_value = unit_roundoff(out), .of_magnitude = of_group + (8 + 2 * std::sqrt(groups)) * 0x1p-24};
}

}  // namespace quern::gemm
