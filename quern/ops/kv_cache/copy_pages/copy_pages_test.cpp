// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "quern/op/contents.h"
#include "quern/op/schema.h"
#include "quern/ops/kv_cache/copy_pages.h"

namespace quern::kv_cache {
namespace {

/// 6 pages of 2 slots, 3 heads and 5 elements; each element tells its place.
struct kv_cache_copy_pages : testing::Test {
  static constexpr i64 kPages = 6, kSlots = 2, kHeads = 3, kWidth = 5, kPage = kSlots * kHeads * kWidth;
  std::vector<float> k = std::vector<float>(kPages * kPage), v = k;
  std::vector<long long> src, dst;
  void SetUp() override {
    for (size_t i = 0; i < k.size(); ++i) k[i] = float(i), v[i] = -float(i);
  }
  CopyPagesArgs args(std::vector<long long> from, std::vector<long long> to) {
    src = std::move(from), dst = std::move(to);
    return {.k_cache = TensorView(k.data(), DType::f32, {kPages, kSlots, kHeads, kWidth}),
            .v_cache = TensorView(v.data(), DType::f32, {kPages, kSlots, kHeads, kWidth}),
            .src_pages = TensorView(src.data(), DType::i64, {i64(src.size())}),
            .dst_pages = TensorView(dst.data(), DType::i64, {i64(dst.size())})};
  }
  /// The page that page p of a cache now holds.
  i64 holds(const std::vector<float>& cache, i64 page, float sign) {
    const i64 from = i64(sign * cache[size_t(page * kPage)]) / kPage;
    for (i64 i = 0; i < kPage; ++i)
      if (cache[size_t(page * kPage + i)] != sign * float(from * kPage + i)) return -1;
    return from;
  }
};

TEST_F(kv_cache_copy_pages, a_page_is_read_by_several_copies_and_others_stay) {
  copy_pages(args({4, 4, -1, 5}, {0, 2, 1, -3}));
  const i64 expected[] = {4, 1, 4, 3, 4, 5};
  for (i64 p = 0; p < kPages; ++p) {
    EXPECT_EQ(holds(k, p, 1), expected[p]) << p;
    EXPECT_EQ(holds(v, p, -1), expected[p]) << p;
  }
}

/// i64 pages are not cut to 32 bits.
TEST_F(kv_cache_copy_pages, pages_beyond_the_cache_are_skipped) {
  copy_pages(args({6, 4, (1ll << 32) + 4}, {0, (1ll << 32) + 1, 2}));
  for (i64 p = 0; p < kPages; ++p) EXPECT_EQ(holds(k, p, 1), p);
}

TEST_F(kv_cache_copy_pages, one_cache_alone) {
  CopyPagesArgs a = args({5}, {1});
  a.v_cache = {};
  copy_pages(a);
  EXPECT_EQ(holds(k, 1, 1), 5);
  EXPECT_EQ(holds(v, 1, -1), 1);
}

/// Slots and heads exchanged in memory: HND.
TEST_F(kv_cache_copy_pages, strides_of_each_cache_are_its_own) {
  CopyPagesArgs a = args({5}, {1});
  a.v_cache.strides[1] = kWidth, a.v_cache.strides[2] = kSlots * kWidth;
  copy_pages(a);
  EXPECT_EQ(holds(k, 1, 1), 5);
  EXPECT_EQ(holds(v, 1, -1), 5);
}

TEST_F(kv_cache_copy_pages, the_contract_names_races) {
  const Op& op = find_op("kv_cache.copy_pages");
  const auto breach = [&](const CopyPagesArgs& a) {
    const std::vector<Breach> found = contents_breaches(op, &a, bind(op, &a, {}));
    return found.empty() ? std::string("none") : to_string(found[0]);
  };
  EXPECT_EQ(breach(args({4, 4, -1, 5}, {0, 2, 1, -3})), "none");
  EXPECT_EQ(breach(args({4, 5}, {1, 1})), "`dst_pages`[1] is 1, expected a page that no other copy writes: it is `dst_pages`[0]");
  EXPECT_EQ(breach(args({4, -1}, {1, 1})), "none") << "a copy that is skipped writes nothing";
  EXPECT_EQ(breach(args({4, 5}, {0, 4})), "`dst_pages`[1] is 4, expected a page that no copy reads: it is `src_pages`[0]");
  EXPECT_EQ(breach(args({6}, {0})), "`src_pages`[0] is 6, expected 0 to 5 or negative (in [0, pages))");
}

}  // namespace
}  // namespace quern::kv_cache
