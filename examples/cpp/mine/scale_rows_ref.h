// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "mine/scale_rows.h"
#include "quern/op/ref.h"

namespace quern::mine {

inline void scale_rows_ref(const ScaleRowsArgs& a, const ScaleRowsArgs&) {
  const Ref x(a.x), factor(a.factor);
  const RefOut out(a.out);
  for (i64 t = 0; t < x.dim(0); ++t)
    for (i64 h = 0; h < x.dim(1); ++h) out.set(x(t, h) * factor(t), t, h);
}

}  // namespace quern::mine
