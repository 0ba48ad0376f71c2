// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What attention.ragged and attention.paged promise together, and what cases cannot say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "quern/base/host_dtype.h"
#include "quern/device/emulated.h"
#include "quern/op/ref.h"
#include "quern/op/workspace.h"
#include "quern/ops/attention/paged/ref.h"
#include "quern/ops/attention/ragged/ref.h"
#include "quern/testing/check.h"

namespace quern::attention {
namespace {

using testing::CaseArgs;
using ::testing::HasSubstr;

RaggedArgs& ragged_args(CaseArgs& c) { return *static_cast<RaggedArgs*>(c.args()); }
PagedArgs& paged_args(CaseArgs& c) { return *static_cast<PagedArgs*>(c.args()); }

/// The kernels of requests of many rows, as variants of both ops.
constexpr const char* kOfManyRows[] = {"prefill_sm90", "portable"};

void fill(const TensorView& view, const std::function<double(const i64*)>& value) {
  i64 at[kMaxRank] = {};
  for (i64 i = 0; i < view.numel(); ++i) {
    i64 rest = i;
    for (int d = view.rank - 1; d >= 0; --d) at[d] = rest % view.shape[d], rest /= view.shape[d];
    store_element(view, at, value(at));
  }
}

template <class F> std::string error_of(F call, ErrorKind kind = ErrorKind::value) {
  try {
    call();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    return e.what();
  }
  return "nothing thrown";
}

std::string bytes_of(const TensorView& v) {
  std::string bytes;
  testing::each_row(v, [&](char* row, const i64*) { bytes.append(row, size_t(v.shape[v.rank - 1] * size_of(v.dtype))); });
  return bytes;
}

/// Queries of zero make each output the mean of the values that are seen: which keys are seen cannot hide behind weights.
struct Mask {
  const char* name;
  bool causal;
  i32 left, right;
  bool bits;
};
class attention_masks : public ::testing::TestWithParam<Mask> {};

template <class A, class Value> void expect_means(const A& a, const RefRequest& r, i64 b, const Value& value) {
  const Ref out(a.out), lse(a.out_lse);
  for (i64 i = 0; i < r.q_len; ++i) {
    double sum = 0, count = 0;
    for (i64 j = 0; j < r.end; ++j) {
      const i64 p = r.length - r.q_len + i;
      const bool seen = (!a.causal || j <= p) && (a.window_left < 0 || p - j <= a.window_left) &&
                        (a.window_right < 0 || j - p <= a.window_right) && ref_bit(a, b, r, i, j);
      if (seen) sum += value(j), count += 1;
    }
    for (i64 h = 0; h < out.dim(1); ++h) {
      const double mean = count > 0 ? sum / count : 0;
      EXPECT_NEAR(out(r.q_begin + i, h, 3), mean, 0.01 + std::abs(mean) / 128) << "request " << b << " query " << i << " head " << h;
      if (count > 0) EXPECT_NEAR(lse(r.q_begin + i, h), std::log2(count), 1e-3) << "request " << b << " query " << i;
      else EXPECT_EQ(lse(r.q_begin + i, h), -std::numeric_limits<double>::infinity());
    }
  }
}

Case masked(const Mask& mask, Case which) {
  which["causal"] = mask.causal, which["window_left"] = mask.left, which["window_right"] = mask.right, which["bits"] = mask.bits;
  which["head_dim"] = 64;
  return which;
}

TEST_P(attention_masks, of_contiguous_keys) {
  for (const auto& [queries, keys] : {std::pair<i64, i64>{1, 70}, {16, 64}, {17, 129}, {65, 40}, {7, 0}, {5, 1}}) {
    CaseArgs c(find_op("attention.ragged"),
               masked(GetParam(), {{"batch", 2}, {"heads_kv", 1}, {"gqa", 3}, {"queries", double(queries)}, {"keys", double(keys)}}), 3);
    RaggedArgs& a = ragged_args(c);
    fill(a.q, [](const i64*) { return 0; });
    fill(a.k, [](const i64*) { return 1; });
    fill(a.v, [](const i64* at) { return double(at[0] % 31); });
    for (const char* variant : kOfManyRows) {
      ragged(a, {.variant = variant});
      for (i64 b = 0; b < 2; ++b) {
        const i64 first = Ref<>(a.kv_indptr).index(b);
        expect_means(a, ragged_request(a, b), b, [&](i64 j) { return double((first + j) % 31); });
      }
    }
  }
}

TEST_P(attention_masks, of_pages) {
  for (const i64 page_size : {7, 8})  // of portable and of prefill_sm90
    for (const auto& [queries, keys] : {std::pair<i64, i64>{1, 300}, {3, 270}, {5, 2}, {20, 70}, {33, 17}}) {
      CaseArgs c(find_op("attention.paged"),
                 masked(GetParam(), {{"batch", 2},
                                     {"heads_kv", 2},
                                     {"gqa", 3},
                                     {"queries", double(queries)},
                                     {"capacity", double(keys)},
                                     {"length", double(keys)},
                                     {"page_size", double(page_size)}}),
                 3);
      PagedArgs& a = paged_args(c);
      fill(a.q, [](const i64*) { return 0; });
      fill(a.k_cache, [](const i64*) { return 1; });
      fill(a.v_cache, [&](const i64* at) { return double((at[0] * page_size + at[1]) % 31); });
      paged(a, {.variant = page_size == 8 ? "prefill_sm90" : "portable"});
      for (i64 b = 0; b < 2; ++b)
        expect_means(a, paged_request(a, b), b, [&](i64 j) { return double((paged_page(a, b, j) * page_size + j % page_size) % 31); });
    }
}
INSTANTIATE_TEST_SUITE_P(all, attention_masks,
                         ::testing::Values(Mask{"none", false, -1, -1, false}, Mask{"causal", true, -1, -1, false},
                                           Mask{"causal_window", true, 9, -1, false}, Mask{"own_key", true, 0, -1, false},
                                           Mask{"window", false, 4, 6, false}, Mask{"ahead", false, -1, 3, false},
                                           Mask{"bits", false, -1, -1, true}, Mask{"all", true, 20, -1, true}),
                         [](const auto& info) { return info.param.name; });

/// The same keys in pages and in one tensor: requests of many rows are summed by one kernel, in one order. Which kernel that is depends on
/// the page size, so calls name it.
TEST(attention, pages_and_contiguous_keys_give_the_same_bits) {
  for (const auto& [variant, page_size, causal] :
       {std::tuple{"prefill_sm90", 8, false}, {"prefill_sm90", 8, true}, {"portable", 3, true}}) {
    CaseArgs c(
        find_op("attention.ragged"),
        {{"batch", 3}, {"heads_kv", 2}, {"gqa", 4}, {"head_dim", 80}, {"queries", 37}, {"keys", 70}, {"causal", causal}, {"spare", 0}}, 5);
    RaggedArgs& r = ragged_args(c);
    CaseArgs d(find_op("attention.paged"),
               {{"batch", 3},
                {"heads_kv", 2},
                {"gqa", 4},
                {"head_dim", 80},
                {"queries", 37},
                {"capacity", 70},
                {"length", 70},
                {"page_size", double(page_size)},
                {"causal", causal},
                {"spare", 0}},
               6);
    PagedArgs& p = paged_args(d);
    p.q = r.q;
    for (i64 b = 0; b < 3; ++b)
      for (i64 j = 0; j < 70; ++j)
        for (i64 h = 0; h < 2; ++h)
          for (i64 e = 0; e < 80; ++e) {
            const i64 from[] = {b * 70 + j, h, e}, to[] = {paged_page(p, b, j), j % page_size, h, e};
            std::memcpy(p.k_cache.at(to), r.k.at(from), 2), std::memcpy(p.v_cache.at(to), r.v.at(from), 2);
          }
    ragged(r, {.variant = variant}), paged(p, {.variant = variant});
    EXPECT_EQ(bytes_of(p.out), bytes_of(r.out)) << variant;
    EXPECT_EQ(bytes_of(p.out_lse), bytes_of(r.out_lse)) << variant;
  }
}

/// One query token a request, with q_indptr and without.
TEST(attention, decode_is_a_case_of_it) {
  const Case which = {{"batch", 3},         {"heads_kv", 2},       {"gqa", 4}, {"head_dim", 64}, {"capacity", 700},
                      {"window_left", 650}, {"batch_invariant", 1}};
  Case with = which;
  with["queries"] = 1, with["spare"] = 0;
  CaseArgs c(find_op("attention.paged"), which, 5), d(find_op("attention.paged"), with, 5);
  PagedArgs &one = paged_args(c), &several = paged_args(d);
  several.q = one.q, several.k_cache = one.k_cache, several.v_cache = one.v_cache, several.page_table = one.page_table,
  several.seq_lens = one.seq_lens;
  RunOptions options;
  options.batch_invariant = true;
  paged(one, options), paged(several, options);
  EXPECT_EQ(bytes_of(several.out), bytes_of(one.out));
  EXPECT_EQ(bytes_of(several.out_lse), bytes_of(one.out_lse));
}

/// Rows whose logits all lie far below what a kernel could take for minus infinity.
TEST(attention, logits_far_below_zero_are_no_mask) {
  for (const double logit : {-6e4, -5e5}) {
    CaseArgs c(find_op("attention.ragged"),
               {{"batch", 1}, {"heads_kv", 1}, {"gqa", 1}, {"head_dim", 64}, {"queries", 20}, {"keys", 70}, {"spare", 0}}, 3);
    RaggedArgs& a = ragged_args(c);
    fill(a.q, [](const i64*) { return 1; });
    fill(a.k, [](const i64*) { return -1; });
    fill(a.v, [](const i64*) { return 0.5; });
    a.sm_scale = float(-logit / 64);
    for (const char* variant : kOfManyRows) {
      ragged(a, {.variant = variant});
      EXPECT_NEAR(Ref(a.out)(7, 0, 5), 0.5, 1e-2) << variant;
      EXPECT_NEAR((Ref(a.out_lse)(7, 0) - std::log2(70.0)) / (logit / std::log(2.0)), 1, 0x1p-18) << variant;  // kLogitError
    }
  }
}

/// A query before the first key sees nothing; with a sink its lse is the sink's.
TEST(attention, queries_that_see_nothing) {
  for (const bool sink : {false, true}) {
    for (const int base : {0, 1}) {
      CaseArgs c(find_op("attention.paged"),
                 {{"batch", 2},
                  {"heads_kv", 1},
                  {"gqa", 2},
                  {"head_dim", 64},
                  {"queries", 5},
                  {"capacity", 3},
                  {"length", 3},
                  {"sink.present", sink},
                  {"lse_base", base},
                  {"spare", 0}},
                 3);
      PagedArgs& a = paged_args(c);
      paged(a);
      for (i64 h = 0; h < 2; ++h) {
        const double expected = sink ? Ref(a.sink)(h) / (base ? 1 : std::log(2.0)) : -std::numeric_limits<double>::infinity();
        for (const i64 t : {0, 1, 5, 6}) {
          EXPECT_EQ(Ref(a.out)(t, h, 9), 0) << t;
          if (sink) EXPECT_NEAR(Ref(a.out_lse)(t, h), expected, 1e-5);
          else EXPECT_EQ(Ref(a.out_lse)(t, h), expected);
        }
        EXPECT_NE(Ref(a.out)(2, h, 9), 0);
      }
    }
  }
}

/// Beside a maximum of 1e8 and more a shift of 12 in f32 is lost, or becomes 16: exp2(16) is no f16.
/// The same of bf16, whose scale comes late: beyond 2^31 half of a maximum's last place is more than an exponent has room for.
TEST(attention, large_logits_of_bf16_are_right) {
  CaseArgs c(find_op("attention.ragged"),
             {{"batch", 1}, {"heads_kv", 1}, {"gqa", 1}, {"head_dim", 64}, {"queries", 20}, {"keys", 40}, {"sm_scale", 1e6}, {"spare", 0}},
             3);
  RaggedArgs& a = ragged_args(c);
  for (const double size : {1.0, 20.0, 40.0, 50.0, 2e4}) {
    fill(a.q, [&](const i64*) { return size; });
    fill(a.k, [&](const i64*) { return size; });
    fill(a.v, [](const i64*) { return 0.75; });
    for (const char* variant : kOfManyRows) {
      ragged(a, {.variant = variant});
      EXPECT_NEAR(Ref(a.out)(3, 0, 5), 0.75, 1e-2) << variant << " " << size;
      EXPECT_NEAR(Ref(a.out_lse)(3, 0) / (Ref(a.q)(0, 0, 0) * Ref(a.k)(0, 0, 0) * 64e6 / std::log(2.0)), 1, 0x1p-18)
          << variant << " " << size;
    }
  }
}

/// A NaN that other queries of the tile see does not reach one that sees nothing.
TEST(attention, queries_that_see_nothing_are_zero_beside_nan) {
  for (const char* op : {"attention.ragged", "attention.paged"})
    for (const bool sink : {false, true}) {
      const bool pages = std::string(op) == "attention.paged";
      CaseArgs c(find_op(op),
                 {{"batch", 1},
                  {"heads_kv", 1},
                  {"gqa", 1},
                  {"head_dim", 64},
                  {"queries", 5},
                  {"keys", 3},
                  {"capacity", 3},
                  {"length", 3},
                  {"causal", 1},
                  {"sink.present", sink},
                  {"spare", 0}},
                 3);
      fill(pages ? paged_args(c).v_cache : ragged_args(c).v, [](const i64*) { return NAN; });
      if (pages) paged(paged_args(c));
      else ragged(ragged_args(c));
      const Ref out(pages ? paged_args(c).out : ragged_args(c).out);
      for (i64 t = 0; t < 5; ++t) {
        if (t < 2) EXPECT_EQ(out(t, 0, 9), 0) << op << " " << t;
        else EXPECT_TRUE(std::isnan(out(t, 0, 9))) << op << " " << t;
      }
    }
}

TEST(attention, large_logits_of_f16_stay_finite) {
  for (const char* op : {"attention.ragged", "attention.paged"}) {
    const bool pages = std::string(op) == "attention.paged";
    CaseArgs c(find_op(op),
               {{"batch", 1},
                {"heads_kv", 1},
                {"gqa", 1},
                {"head_dim", 64},
                {"queries", pages ? -2.0 : 20.0},
                {"keys", 40},
                {"capacity", 40},
                {"length", 40},
                {"q.dtype", i64(DType::f16)},
                {"sm_scale", 1e6},
                {"spare", 0}},
               3);
    const TensorView q = pages ? paged_args(c).q : ragged_args(c).q, k = pages ? paged_args(c).k_cache : ragged_args(c).k,
                     out = pages ? paged_args(c).out : ragged_args(c).out;
    for (const double size : {1.0, 1.3, 2.7, 7.1, 19.0}) {
      fill(q, [&](const i64*) { return size; });
      fill(k, [&](const i64*) { return size; });
      for (const char* variant : kOfManyRows) {
        if (pages) paged(paged_args(c));
        else ragged(ragged_args(c), {.variant = variant});
        EXPECT_TRUE(std::isfinite(Ref(out)(0, 0, 5))) << op << " " << variant << " " << size;
      }
    }
  }
}

/// Each option changes the result: none is accepted and ignored.
TEST(attention, every_option_counts) {
  const Case which = {{"batch", 2},   {"heads_kv", 2}, {"gqa", 2},          {"head_dim", 64}, {"queries", 9}, {"capacity", 40},
                      {"length", 40}, {"scales", 3},   {"sink.present", 1}, {"bits", 1},      {"causal", 1},  {"spare", 0}};
  CaseArgs c(find_op("attention.paged"), which, 3);
  const PagedArgs given = paged_args(c);
  const auto result = [&](const PagedArgs& a) {
    paged(a);
    return bytes_of(a.out) + bytes_of(a.out_lse);
  };
  const std::string plain = result(given);
  const auto differs = [&](const char* option, void (*change)(PagedArgs&)) {
    PagedArgs a = given;
    change(a);
    EXPECT_NE(result(a), plain) << option;
  };
  differs("mask", [](PagedArgs& a) { a.mask = a.mask_indptr = {}; });
  differs("sink", [](PagedArgs& a) { a.sink = {}; });
  differs("q_scale", [](PagedArgs& a) { a.q_scale = {}; });
  differs("k_scale", [](PagedArgs& a) { a.k_scale = {}; });
  differs("v_scale", [](PagedArgs& a) { a.v_scale = {}; });
  differs("causal", [](PagedArgs& a) { a.causal = false; });
  differs("window_left", [](PagedArgs& a) { a.window_left = 3; });
  differs("window_right", [](PagedArgs& a) { a.causal = false, a.window_right = 2; });
  differs("soft_cap", [](PagedArgs& a) { a.soft_cap = 0.5f; });
  differs("sm_scale", [](PagedArgs& a) { a.sm_scale = 0.3f; });
  differs("out_scale", [](PagedArgs& a) { a.out_scale = 2; });
  differs("lse_base", [](PagedArgs& a) { a.lse_base = LseBase::e; });
  PagedArgs hint = given;
  hint.max_seq_q = 3;
  EXPECT_EQ(result(hint), plain) << "max_seq_q chooses the plan only";
}

/// There are no tensor maps of no memory: such calls are the portable kernels', whatever else they hold.
TEST(attention, calls_without_keys) {
  const auto nothing_seen = [](const auto& a, const auto& call) {
    std::memset(a.out.data, 0xff, size_t(a.out.extent() * 2)), std::memset(a.out_lse.data, 0xff, size_t(a.out_lse.extent() * 4));
    call();
    const Ref out(a.out), lse(a.out_lse);
    for (i64 t = 0; t < a.out.shape[0]; ++t)
      for (i64 h = 0; h < 8; ++h) {
        EXPECT_EQ(lse(t, h), -std::numeric_limits<double>::infinity()) << t;
        for (i64 e = 0; e < 64; ++e) EXPECT_EQ(out(t, h, e), 0) << t;
      }
  };
  for (const double pad : {0, 4}) {
    CaseArgs c(find_op("attention.ragged"),
               {{"batch", 2}, {"heads_kv", 2}, {"gqa", 4}, {"head_dim", 64}, {"queries", 20}, {"keys", 0}, {"spare", 0}, {"k.pad", pad}},
               1);
    const RaggedArgs& a = ragged_args(c);
    ASSERT_EQ(a.k.shape[0], 0);
    nothing_seen(a, [&] { ragged(a); });
    EXPECT_THAT(error_of([&] { ragged(a, {.variant = "prefill_sm90"}); }, ErrorKind::unsupported),
                HasSubstr("keys of a request=0, wants at least 1"));
  }
  for (const double fp8 : {0, 1})
    for (const double queries : {-2, 3, 20}) {
      CaseArgs c(find_op("attention.paged"),
                 {{"batch", 2},
                  {"heads_kv", 2},
                  {"gqa", 4},
                  {"head_dim", 64},
                  {"queries", queries},
                  {"capacity", 0},
                  {"spare_pages", 0},
                  {"spare", 0},
                  {"fp8", fp8}},
                 1);
      PagedArgs& a = paged_args(c);
      a.k_cache.shape[0] = a.v_cache.shape[0] = 0;
      nothing_seen(a, [&] { paged(a); });
      EXPECT_THAT(error_of([&] { paged(a, {.variant = "few_rows_sm90"}); }, ErrorKind::unsupported),
                  HasSubstr("pages=0, wants room for a key"));
    }
}

TEST(attention, says_what_is_wrong) {
  const auto error = [](const Case& more, void (*broken)(RaggedArgs&)) {
    Case which = {{"batch", 2}, {"heads_kv", 2}, {"gqa", 4}, {"head_dim", 64}, {"queries", 3}, {"keys", 5}, {"spare", 0}};
    for (const auto& [word, value] : more) which[word] = value;
    CaseArgs c(find_op("attention.ragged"), which, 1);
    broken(ragged_args(c));
    return error_of([&] { ragged(ragged_args(c)); });
  };
  EXPECT_EQ(error({}, [](auto& a) { a.causal = true, a.window_right = 2; }),
            "attention.ragged: `window_right` is 2, expected -1 or 0 beside causal");
  EXPECT_EQ(error({}, [](auto& a) { a.window_right = -2; }), "attention.ragged: `window_right` is -2, expected -1 or more");
  EXPECT_EQ(error({{"bits", 1}}, [](auto& a) { a.mask_indptr = {}; }),
            "attention.ragged: `mask_indptr` is absent, expected a tensor, as mask is given");
  EXPECT_EQ(error({{"bits", 1}}, [](auto& a) { a.mask = {}; }),
            "attention.ragged: `mask` is absent, expected a tensor, as mask_indptr is given");
  EXPECT_EQ(error({}, [](auto& a) { a.out_scale = NAN; }), "attention.ragged: `out_scale` is nan, expected a number from -1e6 to 1e6");
  EXPECT_EQ(error({}, [](auto& a) { a.max_seq_q = -1; }), "attention.ragged: `max_seq_q` is -1, expected 0 or more");
  EXPECT_EQ(error({{"fp8", 3}}, [](auto& a) { a.k.dtype = a.v.dtype = DType::e5m2; }),
            "attention.ragged: `k` is e5m2, expected e4m3, as q has");
  EXPECT_EQ(error({}, [](auto& a) { a.out.dtype = DType::f16; }), "attention.ragged: `out` is f16, expected bf16, as q has");
  EXPECT_EQ(error({},
                  [](auto& a) {
                    for (TensorView* v : {&a.v, &a.out}) v->shape[2] = 40;
                  }),
            "attention.ragged: `head_dim_v` is 40, expected a multiple of 16 from 16 to 256");
}

/// Rows of a request and numbers of row tiles are 32-bit.
TEST(attention, sizes_have_limits) {
  const auto error = [](i64 tokens, i64 heads_kv) {
    const Op& op = find_op("attention.ragged");
    const testing::ArgsStorage args = testing::fake_args(
        op,
        testing::derived(
            op,
            {{"batch", 1}, {"tokens", double(tokens)}, {"tokens_kv", 5}, {"heads_kv", double(heads_kv)}, {"gqa", 4}, {"head_dim", 16}}));
    return error_of([&] { bind(op, args.get(), {}); });
  };
  EXPECT_EQ(error((1 << 28) - 1, 1), "nothing thrown");
  EXPECT_EQ(error(1 << 28, 1), "attention.ragged: `tokens` is 268435456, expected less than 2^30 / (heads_q / heads_kv)");
  EXPECT_EQ(error((1 << 26) - 1, 8), "nothing thrown");
  EXPECT_EQ(error(1 << 26, 8), "attention.ragged: `tokens` is 67108864, expected less than 2^31 / heads_q");
}

/// A NaN among the keys or values that a query sees is in its out, and one of a key in its lse, whatever form logits take.
TEST(attention, nan_that_is_seen_stays) {
  for (const Case& form : {Case{{"q.dtype", i64(DType::bf16)}}, Case{{"q.dtype", i64(DType::f16)}}, Case{{"soft_cap", 30}},
                           Case{{"bits", 1}}, Case{{"scales", 3}}})
    for (const bool key : {true, false}) {
      Case which = {{"batch", 1},    {"heads_kv", 1}, {"gqa", 1},    {"head_dim", 64},
                    {"queries", 30}, {"keys", 90},    {"causal", 1}, {"spare", 0}};
      which.insert(form.begin(), form.end());
      CaseArgs c(find_op("attention.ragged"), which, 3);
      RaggedArgs& a = ragged_args(c);
      if (a.mask.present()) std::memset(a.mask.data, 0xff, size_t(a.mask.shape[0]));
      const i64 at[] = {70, 0, 9};
      store_element(key ? a.k : a.v, at, NAN);
      for (const char* variant : kOfManyRows) {
        ragged(a, {.variant = variant});
        EXPECT_FALSE(std::isnan(Ref(a.out_lse)(9, 0))) << variant << ": query 9 stands at key 69";
        EXPECT_TRUE(std::isnan(Ref(a.out)(10, 0, 9))) << variant;
        EXPECT_EQ(std::isnan(Ref(a.out_lse)(10, 0)), key) << variant;
      }
    }
}

/// Scales of stride 0 are those of every request, token and head.
TEST(attention, scales_of_stride_0) {
  for (const i64 queries : {-2, 9}) {
    CaseArgs c(find_op("attention.paged"),
               {{"batch", 2},
                {"heads_kv", 2},
                {"gqa", 2},
                {"head_dim", 64},
                {"queries", double(queries)},
                {"capacity", 40},
                {"fp8", 1},
                {"scales", 3},
                {"spare", 0}},
               3);
    PagedArgs& a = paged_args(c);
    for (const TensorView* scale : {&a.q_scale, &a.k_scale, &a.v_scale}) fill(*scale, [](const i64*) { return 1.25; });
    paged(a);
    const std::string whole = bytes_of(a.out) + bytes_of(a.out_lse);
    for (TensorView* scale : {&a.q_scale, &a.k_scale, &a.v_scale}) scale->strides[0] = scale->strides[1] = 0;
    paged(a);
    EXPECT_EQ(bytes_of(a.out) + bytes_of(a.out_lse), whole);
  }
}

/// vLLM's cache: one tensor [blocks, heads_kv, block, 2 * head_dim] of several layers, K and V its halves.
TEST(attention, keys_and_values_in_one_tensor) {
  for (const DType stored : {DType::bf16, DType::e4m3})
    for (const i64 queries : {-2, 20}) {
      CaseArgs c(find_op("attention.paged"),
                 {{"batch", 2},
                  {"heads_kv", 2},
                  {"gqa", 2},
                  {"head_dim", 64},
                  {"queries", double(queries)},
                  {"capacity", 50},
                  {"fp8", stored == DType::e4m3},
                  {"spare", 0}},
                 3);
      PagedArgs& a = paged_args(c);
      paged(a);
      const std::string apart = bytes_of(a.out) + bytes_of(a.out_lse);
      const i64 pages = a.k_cache.shape[0], page = a.k_cache.shape[1], heads = 2, dim = 64, size = size_of(stored), layers = 3;
      std::vector<char> room(size_t(pages * layers * heads * page * 2 * dim * size), char(0x7f));
      PagedArgs b = a;
      for (TensorView PagedArgs::* half : {&PagedArgs::k_cache, &PagedArgs::v_cache}) {
        TensorView v(room.data() + (half == &PagedArgs::v_cache ? dim * size : 0), stored, {pages, page, heads, dim});
        v.strides[0] = layers * heads * page * 2 * dim, v.strides[1] = 2 * dim, v.strides[2] = page * 2 * dim;
        for (i64 i = 0; i < pages; ++i)
          for (i64 j = 0; j < page; ++j)
            for (i64 h = 0; h < heads; ++h) {
              const i64 at[] = {i, j, h, 0};
              std::memcpy(v.at(at), (a.*half).at(at), size_t(dim * size));
            }
        b.*half = v;
      }
      paged(b);
      EXPECT_EQ(bytes_of(b.out) + bytes_of(b.out_lse), apart) << name(stored) << " " << queries;
    }
}

/// One captured call serves steps of other compositions: all decode, one long chunk, an empty step.
TEST(attention, one_graph_serves_every_step_within_its_bounds) {
  const i64 batch = 4, tokens = 40, capacity = 128;
  CaseArgs c(find_op("attention.paged"),
             {{"batch", double(batch)},
              {"heads_kv", 1},
              {"gqa", 4},
              {"head_dim", 64},
              {"queries", 10},
              {"capacity", double(capacity)},
              {"length", double(capacity)},
              {"causal", 1},
              {"spare", 0}},
             5);
  PagedArgs& a = paged_args(c);
  ASSERT_EQ(a.q.shape[0], tokens);
  Device& device = device_from_name("emu");
  const Stream stream = device.create_stream();
  std::vector<char> room(8 << 20);
  const RunOptions options{.device = &device,
                           .stream = stream,
                           .workspace = {reinterpret_cast<void*>(round_up<u64>(reinterpret_cast<u64>(room.data()), 256)), 7 << 20}};
  paged(a, options);  // compiles
  device.begin_capture(stream);
  paged(a, options);
  void* graph = device.end_capture(stream);
  const i32 steps[][9] = {
      {0, 1, 2, 3, 4, 100, 3, 128, 1}, {0, 0, 40, 40, 40, 9, 128, 0, 5}, {0, 0, 0, 0, 0, 1, 2, 3, 4}, {2, 5, 30, 31, 37, 128, 60, 1, 7}};
  for (const auto& step : steps) {
    std::memcpy(a.q_indptr.data, step, 5 * sizeof(i32)), std::memcpy(a.seq_lens.data, step + 5, 4 * sizeof(i32));
    std::string results[2];
    for (const bool replay : {false, true}) {
      std::memset(a.out.data, 0xff, size_t(a.out.extent() * 2)), std::memset(a.out_lse.data, 0xff, size_t(a.out_lse.extent() * 4));
      if (replay) device.replay(graph, stream);
      else paged(a, options);
      device.synchronize(stream);
      results[replay] = bytes_of(a.out) + bytes_of(a.out_lse);
    }
    EXPECT_EQ(results[1], results[0]);
    i64 written = 0;
    for (i64 t = 0; t < tokens; ++t) written += !std::isnan(Ref(a.out_lse)(t, 0));
    EXPECT_EQ(written, step[4] - step[0]) << "tokens of no request are left alone";
  }
  device.destroy_graph(graph);
  device.destroy(stream);
}

/// Queries see the first `prefix` keys whatever their position. A tile that no query sees is not read: its values may be NaN.
constexpr const char* kPrefix = R"(struct Prefix {
  QN_DEVICE i32 prefix(const u8* params) { return *reinterpret_cast<const i32*>(params); }
  QN_DEVICE bool visible(const HookContext& at) { return at.key_position <= at.query_position || at.key_position < prefix(at.params); }
  QN_DEVICE TileVisibility tile(const HookTile& at) {
    if (at.key_last <= at.query_first || at.key_last < prefix(at.params)) return TileVisibility::full;
    return at.key_first > at.query_last && at.key_first >= prefix(at.params) ? TileVisibility::skip : TileVisibility::partial;
  }
};)";

