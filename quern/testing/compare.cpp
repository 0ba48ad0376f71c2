// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/testing/compare.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "quern/op/ref.h"
#include "quern/testing/case_args.h"

namespace quern::testing {

namespace {

/// One element's judgement: error in units of the tolerance; infinite when no tolerance could excuse it.
class Judge {
 public:
  Judge(DType dtype, const Budget& b)
      : dtype_(dtype),
        of_value_(std::fmax(b.of_value, 1.01 * unit_roundoff(dtype))),
        of_magnitude_(b.of_magnitude),
        absolute_(b.absolute + (is_integer(dtype) ? 0 : 0.51 * smallest_positive(dtype))),
        largest_(largest_finite(dtype)),
        exact_(b.exact) {}

  double error(double got, double expected, double magnitude) const {
    if (std::isnan(expected) || std::isnan(got)) return std::isnan(expected) && std::isnan(got) ? 0 : HUGE_VAL;
    if (exact_) return got == expected && std::signbit(got) == std::signbit(expected) ? 0 : HUGE_VAL;
    if (saturates(dtype_) || is_integer(dtype_)) expected = std::fmin(std::fmax(expected, -largest_), largest_);
    if (std::isinf(expected)) return got == expected ? 0 : HUGE_VAL;
    if (got == expected) return 0;  // also where an infinity beside it left no magnitude
    if (std::bit_cast<u64>(magnitude) == kUnwrittenBits) magnitude = std::fabs(expected);
    const double tolerance = of_value_ * std::fabs(expected) + of_magnitude_ * magnitude + absolute_;
    if (std::isinf(got)) {  // right where the rounded result may have overflowed
      const bool overflowed = std::signbit(got) == std::signbit(expected) && std::fabs(expected) + tolerance > largest_;
      return !is_integer(dtype_) && overflowed ? 0 : HUGE_VAL;
    }
    const double difference = std::fabs(got - expected);
    if (std::isnan(tolerance)) return HUGE_VAL;
    if (tolerance == 0) return difference == 0 ? 0 : HUGE_VAL;
    return difference / tolerance;
  }

 private:
  DType dtype_;
  double of_value_, of_magnitude_, absolute_, largest_;
  bool exact_;  ///< an op that copies
};

bool untouched(const char* element, DType dtype) {
  for (int b = 0; b < size_of(dtype); ++b)
    if (u8(element[b]) != poison_of(dtype)) return false;
  return true;
}

/// Of a NaN that is expected: whether it is the poison. No kernel makes a NaN of 16 bits and more whose bits are all ones.
bool never_written(const char* element, DType dtype, double expected) {
  return std::isnan(expected) && size_of(dtype) > 1 && untouched(element, dtype);
}

std::string index_text(const i64* index, int rank) {
  std::string text = "[";
  for (int d = 0; d < rank; ++d) text += (d ? ", " : "") + std::to_string(index[d]);
  return text + "]";
}

/// What a whole comparison gathers.
struct Gathered {
  i64 bad = 0;
  bool any_nonzero = false, any_expected = false;
  bool unwritten = false;  ///< the worst element should not have been written
};

}  // namespace

static void take(Comparison& c, double error, const i64* lead, int last, i64 j, double got, double expected) {
  if (!(error > c.error)) return;
  c.error = error, c.got = got, c.expected = expected;
  for (int d = 0; d < last; ++d) c.index[d] = lead[d];
  c.index[last] = j;
}

static void describe(Comparison& c, const TensorView& output, const Gathered& g) {
  const std::string at = index_text(c.index, output.rank);
  if (g.bad == 0) return;
  c.ok = false;
  if (g.unwritten) {
    c.message = fmt::format("{} was written ({:.9g}), expected to be left alone", at, c.got);
  } else {
    c.message = fmt::format("{} is {:.9g}, expected {:.9g}", at, c.got, c.expected);
    if (std::isfinite(c.error)) c.message += fmt::format(" ({:.3g} times the tolerance)", c.error);
  }
  c.message += fmt::format("; {} of {} elements are wrong", g.bad, output.numel());
}

Comparison compare(const TensorView& output, const std::vector<double>& expected, const std::vector<double>& magnitudes,
                   const Budget& budget) {
  Comparison c;
  Gathered g;
  const Judge judge(output.dtype, budget);
  const int last = output.rank - 1;
  size_t at = 0;
  each_row(output, [&](char* row, const i64* lead) {
    for (i64 j = 0; j < output.shape[last]; ++j, ++at) {
      const char* element = row + j * output.strides[last] * size_of(output.dtype);
      const u64 bits = std::bit_cast<u64>(expected[at]);
      if (bits == kUnspecifiedBits) continue;
      const double got = load_value(element, output.dtype);
      const bool leave = bits == kUnwrittenBits;
      double error = HUGE_VAL;
      if (leave) error = untouched(element, output.dtype) ? 0 : HUGE_VAL;
      else if (!never_written(element, output.dtype, expected[at])) error = judge.error(got, expected[at], magnitudes[at]);
      if (leave && error > c.error) g.unwritten = true;
      take(c, error, lead, last, j, got, expected[at]);
      g.bad += !(error <= 1);
      if (leave) continue;
      g.any_nonzero |= got != 0;
      g.any_expected |= std::fabs(expected[at]) > smallest_positive(output.dtype);
    }
  });
  describe(c, output, g);
  if (c.ok && g.any_expected && !g.any_nonzero) {
    c.ok = false;
    c.error = HUGE_VAL;
    c.message = "is all zeros, which the reference is not";
  }
  return c;
}

}  // namespace quern::testing
