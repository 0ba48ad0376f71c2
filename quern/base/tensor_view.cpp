// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/base/tensor_view.h"

#include "quern/base/error.h"

namespace quern {

TensorView::TensorView(void* data_, DType dtype_, std::initializer_list<i64> shape_, DeviceId device_)
    : TensorView(data_, dtype_, shape_.begin(), int(shape_.size()), device_) {}

TensorView::TensorView(void* data_, DType dtype_, const i64* shape_, int rank_, DeviceId device_)
    : data(data_), dtype(dtype_), rank(rank_), device(device_) {
  if (rank < 0 || rank > kMaxRank)
    throw Error(ErrorKind::value, "TensorView", "shape", "has " + std::to_string(rank_) + " dims",
                rank_ < 0 ? "0 or more" : "at most " + std::to_string(kMaxRank));
  for (int d = 0; d < rank; ++d)
    if (shape_[d] < 0)
      throw Error(ErrorKind::value, "TensorView", "shape", "has " + std::to_string(shape_[d]) + " at dim " + std::to_string(d),
                  "0 or more");
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
  if (dim < 0 || dim >= rank)
    throw Error(ErrorKind::value, "TensorView::slice", "dim", "is " + std::to_string(dim) + " of " + shape_string(*this),
                rank > 0 ? "0 to " + std::to_string(rank - 1) : "a view with dims");
  if (begin < 0 || begin > end || end > shape[dim])
    throw Error(
        ErrorKind::value, "TensorView::slice", "begin, end",
        "are " + std::to_string(begin) + " and " + std::to_string(end) + " at dim " + std::to_string(dim) + " of " + shape_string(*this),
        "0 <= begin <= end <= " + std::to_string(shape[dim]));
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

static const char* const kNames[kDTypeCount] = {"f32", "f16", "bf16", "e4m3", "e5m2", "i32", "i64", "u8", "f64", "i8"};

const char* name(DType dtype) {
  if (int(dtype) >= 0 && int(dtype) < kDTypeCount) return kNames[int(dtype)];
  throw Error(ErrorKind::value, "", "dtype", "is " + std::to_string(int(dtype)), "0 to " + std::to_string(kDTypeCount - 1));
}

DType dtype_from_name(const std::string& text) {
  std::string known;
  for (int i = 0; i < kDTypeCount; ++i) {
    if (text == kNames[i]) return DType(i);
    known += (i ? ", " : "") + std::string(kNames[i]);
  }
  throw Error(ErrorKind::value, "", "dtype", "is '" + text + "'", "one of " + known);
}

}  // namespace quern