TEST(attention_hooks, skip_whole_tiles) {
  constexpr i64 kRows = 192;  // whole row tiles of each kernel: 3 of 64, or one
  for (const char* variant : kOfManyRows) {
    CaseArgs c(find_op("attention.ragged"),
               {{"batch", 1},
                {"heads_kv", 1},
                {"gqa", 1},
                {"head_dim", 64},
                {"queries", 2 * kRows},
                {"keys", 2 * kRows},
                {"causal", 0},
                {"spare", 0},
                {"q.dtype", i64(DType::f16)}},
               3);
    RaggedArgs& a = ragged_args(c);
    const i32 prefix = 10;
    std::memcpy(a.hook_params, &prefix, sizeof prefix);
    a.hooks = hooks_of(kPrefix);
    ragged(a, {.variant = variant});
    const std::string whole = bytes_of(a.out.slice(0, 0, kRows));
    fill(a.v.slice(0, kRows, 2 * kRows), [](const i64*) { return NAN; });
    ragged(a, {.variant = variant});
    EXPECT_EQ(bytes_of(a.out.slice(0, 0, kRows)), whole) << variant << ": rows of the first tiles read keys behind their last tile";
    EXPECT_TRUE(std::isnan(Ref(a.out)(2 * kRows - 1, 0, 0))) << variant;
  }
}

