// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <initializer_list>
#include <string>

#include "quern/base/api.h"
#include "quern/kit/abi.h"

namespace quern {

constexpr int kMaxRank = 5;

/// Where memory lies. Values are DLPack's device types.
enum class DeviceType : i32 { cpu = 1, cuda = 2 };
struct DeviceId {
  DeviceType type = DeviceType::cpu;
  i32 index = 0;
  friend bool operator==(const DeviceId&, const DeviceId&) = default;
};
/// "cuda:1", "the host".
std::string place_name(DeviceId id);

/// A tensor that somebody else owns: pointer, dtype, shape and strides in elements, device. A default-made view (rank 0,
/// no data) stands for an absent optional tensor. Host (cpu) tensors run on the emulated device.
struct QN_API TensorView {
  void* data = nullptr;
  DType dtype = DType::f32;
  i32 rank = 0;
  DeviceId device;
  i64 shape[kMaxRank] = {};
  i64 strides[kMaxRank] = {};  ///< in elements

  TensorView() = default;
  /// Row-major contiguous. Throws Error{value} when more than kMaxRank extents are given, or a negative one.
  TensorView(void* data, DType dtype, std::initializer_list<i64> shape, DeviceId device = {});
  TensorView(void* data, DType dtype, const i64* shape, int rank, DeviceId device = {});

  bool present() const { return rank > 0; }
  i64 numel() const {
    i64 n = 1;
    for (int d = 0; d < rank; ++d) n *= shape[d];
    return n;
  }
  /// Elements from data to one past the last element reached by shape and strides (0 when empty).
  i64 extent() const;
  bool contiguous() const;
  /// Address of an element; index has rank entries. No bounds check.
  void* at(const i64* index) const {
    i64 offset = 0;
    for (int d = 0; d < rank; ++d) offset += index[d] * strides[d];
    return static_cast<char*>(data) + offset * size_of(dtype);
  }
  /// The same memory restricted to [begin, end) of a dimension. Throws Error{value} unless 0 <= begin <= end <= shape[dim].
  TensorView slice(int dim, i64 begin, i64 end) const;
};

/// "[2, 4096]".
QN_API std::string shape_string(const TensorView& view);
/// "bf16". Throws Error{value} for what is no DType.
QN_API const char* name(DType dtype);
/// Inverse of name(DType). Throws Error{value}, listing the known names.
QN_API DType dtype_from_name(const std::string& text);

}  // namespace quern
