// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/quant/values/values.h"

#include <algorithm>
#include <cmath>

namespace quern::quant {

namespace {

struct Block {
  i64 row, rows, column, columns;
};

template <class F> void each_element(const TensorView& x, const Block& b, F f) {
  for (i64 i = b.row; i < b.row + b.rows; ++i)
    for (i64 j = b.column; j < b.column + b.columns; ++j) {
      const i64 at[] = {i, j};
      store_value(x.at(at), x.dtype, f(i, j));
    }
}

/// One element in the middle of the block.
void put(const TensorView& x, const Block& b, double value) {
  const i64 at[] = {b.row + b.rows / 2, b.column + b.columns / 2};
  store_value(x.at(at), x.dtype, value);
}

}  // namespace

void put_special_values(const TensorView& x, i64 rows, i64 columns, const Case& which, bool nan) {
  const auto word = [&](const char* name) {
    const auto at = which.find(name);
    return at != which.end() && at->second != 0;
  };
  if (!word("special")) return;
  const bool proof = word("proof");
  for (i64 i = 0; i < x.shape[0]; i += rows)
    for (i64 j = 0; j < x.shape[1]; j += columns) {
      const Block b{i, std::min(rows, x.shape[0] - i), j, std::min(columns, x.shape[1] - j)};
      const i64 kind = (i / rows + j / columns) % 6;
      if (kind == 0) each_element(x, b, [](i64, i64) { return 0.0; });
      if (proof) continue;
      if (kind == 1 && nan) put(x, b, NAN);
      // Below the least amax, but no subnormals of f16, which XLA's threads flush
      if (kind == 2) each_element(x, b, [](i64 r, i64 c) { return ((r + c) % 2 ? -1 : 1) * (7e-5 + 1e-5 * double(c % 3)); });
      if (kind == 3) put(x, b, (i + j) % 2 ? INFINITY : -INFINITY);
      if (kind == 4) put(x, b, -largest_finite(x.dtype));
    }
}

void put_bools(const TensorView& x, Random& random) {
  const u8 others[] = {1, 128, 255, u8(1 + random.below(255))};
  for (i64 i = 0; i < x.shape[0]; ++i) {
    const i64 at[] = {i};
    *static_cast<u8*>(x.at(at)) = random.below(2) ? 0 : others[random.below(4)];
  }
}

}  // namespace quern::quant
