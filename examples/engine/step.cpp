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
  place(temperature, DType::f32, {limits.rows}), place(top_p, DType::f32, {limits.rows}), place(min_p, DType::f32, {limits.rows});
  before_table_ = used_;
  place(page_table, DType::i32, {limits.rows, limits.pages});
  clear();
}

void StepInputs::clear() {
  std::fill(host_.begin(), host_.begin() + before_table_ / 8, 0);
  std::fill(slots.host.begin(), slots.host.end(), -1);
}

std::span<i32> StepInputs::pages_of_row(i64 row) {
  first_changed_ = first_changed_ == end_changed_ ? row : std::min(first_changed_, row);
  end_changed_ = std::max(end_changed_, row + 1);
  return page_table.host.subspan(size_t(row * page_table.device.shape[1]), size_t(page_table.device.shape[1]));
}

void StepInputs::upload(quern::Stream stream) {
  device_.copy(block_.data, host_.data(), size_t(before_table_), stream);
  if (first_changed_ < end_changed_) {
    const TensorView rows = page_table.device.slice(0, first_changed_, end_changed_);
    device_.copy(rows.data, page_table.host.data() + first_changed_ * rows.shape[1], size_t(rows.numel()) * sizeof(i32), stream);
  }
  first_changed_ = end_changed_ = 0;
}

}  // namespace engine
