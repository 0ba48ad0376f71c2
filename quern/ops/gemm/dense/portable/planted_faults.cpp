// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    {"ops/gemm/dense/portable/mma_ring.cuh",
     "gemm.dense",
     "variant=portable m=1 n=128 k=4104",
     {{"the last split as long as the others", "min_of(p.split_k, p.k - k_begin)", "p.split_k", {"GLOBAL-OOB"}}}},
    {"ops/gemm/dense/portable/sum_splits.cuh",
     "gemm.dense",
     "variant=portable m=1 n=128 k=4104",
     {{"one split too many summed", "s < p.splits", "s <= p.splits", {"GLOBAL-OOB"}}}},
}};

}  // namespace quern::planted
