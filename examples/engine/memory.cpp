// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "memory.h"

#include <algorithm>

#include "quern/base/error.h"

namespace engine {

TensorView Memory::tensor(DType dtype, std::initializer_list<i64> shape, const std::string& label) {
  TensorView view(nullptr, dtype, shape, device_.id());
  const i64 bytes = std::max<i64>(view.numel() * quern::size_of(dtype), 16);
  view.data = device_.allocate(size_t(bytes), label.c_str());
  blocks_.push_back(view.data);
  bytes_ += bytes;
  return view;
}

Memory::~Memory() {
  try {
    clear();
  } catch (const quern::Error&) {  // the device has failed; what made it fail was thrown before
  }
}

void Memory::clear() {
  for (void* block : blocks_) device_.release(block);
  blocks_.clear();
  bytes_ = 0;
}

TensorView heads_of(const TensorView& matrix, i64 begin, i64 heads, i64 head_dim) {
  TensorView view = matrix.slice(1, begin, begin + heads * head_dim);
  view.rank = 3;
  view.shape[1] = heads, view.shape[2] = head_dim;
  view.strides[1] = head_dim, view.strides[2] = 1;
  return view;
}

TensorView reshaped(const TensorView& view, std::initializer_list<i64> shape) { return {view.data, view.dtype, shape, view.device}; }

}  // namespace engine
