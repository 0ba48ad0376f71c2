// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What an op's reference (`_ref.h`) reads and writes with: host tensors of any dtype as doubles. References use this
// and plain loops only. A reference that is a template on its number type Real also gives the meaning of the op in
// OrderFree numbers, against which `quern prove` compares kernels exactly: double, or OrderFree as kit/order_free.h
// stores it in the tensor's dtype. Its functions are then called without std:: (using std::exp).
#pragma once
#include <cstring>
#include <initializer_list>
#include <type_traits>
#include <vector>

#include "quern/base/host_dtype.h"
#include "quern/kit/order_free.h"

namespace quern {

/// What an output of the reference holds where it wrote nothing: the kernel must not write there either.
constexpr u64 kUnwrittenBits = ~u64(0);
/// Where the reference declares that any content is right.
constexpr u64 kUnspecifiedBits = 0x7FF8'0000'5151'5151;

/// One element. The f64 tensors that an order-free reference writes hold words.
template <class Real>
Real load_number(const void* data, DType dtype) {
  u32 word = 0;
  if constexpr (!std::is_same_v<Real, double>) switch (dtype) {
      case DType::f64: return OrderFree::of_word(u32(load_value(data, dtype)));
      case DType::f32: return std::memcpy(&word, data, 4), OrderFree::of_word(word);
      case DType::f16:
      case DType::bf16: return std::memcpy(&word, data, 2), OrderFree::of_half(word);
      case DType::e4m3:
      case DType::e5m2: return std::memcpy(&word, data, 1), OrderFree::of_byte(word);
      default: break;
    }
  return Real(load_value(data, dtype));
}

/// A number of natural units in units of log2.
inline double in_log2_units(double x) { return x / 0.693147180559945309417232; }
inline OrderFree in_log2_units(OrderFree x) { return x * OrderFree(1.44269504088896341f); }

/// Reads a host tensor: `x(i, j)` is an element, `x.row({i}, out)` the innermost row of index i.
template <class Real = double>
class Ref {
 public:
  Ref(const TensorView& view) : view_(view) {}
  bool present() const { return view_.present(); }
  i64 dim(int d) const { return view_.shape[d]; }
  DType dtype() const { return view_.dtype; }
  template <class... I>
  Real operator()(I... index) const {
    const i64 at[] = {i64(index)...};
    return load_number<Real>(view_.at(at), view_.dtype);
  }
  /// An element of an index tensor.
  template <class... I>
  i64 index(I... where) const {
    const i64 at[] = {i64(where)...};
    return load_integer(view_.at(at), view_.dtype);
  }
  /// The innermost row behind `lead` (rank - 1 indices) as numbers.
  void row(std::initializer_list<i64> lead, Real* out) const {
    const int last = view_.rank - 1;
    i64 offset = 0;
    int d = 0;
    for (const i64 i : lead) offset += i * view_.strides[d++];
    const char* from = static_cast<const char*>(view_.data) + offset * size_of(view_.dtype);
    if constexpr (std::is_same_v<Real, double>) return read_row(from, view_.dtype, view_.shape[last], view_.strides[last], out);
    else
      for (i64 i = 0; i < view_.shape[last]; ++i)
        out[i] = load_number<Real>(from + i * view_.strides[last] * size_of(view_.dtype), view_.dtype);
  }
  std::vector<Real> row(std::initializer_list<i64> lead) const {
    std::vector<Real> out(size_t(view_.shape[view_.rank - 1]));
    row(lead, out.data());
    return out;
  }

 private:
  TensorView view_;
};

/// Writes an output of the reference (f64), or its magnitudes; does nothing when the tensor is absent. An operand
/// updated in place is f64 as well and holds its values before the call.
template <class Real = double>
class RefOut {
 public:
  RefOut(const TensorView& view) : view_(view) {}
  bool present() const { return view_.present(); }
  i64 dim(int d) const { return view_.shape[d]; }
  template <class... I>
  void set(Real value, I... index) const {
    const i64 at[] = {i64(index)...};
    if (!view_.present()) return;
    if constexpr (std::is_same_v<Real, double>) store_element(view_, at, value);
    else store_element(view_, at, double(value.word));
  }
  /// Declares that any content of the element is right (padding rows and the like).
  template <class... I>
  void unspecified(I... index) const {
    const i64 at[] = {i64(index)...};
    if (view_.present()) std::memcpy(view_.at(at), &kUnspecifiedBits, sizeof kUnspecifiedBits);
  }
  template <class... I>
  Real get(I... index) const {
    const i64 at[] = {i64(index)...};
    return load_number<Real>(view_.at(at), view_.dtype);
  }

 private:
  TensorView view_;
};

}  // namespace quern
