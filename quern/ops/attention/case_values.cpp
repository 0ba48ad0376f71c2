// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/attention/case_values.h"

#include <algorithm>
#include <limits>

namespace quern::attention {

i64 case_word(const Case& which, const char* name, i64 otherwise) {
  const auto at = which.find(name);
  return at == which.end() ? otherwise : i64(at->second);
}

void set_entry(const TensorView& view, i64 at, i64 value) {
  const i64 index[] = {at};
  store_integer(view.at(index), view.dtype, value);
}

i64 drawn_count(i64 fixed, i64 most, Random& random) {
  if (fixed >= 0) return fixed;
  const i64 edges[] = {0, 1, most, most - 1, 16, 17};
  return std::clamp<i64>(random.below(2) ? edges[random.below(6)] : random.below(most + 1), 0, most);
}

void derive_options(Case& which, const char* k, const char* v, i64 most_bits) {
  const bool bits = case_word(which, "bits", 0) != 0;
  which["mask.present"] = which["mask_indptr.present"] = bits;
  which["mask_bytes"] = bits ? double(ceil_div<i64>(most_bits, 8) + case_word(which, "batch", 1) + 2) : 0.0;
  const i64 fp8 = case_word(which, "fp8", 0);
  const DType dtype = DType(case_word(which, "q.dtype", i64(DType::bf16)));
  const DType stored = fp8 == 0 ? dtype : fp8 % 2 == 1 ? DType::e4m3 : DType::e5m2;
  const auto given = which.find(std::string(k) + ".dtype");  // by who types it
  which[std::string(v) + ".dtype"] = given == which.end() ? Scalar(i64(stored)) : given->second;
  which.emplace(std::string(k) + ".dtype", i64(stored));
  which["q.dtype"] = i64(fp8 > 2 ? stored : dtype), which["out.dtype"] = i64(dtype);
  const i64 scales = case_word(which, "scales", 0);
  which["q_scale.present"] = scales == 1 || scales == 3, which["k_scale.present"] = which["v_scale.present"] = scales >= 2;
  if (case_word(which, "causal", 0) != 0) which["window_right"] = -1;
}

void fill_mask(const TensorView& mask, Random& random) {
  for (i64 i = 0; mask.present() && i < mask.shape[0]; ++i) set_entry(mask, i, random.below(8) == 0 ? 0 : random.below(256));
}

void fill_scales(const Case& which, std::initializer_list<const TensorView*> scales, Random& random) {
  if (case_word(which, "proof", 0) != 0) return;
  for (const TensorView* scale : scales)
    for (i64 i = 0; scale->present() && i < scale->shape[0]; ++i)
      for (i64 j = 0; j < scale->shape[1]; ++j) {
        const i64 at[] = {i, j};
        store_element(*scale, at, 0.75 + 0.5 * random.uniform());
      }
}

void poison_rows(const TensorView& view, std::initializer_list<i64> at) {
  i64 index[kMaxRank];
  i64* const inner = std::copy(at.begin(), at.end(), index);
  const int d = int(inner - index);
  for (inner[0] = 0; inner[0] < view.shape[d]; ++inner[0])
    for (inner[1] = 0; inner[1] < view.shape[d + 1]; ++inner[1]) store_element(view, index, std::numeric_limits<double>::quiet_NaN());
}

}  // namespace quern::attention