/// The meanings of hooks in double beside the kernels: prefill and decode rows of one call.
TEST(attention_hooks, of_many_rows_mean_what_they_say) {
  CaseArgs c(find_op("attention.paged"),
             {{"batch", 3},
              {"heads_kv", 2},
              {"gqa", 2},
              {"head_dim", 64},
              {"queries", -1},
              {"capacity", 90},
              {"causal", 0},
              {"q.dtype", i64(DType::f16)}},
             9);
  PagedArgs& a = paged_args(c);
  const float bias[4] = {2, -1, 0.5f, 3};
  const struct {
    const char* text;
    std::function<double(double, const HookContext&)> logit;
    std::function<bool(const HookContext&)> visible;
  } hooks[] = {
      {"struct Blocks { QN_DEVICE bool visible(const HookContext& at) { return at.key_position / 16 == at.query_position / 16; } };",
       [](double x, const HookContext&) { return x; },
       [](const HookContext& at) { return at.key_position / 16 == at.query_position / 16; }},
      {"struct Cap { QN_DEVICE f32 logit(f32 x, const HookContext& at) { return f32(2.f) * accurate_tanh(x * f32(0.5f)) + f32(0.01f * float(at.query_index * 3 - at.query_len)); } };",
       [](double x, const HookContext& at) { return 2 * std::tanh(x / 2) + 0.01 * double(at.query_index * 3 - at.query_len); },
       [](const HookContext&) { return true; }},
      {kPrefix, [](double x, const HookContext&) { return x; },
       [](const HookContext& at) { return at.key_position <= at.query_position || at.key_position < 10; }},
      {"struct Decayed { QN_DEVICE f32 logit(f32 x, const HookContext& at) { const i32 ahead = at.key_position - at.query_position; return x + real_at(at.tensors[1], at.head_q) * ptx::exp2_approx(f32(-0.1f * float(max_of(ahead, -ahead)))); } };",
       [&](double x, const HookContext& at) {
         return x + double(bias[at.head_q]) * std::exp2(-0.1 * double(std::abs(at.query_position - at.key_position)));
       },
       [](const HookContext&) { return true; }},
  };
  const i32 prefix = 10;
  std::memcpy(a.hook_params, &prefix, sizeof prefix);
  for (const auto& hook : hooks) {
    a.hooks = hooks_of(hook.text);
    const bool reads = std::strstr(hook.text, "tensors[1]") != nullptr;
    a.hook_tensors[1] = reads ? TensorView(const_cast<float*>(bias), DType::f32, {4}) : TensorView();
    for (const char* variant : kOfManyRows) {
      if (!reads && std::strcmp(variant, "portable") == 0) continue;  // skip_whole_tiles has it
      std::memset(a.out.data, 0xff, size_t(a.out.extent() * 2)), std::memset(a.out_lse.data, 0xff, size_t(a.out_lse.extent() * 4));
      paged(a, {.variant = variant});
      PagedArgs truth = a;
      std::vector<double> out(size_t(a.out.numel()), 77), lse(size_t(a.out_lse.numel()), 77);
      truth.out = {out.data(), DType::f64, {a.out.shape[0], a.out.shape[1], a.out.shape[2]}},
      truth.out_lse = {lse.data(), DType::f64, {a.out.shape[0], a.out.shape[1]}};
      paged_ref_with<double>(truth, {}, hook.logit, hook.visible);
      for (i64 t = 0; t < a.out.shape[0]; ++t)
        for (i64 h = 0; h < 4; ++h) {
          const double expected_lse = lse[size_t(t * 4 + h)];
          if (expected_lse == 77) continue;  // of no request
          for (i64 d = 0; d < 64; ++d)
            EXPECT_NEAR(Ref(a.out)(t, h, d), out[size_t((t * 4 + h) * 64 + d)], 4e-3) << hook.text << t << " " << h << " " << d;
          if (std::isfinite(expected_lse)) EXPECT_NEAR(Ref(a.out_lse)(t, h), expected_lse, 1e-3) << hook.text << t << " " << h;
          else EXPECT_EQ(Ref(a.out_lse)(t, h), expected_lse) << hook.text << t << " " << h;
        }
    }
  }
}

