// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "step.h"

#include <algorithm>

namespace engine {

template <class T> void StepInputs::place(StepArray<T>& array, DType dtype, std::initializer_list<i64> shape) {
  TensorView view(static_cast<u8*>(block_.data) + used_, dtype, shape, device_.id());
  array.host = {reinterpret_cast<T*>(reinterpret_cast<u8*>(host_.data()) + used_), size_t(view.numel())};
  array.device = view;
  used_ += (view.numel() * i64(sizeof(T)) + 15) / 16 * 16;
}

StepInputs::StepInputs(const StepLimits& limits, Memory& memory) : device_(memory.device()) {
  const i64 arrays = 3 * limits.tokens + limits.rows * (limits.pages + 11) + 64;  // of 4 bytes, with room for 16 bytes' alignment
  host_.assign(size_t(arrays / 2 + 1), 0);
  block_ = memory.tensor(DType::u8, {i64(host_.size() * 8)}, "step inputs");
  place(seeds, DType::i64, {limits.rows}), place(offsets, DType::i64, {limits.rows});
  place(ids, DType::i32, {limits.tokens}), place(positions, DType::i32, {limits.tokens}), place(slots, DType::i32, {limits.tokens});
  place(q_indptr, DType::i32, {limits.rows + 1});
  place(seq_lens, DType::i32, {limits.rows}), place(last, DType::i32, {limits.rows}), place(top_k, DType::i32, {limits.rows});
  place(page_table, DType::i32, {limits.rows, limits.pages});
  place(temperature, DType::f32, {limits.rows}), place(top_p, DType::f32, {limits.rows}), place(min_p, DType::f32, {limits.rows});
  clear();
}

void StepInputs::clear() {
  std::fill(host_.begin(), host_.end(), 0);
  std::fill(slots.host.begin(), slots.host.end(), -1);
}

void StepInputs::upload(quern::Stream stream) { device_.copy(block_.data, host_.data(), size_t(used_), stream); }

}  // namespace engine
