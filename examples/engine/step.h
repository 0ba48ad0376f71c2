// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What one step of the engine computes, as arrays that lie in one block on the host and in one on the device: a step uploads them by one
// copy.
#pragma once
#include <span>
#include <vector>

#include "memory.h"

namespace engine {

/// The most that a step holds.
struct StepLimits {
  i64 tokens = 0;  ///< new tokens of all requests
  i64 rows = 0;    ///< requests
  i64 pages = 0;   ///< of a request
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
  /// Copies what changed: all arrays but the page table, and of it the rows that were marked.
  void upload(quern::Stream stream);
  /// Row of the page table, to be written; it is uploaded with the next step.
  std::span<i32> pages_of_row(i64 row);

  StepArray<i64> seeds, offsets;               ///< [rows]
  StepArray<i32> ids, positions, slots;        ///< [tokens]; slots: page * page_size + offset, or -1
  StepArray<i32> q_indptr;                     ///< [rows + 1]
  StepArray<i32> seq_lens, last, top_k;        ///< [rows]; last: the row's last token of this step
  StepArray<i32> page_table;                   ///< [rows, pages]; clear() leaves it: rows of length 0 have none
  StepArray<float> temperature, top_p, min_p;  ///< [rows]

 private:
  template <class T> void place(StepArray<T>& array, DType dtype, std::initializer_list<i64> shape);
  quern::Device& device_;
  std::vector<u64> host_;
  TensorView block_;
  i64 used_ = 0, before_table_ = 0;          ///< bytes of all arrays, of those before the page table
  i64 first_changed_ = 0, end_changed_ = 0;  ///< rows of the page table
};

}  // namespace engine
