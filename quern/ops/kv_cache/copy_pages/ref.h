// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/ref.h"
#include "quern/ops/kv_cache/copy_pages.h"

namespace quern::kv_cache {

template <class Real = double>
void copy_pages_ref(const CopyPagesArgs& a, const CopyPagesArgs&) {
  const Ref<Real> src_pages(a.src_pages), dst_pages(a.dst_pages);
  const TensorView caches[] = {a.k_cache, a.v_cache};
  for (const TensorView& view : caches) {
    const RefOut<Real> cache(view);
    if (!cache.present()) continue;
    const i64 pages = cache.dim(0);
    for (i64 i = 0; i < src_pages.dim(0); ++i) {
      const i64 src = src_pages.index(i), dst = dst_pages.index(i);
      if (src < 0 || src >= pages || dst < 0 || dst >= pages) continue;
      for (i64 s = 0; s < cache.dim(1); ++s)
        for (i64 h = 0; h < cache.dim(2); ++h)
          for (i64 d = 0; d < cache.dim(3); ++d) cache.set(cache.get(src, s, h, d), dst, s, h, d);
    }
  }
}

}  // namespace quern::kv_cache
