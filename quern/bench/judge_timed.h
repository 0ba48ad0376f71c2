// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Is what the timed runs wrote right? Whole where the reference is quick, else on sampled rows or columns.
#pragma once
#include "quern/bench/device_sets.h"
#include "quern/testing/compare.h"
#include "quern/testing/truth.h"

namespace quern::bench {

struct Verdict {
  testing::Comparison comparison;
  std::string checked;  ///< "all", "8 of 4096 rows", "8 of 4096 columns"
};

/// The rows that are compared: the first, the last and random ones between, ascending; every row when there are no
/// more.
std::vector<i64> sampled_rows(i64 rows, i64 wanted, u64 seed);

/// A reference does about 2e8 multiply-adds a second, and reads or writes as many bytes.
constexpr double kWorkOfASecond = 2e8;

/// Compares the outputs in one set with the op's reference on the host's arguments. When the whole is more than
/// `whole_work` for the reference, rows are compared alone (columns, where the op has only those), each by a thread of its own, and
/// every element of the outputs must have been written. Guard bands must be untouched either way. `roundings`: so many of the
/// call's floating inputs' dtype, 2^-20 each at least, are allowed beside the op's budget, of the value and of the magnitude: other
/// libraries store what they compute between two kernels, and sum in other orders. Nor are their rows compared then whose inputs are not
/// finite. `truths`: where the whole is compared, what the reference says of these arguments; empty: it is put there, for the next time.
Verdict judge_timed(const testing::CaseArgs& host, DeviceSets& sets, int set, const Problem& problem, double whole_work = kWorkOfASecond,
                    int roundings = 0, std::vector<testing::Truth>* truths = nullptr);

}  // namespace quern::bench
