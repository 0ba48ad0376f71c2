// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <string>
#include <string_view>

#include "quern/base/api.h"
#include "quern/kit/abi.h"

namespace quern {

/// The glossary of axes: one word for one quantity in all ops, error texts, tables and traces. An op of a user may bring
/// words of its own: axis_of("word") makes them.
enum class Axis : u8 {
  tokens,        ///< rows of activations
  hidden,        ///< width of the residual stream
  intermediate,  ///< width of the gated MLP
  heads_q,       ///< query heads
  heads_kv,      ///< key and value heads
  head_dim,      ///< elements of a head
  batch,         ///< requests
  seq_q,         ///< query tokens of a request
  seq_kv,        ///< cached tokens of a request
  pages,         ///< pages of the KV cache
  page_size,     ///< tokens of a page
  max_pages,     ///< columns of a dense page table
  page_indices,  ///< entries of a CSR page table
  positions,     ///< bound of token positions in index tensors
  m,             ///< rows of a GEMM's result
  n,             ///< columns of a GEMM's result
  k,             ///< summed axis of a GEMM
  groups,        ///< scales of a row; matrices of a grouped GEMM
  scale_rows_a,     ///< rows of the scales of a GEMM's a
  scale_columns_a,  ///< their columns
  scale_rows_b,     ///< rows of the scales of b
  scale_columns_b,  ///< their columns
  max_m,            ///< rows that a matrix of a grouped GEMM has room for
  known_count,
};
constexpr int kMaxAxes = 48;

QN_API const char* name(Axis axis);
/// The axis of that word; a word outside the glossary gets the next free number. Error{internal} past kMaxAxes.
QN_API Axis axis_of(std::string_view word);

}  // namespace quern