TEST(attention_hooks, alibi_ships_with_quern) {
  CaseArgs c(find_op("attention.paged"),
             {{"batch", 2},
              {"heads_kv", 2},
              {"gqa", 2},
              {"head_dim", 64},
              {"queries", 9},
              {"capacity", 40},
              {"causal", 0},
              {"q.dtype", i64(DType::f16)},
              {"spare", 0}},
             9);
  PagedArgs& a = paged_args(c);
  const float slopes[2][4] = {{0.5f, 0.25f, 0.125f, 0.0625f}, {0.1f, 0.2f, 0.3f, 0.4f}};
  for (const bool by_request : {false, true}) {
    a.hook_tensors[0] = by_request ? TensorView(const_cast<float*>(&slopes[0][0]), DType::f32, {2, 4})
                                   : TensorView(const_cast<float*>(&slopes[0][0]), DType::f32, {4});
    a.hooks = hooks_of("alibi");
    paged(a);
    PagedArgs truth = a;
    std::vector<double> out(size_t(a.out.numel()), 77);
    truth.out = {out.data(), DType::f64, {a.out.shape[0], a.out.shape[1], a.out.shape[2]}}, truth.out_lse = {};
    paged_ref_with<double>(
        truth, {},
        [&](double x, const HookContext& at) {
          return x - double(slopes[by_request ? at.request : 0][at.head_q]) * std::abs(at.query_position - at.key_position);
        },
        [](const HookContext&) { return true; });
    for (i64 t = 0; t < a.out.shape[0]; ++t)
      for (i64 h = 0; h < 4; ++h)
        EXPECT_NEAR(Ref(a.out)(t, h, 5), out[size_t((t * 4 + h) * 64 + 5)], 4e-3) << by_request << " " << t << " " << h;
  }
}

TEST(attention_hooks, tile_needs_visible) {
  CaseArgs c(find_op("attention.ragged"), {{"batch", 1}, {"heads_kv", 1}, {"gqa", 1}, {"head_dim", 64}, {"queries", 3}, {"keys", 5}}, 3);
  ragged_args(c).hooks = hooks_of("struct Tile { QN_DEVICE TileVisibility tile(const HookTile&) { return TileVisibility::skip; } };");
  EXPECT_THAT(error_of([&] { ragged(ragged_args(c)); }, ErrorKind::compile), HasSubstr("`tile` without `visible`, expected both"));
}

}  // namespace
}  // namespace quern::attention
