// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Host conversion of every DType from and to double: exact one way, one rounding (to nearest, ties to even) the other.
#pragma once
#include "quern/base/tensor_view.h"

namespace quern {

/// Value of the element at `data`. i64 beyond 2^53 is rounded.
QN_API double load_value(const void* data, DType dtype);
/// Rounds once to nearest even. f16, bf16 and f32 overflow to infinity; e4m3 and e5m2 saturate (also infinities) as
/// cvt.rn.satfinite does; integers round to nearest even, saturate, and take 0 for NaN.
QN_API void store_value(void* data, DType dtype, double value);

/// The same of integers, exactly; floating types go through a double.
QN_API i64 load_integer(const void* data, DType dtype);
QN_API void store_integer(void* data, DType dtype, i64 value);

/// One element of a host tensor; `index` has rank entries.
QN_API double load_element(const TensorView& view, const i64* index);
QN_API void store_element(const TensorView& view, const i64* index, double value);

/// `n` elements, `stride` elements apart, as doubles; and back.
QN_API void read_row(const void* data, DType dtype, i64 n, i64 stride, double* out);
QN_API void write_row(void* data, DType dtype, i64 n, i64 stride, const double* in);

/// Half the distance between 1 and the next value: the relative error of one rounding. 0 for integers.
QN_API double unit_roundoff(DType dtype);
/// The smallest positive value; 1 for integers.
QN_API double smallest_positive(DType dtype);
/// The largest finite value.
QN_API double largest_finite(DType dtype);
/// True for the types whose conversions saturate instead of making infinities.
QN_API bool saturates(DType dtype);
QN_API bool is_integer(DType dtype);

}  // namespace quern
