// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/testing/fill.h"

#include <numeric>
#include <utility>

#include "quern/base/host_dtype.h"
#include "quern/testing/case_args.h"

namespace quern::testing {

/// Sum of four uniforms, scaled to variance 1.
static double near_normal(Random& random) {
  const u64 bits = random.next();
  const i64 sum = i64(bits & 0xFFFF) + i64(bits >> 16 & 0xFFFF) + i64(bits >> 32 & 0xFFFF) + i64(bits >> 48);
  return (double(sum) - 131070.0) * (1.7320508075688772 / 65536.0);
}

static double data_value(DType dtype, Random& random) {
  if (is_integer(dtype)) return double(1 + random.below(100));
  double probe = 0;
  const double value = near_normal(random);
  store_value(&probe, dtype, value);
  return load_value(&probe, dtype) == 0 ? 0.5 : value;
}

/// Distinct values: over the whole tensor where they suffice, else within each row.
static bool fill_permutation(const TensorView& view, i64 extent, Random& random) {
  const i64 row = view.shape[view.rank - 1];
  const bool whole = view.numel() <= extent;
  if (!whole && row > extent) return false;
  std::vector<i64> values(static_cast<size_t>(extent));
  std::iota(values.begin(), values.end(), 0);
  size_t taken = 0;
  each_row(view, [&](char* at, const i64*) {
    if (!whole) taken = 0;
    for (i64 j = 0; j < row; ++j, ++taken) {
      std::swap(values[taken], values[taken + size_t(random.below(extent - i64(taken)))]);
      store_value(at + j * view.strides[view.rank - 1] * size_of(view.dtype), view.dtype, double(values[taken]));
    }
  });
  return true;
}

bool fill_tensor(const TensorView& view, Values::Kind kind, i64 extent, Random& random) {
  if (kind == Values::Kind::permutation) return fill_permutation(view, extent, random);
  const i64 row = view.rank ? view.shape[view.rank - 1] : 0;
  std::vector<double> values(static_cast<size_t>(row));
  each_row(view, [&](char* at, const i64*) {
    for (double& v : values) {
      switch (kind) {
        case Values::Kind::index: v = double(random.below(extent)); break;
        case Values::Kind::length: v = double(random.below(extent + 1)); break;
        case Values::Kind::generated: v = 0; break;
        default: v = data_value(view.dtype, random);
      }
    }
    write_row(at, view.dtype, row, view.strides[view.rank - 1], values.data());
  });
  return true;
}

}  // namespace quern::testing
