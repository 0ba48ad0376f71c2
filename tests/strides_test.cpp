// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Layouts of a KV cache are strides, as docs/calls.md shows them: the same bits, and a cache that is handed as it lies is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "quern/base/error.h"
#include "quern/base/host_dtype.h"
#include "quern/ops/attention/paged.h"

namespace quern {
namespace {

constexpr i64 pages = 4, page_size = 16, heads_kv = 2, heads_q = 8, head_dim = 64, batch = 2;

double element(i64 page, i64 row, i64 head, i64 d) { return double((page * 7 + row * 5 + head * 3 + d) % 32) / 32 - 0.5; }

struct Call {
  std::vector<u16> q = std::vector<u16>(batch * heads_q * head_dim), out = q;
  std::vector<i32> table = {0, 1, 3, 2}, lens = {30, 9};

  Call() {
    for (size_t i = 0; i < q.size(); ++i) store_value(&q[i], DType::bf16, double(i % 13) / 13 - 0.5);
  }
  const std::vector<u16>& run(const TensorView& k, const TensorView& v) {
    attention::PagedArgs args;
    args.out = {out.data(), DType::bf16, {batch, heads_q, head_dim}};
    args.q = {q.data(), DType::bf16, {batch, heads_q, head_dim}};
    args.k_cache = k, args.v_cache = v;
    args.page_table = {table.data(), DType::i32, {batch, 2}};
    args.seq_lens = {lens.data(), DType::i32, {batch}};
    attention::paged(args);
    return out;
  }
};

class op_strides : public ::testing::Test {
 protected:
  void SetUp() override {
    for (i64 p = 0; p < pages; ++p)
      for (i64 r = 0; r < page_size; ++r)
        for (i64 h = 0; h < heads_kv; ++h)
          for (i64 d = 0; d < head_dim; ++d) {
            store_value(&nhd[size_t(((p * page_size + r) * heads_kv + h) * head_dim + d)], DType::bf16, element(p, r, h, d));
            store_value(&hnd[size_t(((p * heads_kv + h) * page_size + r) * head_dim + d)], DType::bf16, element(p, r, h, d));
          }
  }
  std::vector<u16> nhd = std::vector<u16>(pages * page_size * heads_kv * head_dim), hnd = nhd;
};

TEST_F(op_strides, of_a_cache_give_the_same_bits) {
  const TensorView as_named(nhd.data(), DType::bf16, {pages, page_size, heads_kv, head_dim});
  void* const memory = hnd.data();
  TensorView k(memory, DType::bf16, {pages, heads_kv, page_size, head_dim});  // as it lies
  std::swap(k.shape[1], k.shape[2]);                                          // as the op names it: page_size, then heads
  std::swap(k.strides[1], k.strides[2]);
  EXPECT_EQ(Call().run(k, k), Call().run(as_named, as_named));
}

TEST_F(op_strides, of_a_cache_that_is_handed_as_it_lies) {
  const TensorView as_it_lies(hnd.data(), DType::bf16, {pages, heads_kv, page_size, head_dim});
  try {
    Call().run(as_it_lies, as_it_lies);
    FAIL() << "an HND cache was taken for NHD";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(),
                 "attention.paged: `heads_q` is 8, expected a multiple of heads_kv=16 (heads_kv was set by `k_cache` [4, 2, 16, 64])");
  }
}

}  // namespace
}  // namespace quern
