// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What prefill_sm90 must promise by force of its own structure: blocks that take many items, rings that go on over their ends, tiles of
// keys that others share, keys in parts.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "quern/base/host_dtype.h"
#include "quern/device/emulated.h"
#include "quern/op/ref.h"
#include "quern/op/variants.h"
#include "quern/ops/attention/paged/ref.h"
#include "quern/ops/attention/ragged/ref.h"
#include "quern/testing/check.h"

namespace quern::attention {
namespace {

using testing::CaseArgs;

RaggedArgs& ragged_args(CaseArgs& c) { return *static_cast<RaggedArgs*>(c.args()); }
PagedArgs& paged_args(CaseArgs& c) { return *static_cast<PagedArgs*>(c.args()); }

/// An H200 with so many multiprocessors: blocks take several items each.
std::unique_ptr<Device> device_of(i32 sms, const EmulatedOptions& how) {
  DeviceInfo info = device_info_of(Arch{});
  info.sms = sms;
  return make_emulated_device(info, how);
}
std::unique_ptr<Device> device_of(i32 sms, bool checked = false) { return device_of(sms, {.checked = checked, .os_threads = 1}); }
RunOptions on(Device& device) { return {.device = &device, .variant = "prefill_sm90"}; }

char* row_of(const TensorView& view, i64 row) { return static_cast<char*>(view.data) + row * view.strides[0] * size_of(view.dtype); }
/// Rows [from, from + count) of a tensor with dense rows, as bytes.
std::string rows_of(const TensorView& view, i64 from, i64 count) {
  return {row_of(view, from), size_t(count * view.strides[0] * size_of(view.dtype))};
}
void set_rows(const TensorView& view, i64 from, const std::string& bytes) { std::memcpy(row_of(view, from), bytes.data(), bytes.size()); }

/// Query tokens and keys of the first and the last of three requests, whatever the middle one shall not notice. Sizes grow by one token,
/// past the ends of tiles of rows and of keys.
struct Neighbours {
  i64 queries, keys, queries_behind, keys_behind;
};
constexpr Neighbours kNeighbours[] = {{0, 0, 0, 0},     {1, 1, 0, 3},    {2, 0, 1, 111}, {3, 16, 63, 112},
                                      {4, 17, 64, 113}, {65, 150, 2, 2}, {66, 151, 3, 1}};
constexpr i64 kQueries = 45, kKeys = 150;

TEST(prefill_sm90, rows_of_contiguous_keys_keep_their_bits_in_every_batch) {
  const auto one = device_of(1), three = device_of(3);
  for (const i64 group : {1, 3, 4, 7, 8}) {
    CaseArgs c(find_op("attention.ragged"),
               {{"batch", 3},
                {"heads_kv", 2},
                {"gqa", double(group)},
                {"head_dim", 64},
                {"queries", 66},
                {"keys", double(kKeys + 1)},
                {"causal", 0},
                {"spare", 0}},
               5);
    RaggedArgs& a = ragged_args(c);
    a.causal = true;
    const std::string q = rows_of(a.q, 0, kQueries), k = rows_of(a.k, 0, kKeys), v = rows_of(a.v, 0, kKeys);
    std::string alone;
    for (const Neighbours& n : kNeighbours) {
      const i32 queries[] = {0, i32(n.queries), i32(n.queries + kQueries), i32(n.queries + kQueries + n.queries_behind)},
                keys[] = {0, i32(n.keys), i32(n.keys + kKeys), i32(n.keys + kKeys + n.keys_behind)};
      std::memcpy(a.q_indptr.data, queries, sizeof queries), std::memcpy(a.kv_indptr.data, keys, sizeof keys);
      set_rows(a.q, n.queries, q), set_rows(a.k, n.keys, k), set_rows(a.v, n.keys, v);
      for (Device* device : {one.get(), three.get()}) {
        std::memset(a.out.data, 0xff, size_t(a.out.extent() * 2)), std::memset(a.out_lse.data, 0xff, size_t(a.out_lse.extent() * 4));
        ragged(a, on(*device));
        const std::string mine = rows_of(a.out, n.queries, kQueries) + rows_of(a.out_lse, n.queries, kQueries);
        if (alone.empty()) alone = mine;
        EXPECT_EQ(mine, alone) << "group " << group << " behind " << n.queries << " query tokens and " << n.keys << " keys";
      }
    }
    EXPECT_TRUE(std::isfinite(Ref(a.out_lse)(66 + kQueries - 1, 0)));
  }
}

/// Rows of one warp that belong to two requests. Beyond a maximum of 2^20 probabilities are rounded otherwise (make_probabilities). The
/// second request's logits are beyond it or infinite, which must not change the first one's rounding. That one's are equal ones of about
/// 2^16, where both roundings differ by up to 2^-8.
TEST(prefill_sm90, a_neighbour_with_huge_logits_changes_no_bit) {
  const auto device = device_of(1);
  CaseArgs c(find_op("attention.ragged"),
             {{"batch", 2}, {"heads_kv", 1}, {"gqa", 4}, {"head_dim", 64}, {"queries", 3}, {"keys", 40}, {"causal", 0}, {"spare", 0}}, 5);
  RaggedArgs& a = ragged_args(c);
  i64 at[3];
  for (at[0] = 0; at[0] < 3; ++at[0])
    for (at[1] = 0; at[1] < 4; ++at[1])
      for (at[2] = 0; at[2] < 64; ++at[2]) store_element(a.q, at, 0x1p16 * Ref(a.q)(at[0], at[1], at[2]));
  for (i64 key = 1; key < 40; ++key) set_rows(a.k, key, rows_of(a.k, 0, 1));
  const auto first = [&] {
    std::memset(a.out.data, 0xff, size_t(a.out.extent() * 2)), std::memset(a.out_lse.data, 0xff, size_t(a.out_lse.extent() * 4));
    ragged(a, on(*device));
    return rows_of(a.out, 0, 3) + rows_of(a.out_lse, 0, 3);
  };
  const std::string before = first();
  EXPECT_TRUE(std::isfinite(Ref(a.out_lse)(2, 3)));
  for (const double huge : {0x1p24, double(INFINITY)}) {
    for (at[0] = 3; at[0] < 6; ++at[0])
      for (at[1] = 0; at[1] < 4; ++at[1])
        for (at[2] = 0; at[2] < 64; ++at[2]) store_element(a.q, at, huge);
    EXPECT_EQ(first(), before) << huge;
  }
}

/// Pages of 16 tokens come as boxes, pages of 7 are gathered.
TEST(prefill_sm90, rows_of_pages_keep_their_bits_in_every_batch) {
  const auto one = device_of(1), three = device_of(3);
  for (const auto& [group, page_size] : {std::pair<i64, i64>{1, 16}, {3, 16}, {4, 16}, {7, 16}, {8, 16}, {3, 7}, {4, 7}}) {
    CaseArgs c(find_op("attention.paged"),
               {{"batch", 3},
                {"heads_kv", 2},
                {"gqa", double(group)},
                {"head_dim", 64},
                {"queries", 66},
                {"capacity", double(kKeys + 10)},
                {"length", double(kKeys + 10)},
                {"page_size", double(page_size)},
                {"causal", 0},
                {"spare", 0}},
               5);
    PagedArgs& a = paged_args(c);
    a.causal = true;
    const std::string q = rows_of(a.q, 0, kQueries);
    std::string alone;
    for (const Neighbours& n : kNeighbours) {
      const i32 queries[] = {0, i32(n.queries), i32(n.queries + kQueries), i32(n.queries + kQueries + n.queries_behind)},
                lengths[] = {i32(n.keys), i32(kKeys), i32(n.keys_behind)};
      std::memcpy(a.q_indptr.data, queries, sizeof queries), std::memcpy(a.seq_lens.data, lengths, sizeof lengths);
      set_rows(a.q, n.queries, q);
      for (Device* device : {one.get(), three.get()}) {
        std::memset(a.out.data, 0xff, size_t(a.out.extent() * 2)), std::memset(a.out_lse.data, 0xff, size_t(a.out_lse.extent() * 4));
        paged(a, on(*device));
        const std::string mine = rows_of(a.out, n.queries, kQueries) + rows_of(a.out_lse, n.queries, kQueries);
        if (alone.empty()) alone = mine;
        EXPECT_EQ(mine, alone) << "group " << group << ", pages of " << page_size << ", behind " << n.queries << " query tokens and "
                               << n.keys << " keys";
      }
    }
    EXPECT_TRUE(std::isfinite(Ref(a.out_lse)(66 + kQueries - 1, 0)));
  }
}

/// The results are the reference's.
void check(const char* op, Case which, Device& device) {
  which["variant"] = double(variant_index(op, "prefill_sm90"));
  for (const testing::CheckResult& r : testing::check_case({&find_op(op), which, 3, {{&device, "--device emu"}}}))
    EXPECT_EQ(r.verdict, testing::CheckResult::Verdict::right) << r.which << ": " << r.message;
}

/// Hundreds of items in one block and in three: rounds, rings and told items wrap. Requests without query tokens or keys lie between the
/// others, and many have more query tokens than keys.
TEST(prefill_sm90, many_small_requests_in_few_blocks) {
  const auto one = device_of(1), three = device_of(3), checked = device_of(1, true);
  for (const i64 batch : {1, 2, 5, 33})
    check("attention.ragged", {{"batch", double(batch)}, {"heads_kv", 2}, {"gqa", 1}, {"head_dim", 64}}, *checked);
  check("attention.ragged", {{"batch", 300}, {"heads_kv", 1}, {"gqa", 1}, {"head_dim", 64}}, *one);
  check("attention.ragged", {{"batch", 300}, {"heads_kv", 1}, {"gqa", 1}, {"head_dim", 64}}, *three);
  check("attention.paged", {{"batch", 100}, {"heads_kv", 1}, {"gqa", 2}, {"head_dim", 64}, {"queries", -1}, {"capacity", 60}}, *three);
  // Gathered pages: an item without keys behind one that has some, whose last values nobody else would tell of
  for (const i64 page_size : {1, 7})
    check(
        "attention.paged",
        {{"batch", 30}, {"heads_kv", 1}, {"gqa", 2}, {"head_dim", 64}, {"queries", -1}, {"capacity", 60}, {"page_size", double(page_size)}},
        *one);
}

/// 17 tiles of 112 keys for each of two KV heads. One or two blocks cut none of them, six and more cut each into three parts.
Case long_case() { return {{"batch", 1}, {"heads_kv", 2}, {"gqa", 4}, {"head_dim", 16}, {"queries", 17}, {"keys", 1900}, {"spare", 0}}; }

TEST(prefill_sm90, keys_in_any_number_of_parts) {
  for (const i32 sms : {1, 3, 4, 6}) check("attention.ragged", long_case(), *device_of(sms));
}

/// Blocks on six threads end in another order each time. A seed decides the order of sums of the emulated wgmma, so there is one.
TEST(prefill_sm90, the_part_that_ends_last_changes_no_bit) {
  CaseArgs c(find_op("attention.ragged"), long_case(), 5);
  RaggedArgs& a = ragged_args(c);
  const auto run = [&](i32 threads) {
    std::memset(a.out.data, 0xff, size_t(a.out.extent() * 2)), std::memset(a.out_lse.data, 0xff, size_t(a.out_lse.extent() * 4));
    ragged(a, on(*device_of(6, {.os_threads = threads})));
    return rows_of(a.out, 0, 17) + rows_of(a.out_lse, 0, 17);
  };
  const std::string one_by_one = run(1);
  for (int repeat = 0; repeat < 10; ++repeat) EXPECT_TRUE(run(6) == one_by_one) << "repeat " << repeat;
}

/// Requests without query tokens first, last and between; of the others each query is the mean of the values that it sees.
TEST(prefill_sm90, requests_without_rows_have_no_tiles) {
  constexpr i32 kCounts[] = {0, 0, 3, 0, 70, 0, 0, 9, 0}, kLengths[] = {5, 0, 2, 40, 130, 0, 1, 0, 3};
  constexpr i64 kBatch = std::size(kCounts);
  CaseArgs c(find_op("attention.ragged"),
             {{"batch", double(kBatch)}, {"heads_kv", 2}, {"gqa", 3}, {"head_dim", 64}, {"tokens", 82}, {"tokens_kv", 181}, {"causal", 1}},
             3);
  RaggedArgs& a = ragged_args(c);
  i32 queries[kBatch + 1] = {}, keys[kBatch + 1] = {};
  for (i64 b = 0; b < kBatch; ++b) queries[b + 1] = queries[b] + kCounts[b], keys[b + 1] = keys[b] + kLengths[b];
  std::memcpy(a.q_indptr.data, queries, sizeof queries), std::memcpy(a.kv_indptr.data, keys, sizeof keys);
  i64 at[3];
  const auto fill = [&](const TensorView& view, auto value) {
    for (at[0] = 0; at[0] < view.shape[0]; ++at[0])
      for (at[1] = 0; at[1] < view.shape[1]; ++at[1])
        for (at[2] = 0; at[2] < view.shape[2]; ++at[2]) store_element(view, at, value(at[0]));
  };
  fill(a.q, [](i64) { return 0.0; }), fill(a.k, [](i64) { return 1.0; }), fill(a.v, [](i64 row) { return double(row % 29); });
  const auto device = device_of(1, true);
  ragged(a, on(*device));
  for (i64 b = 0; b < kBatch; ++b)
    for (i64 i = 0; i < kCounts[b]; ++i) {
      const i64 seen = std::max<i64>(0, kLengths[b] - kCounts[b] + i + 1);
      double sum = 0;
      for (i64 j = 0; j < seen; ++j) sum += double((keys[b] + j) % 29);
      const double mean = seen ? sum / double(seen) : 0;  // one rounding of each probability and of the result, 2^-9 each
      for (i64 h = 0; h < 6; ++h) {
        EXPECT_NEAR(Ref(a.out)(queries[b] + i, h, 40), mean, mean / 128) << "request " << b << " query " << i;
        if (seen) EXPECT_NEAR(Ref(a.out_lse)(queries[b] + i, h), std::log2(double(seen)), 1e-4);
        else EXPECT_EQ(Ref(a.out_lse)(queries[b] + i, h), -std::numeric_limits<double>::infinity());
      }
    }
}

/// A tile of keys comes whole: what lies in it before a request's first key and behind its last is another request's. In pages that is what
/// lies behind the length, and pages of others. Before a window lie keys of the request's own.
TEST(prefill_sm90, nan_that_no_row_sees_stays_where_it_is) {
  const auto device = device_of(2);
  CaseArgs c(find_op("attention.ragged"),
             {{"batch", 3}, {"heads_kv", 2}, {"gqa", 2}, {"head_dim", 64}, {"queries", 20}, {"keys", 150}, {"causal", 0}, {"spare", 0}}, 5);
  CaseArgs d(find_op("attention.paged"),
             {{"batch", 3},
              {"heads_kv", 2},
              {"gqa", 2},
              {"head_dim", 64},
              {"queries", 20},
              {"capacity", 192},
              {"length", 192},
              {"page_size", 64},
              {"causal", 0},
              {"spare", 0}},
             5);
  RaggedArgs& r = ragged_args(c);
  PagedArgs& p = paged_args(d);
  const i32 lengths[] = {192, 150, 192};
  std::memcpy(p.seq_lens.data, lengths, sizeof lengths);
  const auto result = [&] {
    ragged(r, on(*device)), paged(p, on(*device));
    return rows_of(r.out, 20, 20) + rows_of(r.out_lse, 20, 20) + rows_of(p.out, 20, 20) + rows_of(p.out_lse, 20, 20);
  };
  const auto put = [](const TensorView& k, const TensorView& v, std::initializer_list<i64> at) {
    for (const TensorView& view : {k, v}) std::memset(view.at(at.begin()), 0xff, size_t(view.shape[view.rank - 1] * 2));
  };
  for (const i32 window : {-1, 30}) {
    r.window_left = p.window_left = window, r.causal = p.causal = window >= 0;
    const i64 first = window < 0 ? 0 : 150 - 20 - window;  // in the middle of a tile
    const std::string before = result();
    for (i64 h = 0; h < 2; ++h) {
      for (i64 t = 0; t < 450; ++t)
        if (t < 150 + first || t >= 300) put(r.k, r.v, {t, h, 0});
      std::vector<char> seen(size_t(p.k_cache.shape[0] * 64));
      for (i64 key = first; key < 150; ++key) seen[size_t(paged_page(p, 1, key) * 64 + key % 64)] = 1;
      for (i64 i = 0; i < i64(seen.size()); ++i)
        if (!seen[size_t(i)]) put(p.k_cache, p.v_cache, {i / 64, i % 64, h, 0});
    }
    EXPECT_EQ(result(), before) << "window " << window;
    EXPECT_TRUE(std::isnan(Ref(r.out)(0, 0, 0)) && std::isnan(Ref(p.out)(59, 3, 63)));
  }
}

/// Of five tiles of 64 keys a row tile skips the second, tests each key of the third, and sees the others whole: an odd number of stages.
/// Of request 1 each query sees one tile.
constexpr const char* kBands = R"(struct Bands {
  QN_DEVICE bool visible(const HookContext& at) {
    const i32 band = at.key_position / 64;
    return at.request == 1 ? band == at.query_index / 64 : band != 1 && (band != 2 || (at.key_position + at.query_index) % 3 == 0);
  }
  QN_DEVICE TileVisibility tile(const HookTile& at) {
    const i32 band = at.key_first / 64;
    if (at.request == 1) return TileVisibility::partial;
    return band == 1 ? TileVisibility::skip : band == 2 ? TileVisibility::partial : TileVisibility::full;
  }
};)";

