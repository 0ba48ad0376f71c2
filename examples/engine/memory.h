// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <initializer_list>
#include <string>
#include <vector>

#include "quern/device/device.h"

namespace engine {

using quern::DType, quern::i32, quern::i64, quern::u8, quern::u64, quern::TensorView;

/// Tensors on a device, all released together.
class Memory {
 public:
  explicit Memory(quern::Device& device) : device_(device) {}
  ~Memory();
  Memory(const Memory&) = delete;

  /// Row-major. `label` names it in reports of checked devices. Throws quern::Error{device} when the device has no room.
  TensorView tensor(DType dtype, std::initializer_list<i64> shape, const std::string& label);
  /// Releases all. Throws quern::Error{device} where the device fails.
  void clear();
  i64 bytes() const { return bytes_; }
  quern::Device& device() const { return device_; }

 private:
  quern::Device& device_;
  std::vector<void*> blocks_;
  i64 bytes_ = 0;
};

/// The first `rows` rows of a tensor.
inline TensorView first_rows(const TensorView& view, i64 rows) { return view.slice(0, 0, rows); }
/// Columns [begin, end) of a matrix as [rows, heads, head_dim].
TensorView heads_of(const TensorView& matrix, i64 begin, i64 heads, i64 head_dim);
/// The same elements of a contiguous tensor in another shape.
TensorView reshaped(const TensorView& view, std::initializer_list<i64> shape);

}  // namespace engine
