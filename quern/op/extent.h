// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/axis.h"

namespace quern {

/// Extent of one dimension. Most are ceil(factor * axis / divisor) + offset, or the number `offset` where the factor is 0;
/// any other expression is a formula of its op. A number times an axis plus an offset tells the axis, all others are checked.
struct Extent {
  i32 factor = 1;
  i32 divisor = 1;
  i64 offset = 0;
  Axis axis = Axis::tokens;
  u8 slot = 0;        ///< of the axis, in Op::axes
  bool late = false;  ///< checked when all tensors were looked at, for it may need axes that a later one tells
  i32 formula = -1;   ///< index into Op::formulas; -1: none
  bool is_number() const { return formula < 0 && factor == 0; }
  bool tells_axis() const { return formula < 0 && factor != 0 && divisor == 1; }
  /// Whether it is the axis itself.
  bool is(Axis wanted) const { return tells_axis() && axis == wanted && factor == 1 && offset == 0; }
  /// The extent where the axis is `value`; of one without a formula.
  i64 size(i64 value) const { return (divisor == 1 ? factor * value : ceil_div<i64>(factor * value, divisor)) + offset; }
};

}  // namespace quern