TEST(prefill_sm90, hooks_leave_out_and_pass_whole_tiles) {
  const auto device = device_of(1, true);
  for (const char* op : {"attention.ragged", "attention.paged"}) {
    const bool pages = std::string(op) == "attention.paged";
    CaseArgs c(find_op(op),
               {{"batch", 3},
                {"heads_kv", 1},
                {"gqa", 2},
                {"head_dim", 64},
                {"queries", 70},
                {"keys", 300},
                {"capacity", 300},
                {"length", 300},
                {"causal", 0},
                {"q.dtype", i64(DType::f16)},
                {"spare", 0}},
               9);
    const auto truth_of = [&](auto a, auto reference) {
      std::vector<double> out(size_t(a.out.numel()), 77), lse(size_t(a.out_lse.numel()), 77);
      a.out = {out.data(), DType::f64, {a.out.shape[0], a.out.shape[1], a.out.shape[2]}},
      a.out_lse = {lse.data(), DType::f64, {a.out.shape[0], a.out.shape[1]}};
      reference(
          a, decltype(a){}, [](double x, const HookContext&) { return x; },
          [](const HookContext& at) {
            const i32 band = at.key_position / 64;
            return at.request == 1 ? band == at.query_index / 64 : band != 1 && (band != 2 || (at.key_position + at.query_index) % 3 == 0);
          });
      return std::pair(out, lse);
    };
    TensorView out, lse;
    std::pair<std::vector<double>, std::vector<double>> truth;
    if (pages) {
      PagedArgs& a = paged_args(c);
      a.hooks = hooks_of(kBands);
      paged(a, on(*device));
      out = a.out, lse = a.out_lse, truth = truth_of(a, [](auto&&... args) { paged_ref_with<double>(args...); });
    } else {
      RaggedArgs& a = ragged_args(c);
      a.hooks = hooks_of(kBands);
      ragged(a, on(*device));
      out = a.out, lse = a.out_lse, truth = truth_of(a, [](auto&&... args) { ragged_ref_with<double>(args...); });
    }
    for (i64 t = 0; t < 210; ++t)
      for (i64 h = 0; h < 2; ++h) {
        EXPECT_NEAR(Ref(lse)(t, h), truth.second[size_t(t * 2 + h)], 1e-3) << op << " " << t;
        for (i64 e = 0; e < 64; ++e)
          EXPECT_NEAR(Ref(out)(t, h, e), truth.first[size_t((t * 2 + h) * 64 + e)], 4e-3) << op << " " << t << " " << h << " " << e;
      }
  }
}

}  // namespace
}  // namespace quern::attention
