// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Compares an output with the truth within an error budget. NaN and infinity masks must agree first, and an output of
// zeros never passes for anything else.
#pragma once
#include <string>
#include <vector>

#include "quern/op/schema.h"

namespace quern::testing {

struct Comparison {
  bool ok = true;
  double error = 0;              ///< the largest, in units of its tolerance; infinite where no tolerance applies
  i64 index[kMaxRank] = {};      ///< of the worst element
  double got = 0, expected = 0;  ///< there
  std::string message;           ///< "[0, 3] is 1.5, expected 1.25 (2.1e3 times the tolerance)"; empty when ok
};

/// `output` is a host tensor; `expected` and `magnitudes` are row-major in f64 (see Truth). An element's tolerance is
/// max(of_value, 1.01 roundings of the dtype) * |expected| + of_magnitude * magnitude + absolute + half the dtype's
/// smallest value; integers without `absolute` must be equal, and so must everything with an exact budget (copies). Expected values beyond
/// the dtype's range are saturated or infinite as the dtype's conversion makes them.
Comparison compare(const TensorView& output, const std::vector<double>& expected, const std::vector<double>& magnitudes,
                   const Budget& budget);

}  // namespace quern::testing
