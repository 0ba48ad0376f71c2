// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/base/host_dtype.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace quern {

namespace {

/// A binary floating-point format of at most 16 bits.
struct Format {
  int exponent_bits, mantissa_bits;
  bool has_infinity;  ///< also: all-ones exponents are infinities and NaNs; otherwise only the all-ones pattern is NaN
  bool saturates;
};
constexpr Format kF16{5, 10, true, false};
constexpr Format kBf16{8, 7, true, false};
constexpr Format kE4m3{4, 3, false, true};
constexpr Format kE5m2{5, 2, true, true};

constexpr const Format* format_of(DType t) {
  switch (t) {
    case DType::f16: return &kF16;
    case DType::bf16: return &kBf16;
    case DType::e4m3: return &kE4m3;
    case DType::e5m2: return &kE5m2;
    default: return nullptr;
  }
}

constexpr int bias(const Format& f) { return (1 << (f.exponent_bits - 1)) - 1; }

/// Bits of the largest finite value.
constexpr u32 largest_bits(const Format& f) {
  const u32 all = (1u << (f.exponent_bits + f.mantissa_bits)) - 1;
  return f.has_infinity ? all - (1u << f.mantissa_bits) : all - 1;
}

/// 2^e; `e` is within double's normal range for every format here.
double power_of_two(int e) {
  const u64 bits = u64(e + 1023) << 52;
  double d;
  std::memcpy(&d, &bits, sizeof d);
  return d;
}

double decode(u32 bits, const Format& f) {
  const u32 mantissa = bits & ((1u << f.mantissa_bits) - 1);
  const u32 exponent = (bits >> f.mantissa_bits) & ((1u << f.exponent_bits) - 1);
  const double sign = bits >> (f.exponent_bits + f.mantissa_bits) & 1 ? -1.0 : 1.0;
  if (exponent == (1u << f.exponent_bits) - 1) {
    if (f.has_infinity) return mantissa ? std::copysign(std::numeric_limits<double>::quiet_NaN(), sign) : sign * HUGE_VAL;
    if (mantissa == (1u << f.mantissa_bits) - 1) return std::copysign(std::numeric_limits<double>::quiet_NaN(), sign);
  }
  if (exponent == 0) return sign * double(mantissa) * power_of_two(1 - bias(f) - f.mantissa_bits);
  return sign * double(mantissa + (1u << f.mantissa_bits)) * power_of_two(int(exponent) - bias(f) - f.mantissa_bits);
}

u32 encode(double value, const Format& f) {
  const u32 magnitude_mask = (1u << (f.exponent_bits + f.mantissa_bits)) - 1;
  if (std::isnan(value)) return magnitude_mask;
  const u32 sign = std::signbit(value) ? magnitude_mask + 1 : 0;
  const double a = std::fabs(value);
  const u32 overflow = f.saturates ? largest_bits(f) : magnitude_mask - ((1u << f.mantissa_bits) - 1);
  if (std::isinf(a)) return sign | overflow;
  const int emin = 1 - bias(f);
  const int e = a < power_of_two(emin) ? emin : std::ilogb(a);
  if (e > bias(f) + 1) return sign | overflow;
  // In units of the last place the value is an integer after one rounding; a carry moves into the exponent by itself.
  const u32 units = u32(std::nearbyint(a * power_of_two(f.mantissa_bits - e)));
  const u32 bits = units < (1u << f.mantissa_bits) ? units : units + (u32(e - emin) << f.mantissa_bits);
  return sign | (bits > largest_bits(f) ? overflow : bits);
}

template <class T>
T load_as(const void* data) {
  T value;
  std::memcpy(&value, data, sizeof value);
  return value;
}
template <class T>
void store_as(void* data, T value) {
  std::memcpy(data, &value, sizeof value);
}

template <class T>
T to_integer(double value) {
  if (std::isnan(value)) return 0;
  const double r = std::nearbyint(value);
  if (r <= double(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  if (r >= double(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return T(r);
}

/// Values of all 256 patterns.
struct ByteTable {
  double value[256];
  explicit ByteTable(const Format& f) {
    for (u32 i = 0; i < 256; ++i) value[i] = decode(i, f);
  }
};

double load_f16(u16 bits) {
  const u32 exponent = bits >> 10 & 31;
  if (exponent == 0 || exponent == 31) return decode(bits, kF16);
  const u64 wide = (u64(bits & 0x8000) << 48) | (u64(exponent + 1008) << 52) | (u64(bits & 0x3FF) << 42);
  double d;
  std::memcpy(&d, &wide, sizeof d);
  return d;
}

double load_bf16(u16 bits) {
  const u32 wide = u32(bits) << 16;
  float f;
  std::memcpy(&f, &wide, sizeof f);
  return f;
}

}  // namespace

double load_value(const void* data, DType dtype) {
  static const ByteTable e4m3(kE4m3), e5m2(kE5m2);
  switch (dtype) {
    case DType::f32: return load_as<float>(data);
    case DType::f16: return load_f16(load_as<u16>(data));
    case DType::bf16: return load_bf16(load_as<u16>(data));
    case DType::e4m3: return e4m3.value[load_as<u8>(data)];
    case DType::e5m2: return e5m2.value[load_as<u8>(data)];
    case DType::i32: return load_as<i32>(data);
    case DType::i64: return double(load_as<i64>(data));
    case DType::u8: return load_as<u8>(data);
    case DType::i8: return load_as<i8>(data);
    case DType::f64: return load_as<double>(data);
  }
  return name(dtype), 0;  // throws
}

void store_value(void* data, DType dtype, double value) {
  switch (dtype) {
    case DType::f32: return store_as(data, float(value));
    case DType::f16: return store_as(data, u16(encode(value, kF16)));
    case DType::bf16: return store_as(data, u16(encode(value, kBf16)));
    case DType::e4m3: return store_as(data, u8(encode(value, kE4m3)));
    case DType::e5m2: return store_as(data, u8(encode(value, kE5m2)));
    case DType::i32: return store_as(data, to_integer<i32>(value));
    case DType::i64: return store_as(data, to_integer<i64>(value));
    case DType::u8: return store_as(data, to_integer<u8>(value));
    case DType::i8: return store_as(data, to_integer<i8>(value));
    case DType::f64: return store_as(data, value);
  }
  name(dtype);  // throws
}

i64 load_integer(const void* data, DType dtype) { return dtype == DType::i64 ? load_as<i64>(data) : i64(load_value(data, dtype)); }

void store_integer(void* data, DType dtype, i64 value) {
  if (dtype == DType::i64) store_as<i64>(data, value);
  else store_value(data, dtype, double(value));
}

double load_element(const TensorView& view, const i64* index) { return load_value(view.at(index), view.dtype); }

void store_element(const TensorView& view, const i64* index, double value) { store_value(view.at(index), view.dtype, value); }

void read_row(const void* data, DType dtype, i64 n, i64 stride, double* out) {
  const char* from = static_cast<const char*>(data);
  const i64 step = stride * size_of(dtype);
  switch (dtype) {  // the common ones without a switch per element
    case DType::f32:
      for (i64 i = 0; i < n; ++i) out[i] = load_as<float>(from + i * step);
      return;
    case DType::bf16:
      for (i64 i = 0; i < n; ++i) out[i] = load_bf16(load_as<u16>(from + i * step));
      return;
    default:
      for (i64 i = 0; i < n; ++i) out[i] = load_value(from + i * step, dtype);
  }
}

void write_row(void* data, DType dtype, i64 n, i64 stride, const double* in) {
  char* to = static_cast<char*>(data);
  for (i64 i = 0; i < n; ++i) store_value(to + i * stride * size_of(dtype), dtype, in[i]);
}

double unit_roundoff(DType dtype) {
  if (const Format* f = format_of(dtype)) return power_of_two(-f->mantissa_bits - 1);
  return dtype == DType::f32 ? 0x1p-24 : dtype == DType::f64 ? 0x1p-53 : 0;
}

double smallest_positive(DType dtype) {
  if (const Format* f = format_of(dtype)) return decode(1, *f);
  return dtype == DType::f32 ? 0x1p-149 : dtype == DType::f64 ? 0x1p-1074 : 1;
}

double largest_finite(DType dtype) {
  if (const Format* f = format_of(dtype)) return decode(largest_bits(*f), *f);
  switch (dtype) {
    case DType::f32: return std::numeric_limits<float>::max();
    case DType::i32: return std::numeric_limits<i32>::max();
    case DType::i64: return double(std::numeric_limits<i64>::max());
    case DType::u8: return 255;
    case DType::i8: return 127;
    default: return std::numeric_limits<double>::max();
  }
}

bool saturates(DType dtype) {
  const Format* f = format_of(dtype);
  return f && f->saturates;
}

bool is_integer(DType dtype) { return dtype == DType::i32 || dtype == DType::i64 || dtype == DType::u8 || dtype == DType::i8; }

}  // namespace quern
