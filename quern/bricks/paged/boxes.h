// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What the host says of tiles that come by TMA: when they can, and the tensor maps.
#pragma once
#include "quern/base/tensor_view.h"
#include "quern/bricks/paged/boxes_spec.h"
#include "quern/device/device.h"
#include "quern/op/problem.h"

namespace quern::paged {

/// Why rows of `tensor` cannot be copied by TMA. `subject`: "alignment of k".
inline Rejection no_boxes(const char* subject, const TensorFacts& tensor) {
  if (tensor.alignment >= 16) return {};
  return {subject, tensor.alignment, "{} bytes for every row", 16};
}
/// Why tiles of `tokens` tokens cannot come from such pages.
inline Rejection no_boxes_of_pages(i64 page_size, i32 tokens) {
  if (box_rows(page_size, tokens) >= kLeastBoxRows) return {};
  return {"page_size", page_size, "a multiple of {}", kLeastBoxRows};
}

/// Map of a cache [pages, page_size, heads_kv, head_dim] with any strides of whole 16 bytes: head_dim, offset in the page, head, page. Its
/// boxes are box_rows() tokens of a column of one head.
QN_API TensorMapSpec paged_boxes(const TensorView& cache, i32 tokens);
/// Map of keys [tokens_kv, heads_kv, head_dim]: head_dim, token, head. Its boxes are `tokens` tokens of a column of one head.
QN_API TensorMapSpec contiguous_boxes(const TensorView& keys, i32 tokens);

}  // namespace quern::paged
