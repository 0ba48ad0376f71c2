// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::topk {

struct PageTableTransformArgs {
  TensorView out;                    ///< [rows, k] i32: slots of the tokens; -1 where a row has fewer
  TensorView indices;                ///< optional [rows, k] i32: the indices that the slots are of; -1 where a row has fewer
  TensorView x;                      ///< [rows, length] f32, f16 or bf16: scores
  TensorView page_table;             ///< [batch, max_pages] i32
  TensorView lengths;                ///< optional [rows] i32: elements of each row; absent: length
  TensorView row_starts;             ///< optional [rows] i32: where in x each row begins, from which indices count; absent: 0
  TensorView row_to_batch;           ///< optional [rows] i32: request of each row; absent: row r is of request r
  TensorView page_table_row_starts;  ///< optional [rows] i32: column of page_table that has a row's first tokens; absent: 0. Given where
                                     ///< row_starts is
  i64 k = 1;                         ///< from 0; more than a row has: the rest is -1
  i32 page_size = 1;                 ///< tokens of a page
};

/// The slots of the k largest scores of each row, in ascending order of their indices: out = page * page_size + index % page_size, page =
/// page_table[request, first + index / page_size], request = row_to_batch[row], first = page_table_row_starts[row]. The indices are those
/// that topk.select keeps: exactly k, of equal scores the lowest, NaN below -inf. A row of up to k elements keeps all of them, and its
/// scores are not read. A slot is -1 where the table has no such request or column, where the page is negative, and where the slot is
/// beyond i32. Throws Error.
QN_API void page_table_transform(const PageTableTransformArgs& args, const RunOptions& options = {});

}  // namespace quern::topk
