// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <cmath>

#include "quern/op/ref.h"
#include "steps/gemm.h"

namespace quern::steps {

inline void gemm_ref(const GemmArgs& args, const GemmArgs& magnitudes) {
  const Ref a(args.a), b(args.b);
  const RefOut out(args.out), terms(magnitudes.out);
  for (i64 i = 0; i < a.dim(0); ++i)
    for (i64 j = 0; j < b.dim(0); ++j) {
      double sum = 0, magnitude = 0;
      for (i64 x = 0; x < a.dim(1); ++x) sum += a(i, x) * b(j, x), magnitude += std::fabs(a(i, x) * b(j, x));
      out.set(sum, i, j);
      terms.set(magnitude, i, j);
    }
}

}  // namespace quern::steps
