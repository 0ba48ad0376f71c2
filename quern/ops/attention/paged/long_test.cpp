// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Long contexts in FP8 caches: a key is found wherever it lies among 131072, and errors do not grow with the length.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "quern/base/host_dtype.h"
#include "quern/op/random.h"
#include "quern/op/ref.h"
#include "quern/ops/attention/paged/ref.h"

namespace quern::attention {
namespace {

constexpr i64 kHeads = 8, kDim = 64, kPage = 64;

/// Requests of one KV head whose keys lie in pages in descending order.
struct LongCall {
  i64 pages_each, tokens;
  std::vector<u8> k, v;
  std::vector<u16> q, out;
  std::vector<float> lse;
  std::vector<i32> table, lengths, indptr;
  PagedArgs args;
  LongCall(std::vector<i32> lengths_of, i64 capacity, i64 queries)
      : pages_each(capacity / kPage), tokens(queries * i64(lengths_of.size())), lengths(std::move(lengths_of)) {
    const i64 batch = i64(lengths.size()), pages = batch * pages_each;
    k.resize(size_t(pages * kPage * kDim)), v.resize(k.size()), q.resize(size_t(tokens * kHeads * kDim)), out.resize(q.size()),
        lse.resize(size_t(tokens * kHeads)), table.resize(size_t(pages));
    for (i64 i = 0; i < pages; ++i) table[size_t(i)] = i32(pages - 1 - i);
    for (i64 b = 0; b <= batch; ++b) indptr.push_back(i32(b * queries));
    args = {.out = {out.data(), DType::f16, {tokens, kHeads, kDim}},
            .out_lse = {lse.data(), DType::f32, {tokens, kHeads}},
            .q = {q.data(), DType::f16, {tokens, kHeads, kDim}},
            .k_cache = {k.data(), DType::e4m3, {pages, kPage, 1, kDim}},
            .v_cache = {v.data(), DType::e4m3, {pages, kPage, 1, kDim}},
            .page_table = {table.data(), DType::i32, {batch, pages_each}},
            .seq_lens = {lengths.data(), DType::i32, {batch}}};
    if (queries > 1) args.q_indptr = {indptr.data(), DType::i32, {batch + 1}}, args.causal = true;
  }
  u8* row(std::vector<u8>& cache, i64 b, i64 key) {
    return cache.data() + (table[size_t(b * pages_each + key / kPage)] * kPage + key % kPage) * kDim;
  }
};

/// Each query head has a key of its own to find: the first and the last one, at the ends of pages, chunks and of 16 bits, and between them.
class attention_paged_long : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(variants, attention_paged_long, ::testing::Values("portable", "few_rows_sm90"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(attention_paged_long, a_key_is_found_among_131072) {
  constexpr i64 kLength = 131072, kNeedles[kHeads] = {0, kLength - 1, 63, 64, 65535, 65536, 99999, 1023};
  LongCall call({i32(kLength)}, kLength, 1);
  Random random(3);
  for (u8& x : call.k) x = random.below(2) ? 0x38 : 0xb8;                        // 1 and -1
  for (u8& x : call.v) x = u8(0x30 + random.below(8) + 0x80 * random.below(2));  // 0.5 to 0.9375 of both signs
  // A head's logit at its needle is 32, and of others about 4 * N(0, 1): of 131072 these are 1e-5 of the sum
  for (i64 h = 0; h < kHeads; ++h)
    for (i64 d = 0; d < kDim; ++d)
      store_value(&call.q[size_t(h * kDim + d)], DType::f16, 4 * load_value(call.row(call.k, 0, kNeedles[h]) + d, DType::e4m3));
  std::memset(call.out.data(), 0xff, call.out.size() * 2), std::memset(call.lse.data(), 0xff, call.lse.size() * 4);
  paged(call.args, {.variant = GetParam()});
  for (i64 h = 0; h < kHeads; ++h) {
    EXPECT_NEAR(call.lse[size_t(h)], 32 / std::log(2.0), 1e-4) << "head " << h;
    for (i64 d = 0; d < kDim; ++d)
      EXPECT_NEAR(Ref(call.args.out)(0, h, d), load_value(call.row(call.v, 0, kNeedles[h]) + d, DType::e4m3), 1e-3)
          << "head " << h << " d " << d << ", of key " << kNeedles[h];
  }
}

/// Values are positive, so that what is lost of each of many probabilities adds up. One bound for all lengths: the result's rounding, and
/// half of it for what remains of the probabilities' own.
void expect_errors_that_do_not_grow(const char* variant, std::vector<i32> lengths, i64 queries) {
  LongCall call(lengths, *std::max_element(lengths.begin(), lengths.end()), queries);
  Random random(5);
  for (u8& x : call.k) x = u8(0x20 + random.below(0x20) + 0x80 * random.below(2));
  for (u8& x : call.v) x = u8(0x30 + random.below(8));
  for (u16& x : call.q) store_value(&x, DType::f16, random.uniform());
  std::memset(call.out.data(), 0xff, call.out.size() * 2), std::memset(call.lse.data(), 0xff, call.lse.size() * 4);
  paged(call.args, {.variant = variant});
  PagedArgs truth = call.args;
  std::vector<double> out(call.out.size(), 77), lse(call.lse.size(), 77);
  truth.out = {out.data(), DType::f64, {call.tokens, kHeads, kDim}}, truth.out_lse = {lse.data(), DType::f64, {call.tokens, kHeads}};
  paged_ref(truth, {});
  for (size_t b = 0; b < lengths.size(); ++b) {
    double worst = 0, worst_lse = 0;
    const size_t rows = size_t(queries * kHeads), first = b * rows;
    for (size_t i = first * kDim; i < (first + rows) * kDim; ++i)
      worst = std::max(worst, std::fabs(load_value(&call.out[i], DType::f16) / out[i] - 1));
    for (size_t i = first; i < first + rows; ++i) worst_lse = std::max(worst_lse, std::fabs(double(call.lse[i]) - lse[i]));
    EXPECT_LT(worst, 0x1p-11 + 0x1p-12) << variant << " of " << lengths[b] << " keys";
    EXPECT_LT(worst_lse, 0x1p-16) << variant << " of " << lengths[b] << " keys";
  }
}

TEST_P(attention_paged_long, errors_do_not_grow_with_the_length) {
  expect_errors_that_do_not_grow(GetParam(), {256, 2048, 16384, 65536}, 1);
}

/// By the kernel of many rows: 72 of a request.
TEST_P(attention_paged_long, errors_of_many_rows_do_not_grow_with_the_length) {
  expect_errors_that_do_not_grow(GetParam(), {256, 1024, 4096}, 9);
}

}  // namespace
}  // namespace quern::attention
