// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/ref.h"
#include "quern/ops/elementwise/gather_rows.h"

namespace quern::elementwise {

template <class Real = double>
void gather_rows_ref(const GatherRowsArgs& a, const GatherRowsArgs&) {
  const Ref<Real> table(a.table), ids(a.ids);
  const RefOut<Real> out(a.out);
  for (i64 t = 0; t < out.dim(0); ++t) {
    const i64 id = ids.index(t);
    for (i64 h = 0; h < out.dim(1); ++h) out.set(id < 0 || id >= table.dim(0) ? Real(0) : table(id, h) * Real(a.scale), t, h);
  }
}

}  // namespace quern::elementwise
