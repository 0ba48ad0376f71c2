// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What all variants of gemm.dense read from a call.
#pragma once
#include "quern/bricks/gemm/ending_spec.h"
#include "quern/bricks/gemm/plan.h"
#include "quern/op/schema.h"
#include "quern/ops/gemm/dense.h"

namespace quern::gemm {

/// What follows the sums.
inline Ending ending_of(const Problem& p) {
  using A = DenseArgs;
  return {p.dtype(&A::a), p.dtype(&A::out), p.tensor(&A::c).present, i32(p.attr(&A::activation))};
}

inline DenseAddend c_of(const Call<DenseArgs>& call) {
  const TensorFacts& facts = call.problem.tensor(&DenseArgs::c);
  return {call.args.c.data, call.args.c.strides[0], facts.dtype, facts.alignment};
}

}  // namespace quern::gemm
