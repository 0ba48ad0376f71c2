// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What one step of the engine computes, as arrays that lie in one block on the host and in one on the device: a step uploads them by one copy.
#pragma once
#include <span>
#include <vector>

#include "memory.h"

namespace engine {

/// The most that a step holds.
struct StepLimits {
  i64 tokens = 0;       ///< new tokens of all requests
  i64 rows = 0;         ///< requests
  i64 pages = 0;        ///< of a request
};

/// An array on the host and its place on the device.
template <class T> struct StepArray {
  std::span<T> host;
  TensorView device;
};

class StepInputs {
 public:
  StepInputs(const StepLimits& limits, Memory& memory);
  /// Rows and tokens that no request has: token 0 at position 0, stored nowhere, of a request of length 0.
  void clear();
  void upload(quern::Stream stream);

  StepArray<i64> seeds, offsets;                                                   ///< [rows]
  StepArray<i32> ids, positions, slots;                                            ///< [tokens]; slots: page * page_size + offset, or -1
  StepArray<i32> q_indptr;                                                         ///< [rows + 1]
  StepArray<i32> seq_lens, last, top_k;                                            ///< [rows]; last: the row's last token of this step
  StepArray<i32> page_table;                                                       ///< [rows, pages]
  StepArray<float> temperature, top_p, min_p;                                      ///< [rows]

 private:
  template <class T> void place(StepArray<T>& array, DType dtype, std::initializer_list<i64> shape);
  quern::Device& device_;
  std::vector<u64> host_;
  TensorView block_;
  i64 used_ = 0;
};

}  // namespace engine
