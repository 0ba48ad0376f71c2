// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/schema.h"

namespace quern::testing {

/// Fills a host tensor's elements by the kind of its values; `extent` is the axis that indices stay below (lengths: at
/// most). Data is close to normal with variance 1 and never zero, or hostile as `data` says. Works on all CPUs; the contents depend on
/// `random` and the shape alone. Of another number type than float it is any code but 0 and NaN. False when distinct values are asked for
/// and there are more elements than values. `redraw`: other floating data for each value, everything else, what is drawn later included,
/// the same.
bool fill_tensor(const TensorView& view, Values::Kind kind, i64 extent, Random& random, Number number = Number::real, u64 redraw = 0,
                 DataKind data = DataKind::normal);

}  // namespace quern::testing
