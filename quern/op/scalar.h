// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <concepts>
#include <limits>
#include <string>
#include <type_traits>

#include "quern/base/api.h"
#include "quern/kit/abi.h"

namespace quern {

/// A number of a case, an attribute or a default: an integer of 64 bits, or a double. In arithmetic it is a double;
/// i64(scalar) and the other integer types are exact where it is an integer.
class Scalar {
 public:
  constexpr Scalar() = default;
  template <std::integral T> constexpr Scalar(T v) : integer_(i64(v)) {}
  template <class T>
    requires std::is_enum_v<T>
  constexpr Scalar(T v) : integer_(i64(v)) {}
  template <std::floating_point T> constexpr Scalar(T v) : real_(double(v)), is_real_(true) {}

  constexpr bool is_real() const { return is_real_; }  ///< made of a floating number, which may be integral
  constexpr operator double() const { return is_real_ ? real_ : double(integer_); }
  template <std::integral T> explicit constexpr operator T() const { return std::is_same_v<T, bool> ? *this != 0 : T(integer()); }
  /// A real number is cut off and saturates, NaN is 0.
  constexpr i64 integer() const {
    if (!is_real_) return integer_;
    if (real_ != real_) return 0;
    return real_ >= 0x1p63 ? std::numeric_limits<i64>::max() : real_ <= -0x1p63 ? std::numeric_limits<i64>::min() : i64(real_);
  }
  /// Whether it is an integer that 64 bits hold.
  constexpr bool is_integral() const { return !is_real_ || (real_ >= -0x1p63 && real_ < 0x1p63 && real_ == double(i64(real_))); }

  constexpr Scalar& operator+=(const Scalar& more) {
    i64 sum = 0;
    if (!is_real_ && !more.is_real_ && !__builtin_add_overflow(integer_, more.integer_, &sum)) return *this = sum;
    return *this = double(*this) + double(more);
  }
  /// Of two scalars alone: one beside a number is compared as a double is.
  template <std::same_as<Scalar> T> friend constexpr bool operator==(const T& a, const T& b) {
    return a.is_integral() && b.is_integral() ? a.integer() == b.integer() : double(a) == double(b);
  }

 private:
  i64 integer_ = 0;
  double real_ = 0;
  bool is_real_ = false;
};

/// The shortest text that is read as the same number: "9007199254740993", "0.7", "nan".
QN_API std::string to_string(const Scalar& value);

}  // namespace quern
