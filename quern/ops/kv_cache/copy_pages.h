// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::kv_cache {

struct CopyPagesArgs {
  TensorView k_cache;    ///< [pages, page_size, heads_kv, head_dim], of any floating dtype
  TensorView v_cache;    ///< the same; absent where there is one cache, as of MLA
  TensorView src_pages;  ///< [copies] i32 or i64: the page that is read; negative: the copy is skipped
  TensorView dst_pages;  ///< [copies] of the same dtype: the page that is written; negative: the copy is skipped
};

/// cache[dst_pages[i]] = cache[src_pages[i]] for each i, of both caches, bit by bit: what a scheduler does where requests that share a
/// prefix part within a page. The caches are strided, so NHD, HND and combined layouts are views. A page may be read by many copies, but no
/// page is written twice, or read and written: such copies are a race. Pages that the cache does not have are skipped; checked emulated
/// devices report them and races. Throws Error.
QN_API void copy_pages(const CopyPagesArgs& args, const RunOptions& options = {});

}  // namespace quern::kv_cache
