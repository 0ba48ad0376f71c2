// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/base/tensor_view.h"

#include "quern/base/error.h"

namespace quern {

TensorView::TensorView(void* data_, DType dtype_, std::initializer_list<i64> shape_, DeviceId device_)
    : TensorView(data_, dtype_, shape_.begin(), int(shape_.size()), device_) {}

TensorView::TensorView(void* data_, DType dtype_, const i64* shape_, int rank_, DeviceId device_)
    : data(data_), dtype(dtype_), rank(rank_), device(device_) {
  if (rank > kMaxRank)
    throw Error(ErrorKind::value, "TensorView", "shape", "has " + std::to_string(rank) + " dims",
                "at most " + std::to_string(kMaxRank));
  i64 stride = 1;
  for (int d = rank - 1; d >= 0; --d) {
    shape[d] = shape_[d];
    strides[d] = stride;
    stride *= max_of<i64>(shape[d], 1);
  }
}

i64 TensorView::extent() const {
  i64 last = 0;
  for (int d = 0; d < rank; ++d) {
    if (shape[d] == 0) return 0;
    last += (shape[d] - 1) * strides[d];
  }
  return present() ? last + 1 : 0;
}

bool TensorView::contiguous() const {
  i64 stride = 1;
  for (int d = rank - 1; d >= 0; --d) {
    if (shape[d] != 1 && strides[d] != stride) return false;
    stride *= shape[d];
  }
  return true;
}

TensorView TensorView::slice(int dim, i64 begin, i64 end) const {
  TensorView view = *this;
  view.data = static_cast<char*>(data) + begin * strides[dim] * size_of(dtype);
  view.shape[dim] = end - begin;
  return view;
}

std::string place_name(DeviceId id) { return id.type == DeviceType::cuda ? "cuda:" + std::to_string(id.index) : "the host"; }

std::string shape_string(const TensorView& view) {
  std::string s = "[";
  for (int d = 0; d < view.rank; ++d) s += (d ? ", " : "") + std::to_string(view.shape[d]);
  return s + "]";
}

static const char* const kNames[kDTypeCount] = {"f32", "f16", "bf16", "e4m3", "e5m2", "i32", "i64", "u8", "f64"};

const char* name(DType dtype) { return kNames[int(dtype)]; }

DType dtype_from_name(const std::string& text) {
  std::string known;
  for (int i = 0; i < kDTypeCount; ++i) {
    if (text == kNames[i]) return DType(i);
    known += (i ? ", " : "") + std::string(kNames[i]);
  }
  throw Error(ErrorKind::value, "", "dtype", "is '" + text + "'", "one of " + known);
}

}  // namespace quern
