// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What an op's reference (`_ref.h`) reads and writes with: host tensors of any dtype as doubles. References use this
// and plain loops only.
#pragma once
#include <cstring>
#include <initializer_list>
#include <vector>

#include "quern/base/host_dtype.h"

namespace quern {

/// What an output of the reference holds where it wrote nothing: the kernel must not write there either.
constexpr u64 kUnwrittenBits = ~u64(0);
/// Where the reference declares that any content is right.
constexpr u64 kUnspecifiedBits = 0x7FF8'0000'5151'5151;

/// Reads a host tensor: `x(i, j)` is an element, `x.row({i}, out)` the innermost row of index i.
class Ref {
 public:
  Ref(const TensorView& view) : view_(view) {}
  bool present() const { return view_.present(); }
  i64 dim(int d) const { return view_.shape[d]; }
  DType dtype() const { return view_.dtype; }
  template <class... I>
  double operator()(I... index) const {
    const i64 at[] = {i64(index)...};
    return load_element(view_, at);
  }
  /// An element of an index tensor.
  template <class... I>
  i64 index(I... where) const {
    return i64((*this)(where...));
  }
  /// The innermost row behind `lead` (rank - 1 indices) as doubles.
  void row(std::initializer_list<i64> lead, double* out) const {
    const int last = view_.rank - 1;
    i64 offset = 0;
    int d = 0;
    for (const i64 i : lead) offset += i * view_.strides[d++];
    read_row(static_cast<const char*>(view_.data) + offset * size_of(view_.dtype), view_.dtype, view_.shape[last],
             view_.strides[last], out);
  }
  std::vector<double> row(std::initializer_list<i64> lead) const {
    std::vector<double> out(size_t(view_.shape[view_.rank - 1]));
    row(lead, out.data());
    return out;
  }

 private:
  TensorView view_;
};

/// Writes an output of the reference (f64), or its magnitudes; does nothing when the tensor is absent. An operand
/// updated in place is f64 as well and holds its values before the call.
class RefOut {
 public:
  RefOut(const TensorView& view) : view_(view) {}
  bool present() const { return view_.present(); }
  i64 dim(int d) const { return view_.shape[d]; }
  template <class... I>
  void set(double value, I... index) const {
    const i64 at[] = {i64(index)...};
    if (view_.present()) store_element(view_, at, value);
  }
  /// Declares that any content of the element is right (padding rows and the like).
  template <class... I>
  void unspecified(I... index) const {
    const i64 at[] = {i64(index)...};
    if (view_.present()) std::memcpy(view_.at(at), &kUnspecifiedBits, sizeof kUnspecifiedBits);
  }
  template <class... I>
  double get(I... index) const {
    const i64 at[] = {i64(index)...};
    return load_element(view_, at);
  }

 private:
  TensorView view_;
};

}  // namespace quern
