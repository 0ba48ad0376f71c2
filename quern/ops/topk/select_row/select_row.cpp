// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/topk/select_row/select_row.h"

#include <limits>

namespace quern::topk {

const jit::Kernel<SelectConfig, SelectParams> row_kernel{"quern/ops/topk/select_row/kernel.cuh", "select_row"};

void generate_rows(const TensorView& x, const TensorView& lengths, const TensorView& row_starts, Random& random) {
  const double inf = std::numeric_limits<double>::infinity(),
               few[] = {0.0, -0.0, 1, -1, inf, -inf, std::numeric_limits<double>::quiet_NaN(), 2};
  // In rows of the last kind a quarter of the elements is large, some of every thread's: its largest element says nothing of how many are
  for (i64 row = 0, kind = random.below(5); row < x.shape[0]; ++row, ++kind) {
    for (i64 i = 0; i < x.shape[1]; ++i) {
      const i64 at[] = {row, i};
      const double normal = random.uniform() + random.uniform() + random.uniform();
      store_element(x, at,
                    kind % 5 == 0                            ? 0.5
                    : kind % 5 == 1                          ? few[random.below(8)]
                    : kind % 5 == 2 && random.below(3) == 0  ? -inf
                    : kind % 5 == 4 && (i / 32 + i) % 4 == 0 ? normal + 8
                                                             : normal);
    }
    const i64 start = row_starts.present() ? random.below(x.shape[1] + 1) : 0, at[] = {row};
    if (row_starts.present()) store_integer(row_starts.at(at), DType::i32, start);
    if (lengths.present()) store_integer(lengths.at(at), DType::i32, random.below(5) == 0 ? 0 : random.below(x.shape[1] - start + 1));
  }
}

std::vector<CaseAxis> rows_cases(std::vector<CaseAxis> others) {
  std::vector<CaseAxis> all = {{"rows", {23, 1, 0, 5}},
                               {"length", {1000, 1, 2, 33, 513, 4099, 0}},
                               {"k", {8, 1, 0, 33, 1000, 4200, 1400}},
                               {"x.dtype", {DType::f32, DType::bf16, DType::f16}},
                               {"lengths.present", {true, false}},
                               {"row_starts.present", {false, true}},
                               {"x.pad", {0, 8, 1}}};
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

}  // namespace quern::topk
