// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What every variant of attention.paged promises at the edges: page entries that name no page, the longest request as promised, logits and
// queries of any size, sinks beside windows and parts.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <thread>

#include "quern/base/host_dtype.h"
#include "quern/device/emulated.h"
#include "quern/op/ref.h"
#include "quern/op/variants.h"
#include "quern/op/workspace.h"
#include "quern/ops/attention/paged/ref.h"
#include "quern/testing/check.h"

namespace quern::attention {
namespace {

using testing::CaseArgs;

/// A variant, whether its caches are FP8, and query tokens of each request; -2: one, without q_indptr.
struct Way {
  const char* variant;
  bool fp8;
  i64 queries;
};
class attention_paged_edges : public ::testing::TestWithParam<Way> {
 protected:
  Case which(Case more) const {
    const Case common = {
        {"batch", 3},      {"heads_kv", 1}, {"gqa", 4},    {"head_dim", 64},        {"queries", double(GetParam().queries)},
        {"capacity", 600}, {"length", 600}, {"causal", 1}, {"fp8", GetParam().fp8}, {"spare", 0},
        {"page_size", 16}};
    more.insert(common.begin(), common.end());
    return more;
  }
  RunOptions options() const { return {.variant = GetParam().variant}; }
  std::string results(const PagedArgs& a, i64 first, i64 requests) const {
    std::memset(a.out.data, 0xff, size_t(a.out.extent() * 2)), std::memset(a.out_lse.data, 0xff, size_t(a.out_lse.extent() * 4));
    paged(a, options());
    return bytes(a, first, requests);
  }
  std::string bytes(const PagedArgs& a, i64 first, i64 requests) const {
    const i64 each = a.q.shape[0] / a.seq_lens.shape[0];
    std::string all;
    for (const TensorView* v : {&a.out, &a.out_lse}) {
      const i64 row = v->strides[0] * size_of(v->dtype);
      all.append(static_cast<char*>(v->data) + first * each * row, size_t(requests * each * row));
    }
    return all;
  }
};
PagedArgs& args_of(CaseArgs& c) { return *static_cast<PagedArgs*>(c.args()); }
void fill(const TensorView& view, double value) {
  i64 at[kMaxRank] = {};
  for (i64 i = 0; i < view.numel(); ++i) {
    i64 rest = i;
    for (int d = view.rank - 1; d >= 0; --d) at[d] = rest % view.shape[d], rest /= view.shape[d];
    store_element(view, at, value);
  }
}

/// The value of such a request is undefined, but nothing outside of the caches is read, which lie between guards, and no other request
/// notices.
TEST_P(attention_paged_edges, entries_that_name_no_page_are_not_followed) {
  CaseArgs c(find_op("attention.paged"), which({}), 3);
  const PagedArgs& a = args_of(c);
  const auto of_others = [&] {
    const std::string first = results(a, 0, 1);
    return first + bytes(a, 2, 1);
  };
  const std::string others = of_others();
  for (const i32 entry : {-1, -2147483647 - 1, i32(a.k_cache.shape[0]), 2147483647}) {
    for (const i64 column : {0, 17, 37}) static_cast<i32*>(a.page_table.data)[a.page_table.strides[0] + column] = entry;
    EXPECT_TRUE(of_others() == others) << entry;
  }
}

/// With a promise that holds the result is the same within its budget and the workspace no larger; keys beyond a promise that does not hold
/// are not read.
TEST_P(attention_paged_edges, a_promise_of_the_longest_request) {
  CaseArgs c(find_op("attention.paged"), which({}), 3);
  PagedArgs a = args_of(c);
  for (i64 b = 0; b < 3; ++b) static_cast<i32*>(a.seq_lens.data)[b] = i32(100 + b);
  const auto bytes_needed = [&] { return workspace_bytes("attention.paged", a, options()); };
  const i64 unbounded = bytes_needed();
  results(a, 0, 3);
  std::vector<double> expected;
  for (i64 t = 0; t < a.q.shape[0]; ++t) expected.push_back(Ref(a.out)(t, 3, 5));
  a.max_seq_kv = 102;
  EXPECT_LE(bytes_needed(), unbounded);
  results(a, 0, 3);
  for (i64 t = 0; t < a.q.shape[0]; ++t)
    EXPECT_NEAR(Ref(a.out)(t, 3, 5), expected[size_t(t)], 0x1p-7 * std::fabs(expected[size_t(t)]) + 1e-3);
  a.causal = false;  // else each query's own position hides some keys
  a.max_seq_kv = 96;
  const std::string cut = results(a, 0, 3);
  for (i64 b = 0; b < 3; ++b)
    for (const i64 key : {96, 99}) {
      const i64 at[] = {paged_page(a, b, key), key % 16};
      for (TensorView PagedArgs::* cache : {&PagedArgs::k_cache, &PagedArgs::v_cache})
        fill((a.*cache).slice(0, at[0], at[0] + 1).slice(1, at[1], at[1] + 1), NAN);
    }
  EXPECT_TRUE(results(a, 0, 3) == cut) << "keys beyond max_seq_kv are read";
}

/// Nothing that a kernel could take for minus infinity is one.
TEST_P(attention_paged_edges, logits_far_below_zero_are_no_mask) {
  for (const double logit : {-6e4, -5e5}) {
    CaseArgs c(find_op("attention.paged"), which({}), 3);
    PagedArgs& a = args_of(c);
    a.causal = false;
    fill(a.q, 1), fill(a.k_cache, -1), fill(a.v_cache, 0.5);
    a.sm_scale = float(-logit / 64);
    results(a, 0, 3);
    for (const i64 t : {i64(0), a.q.shape[0] - 1}) {
      EXPECT_NEAR(Ref(a.out)(t, 2, 5), 0.5, 1e-2) << logit;
      EXPECT_NEAR((Ref(a.out_lse)(t, 2) - std::log2(600.0)) / (logit / std::log(2.0)), 1, 0x1p-18) << logit;
    }
  }
}

/// bf16 has queries that f16, in which FP8 keys are multiplied, has not: beyond 65504, and below what it has without loss. Some rows only,
/// beside ordinary ones.
TEST_P(attention_paged_edges, queries_beyond_the_range_of_f16) {
  for (const double size : {1e30, 1e6, 1e-6, 1e-30}) {
    CaseArgs c(find_op("attention.paged"), which({{"q.dtype", i64(DType::bf16)}}), 3);
    PagedArgs& a = args_of(c);
    a.causal = false;
    fill(a.q, 1), fill(a.k_cache, 1), fill(a.v_cache, 0.5);
    fill(a.q.slice(0, 1, 2), size);
    a.sm_scale = 0.25f;
    results(a, 0, 3);
    const double stored = Ref(a.q)(1, 2, 0);
    EXPECT_NEAR(Ref(a.out)(1, 2, 5), 0.5, 4e-3) << size;
    EXPECT_NEAR(Ref(a.out_lse)(1, 2), std::log2(600.0) + 16 * stored / std::log(2.0), std::fabs(16 * stored) * 0x1p-17 + 1e-4) << size;
    EXPECT_NEAR(Ref(a.out_lse)(0, 2), std::log2(600.0) + 16 / std::log(2.0), 1e-3) << size;
  }
}

/// Up to the largest that bf16 has, where no key multiplies it: the other elements of the row are then below f16's range, and the logits 0.
TEST_P(attention_paged_edges, queries_up_to_the_largest_of_bf16) {
  for (const double size : {2e38, 3.38e38}) {
    CaseArgs c(find_op("attention.paged"), which({{"q.dtype", i64(DType::bf16)}}), 3);
    PagedArgs& a = args_of(c);
    a.causal = false;
    fill(a.q, 0), fill(a.k_cache, 1), fill(a.v_cache, 0.5);
    fill(a.q.slice(0, 1, 2).slice(2, 0, 1), size), fill(a.k_cache.slice(3, 0, 1), 0);
    results(a, 0, 3);
    EXPECT_NEAR(Ref(a.out)(1, 2, 5), 0.5, 4e-3) << size;
    EXPECT_NEAR(Ref(a.out_lse)(1, 2), std::log2(600.0), 1e-3) << size;
  }
}

/// A sink joins once, whatever parts a window leaves of the keys, and where it leaves none of some parts.
TEST_P(attention_paged_edges, a_sink_joins_once_beside_windows_and_parts) {
  const auto device = make_emulated_device(device_info_of(Arch{}), {});
  const Op& op = find_op("attention.paged");
  for (const auto& [window, invariant] : {std::pair{100, 0}, {300, 1}, {520, 0}, {520, 1}, {0, 0}}) {
    Case c = which({{"sink.present", 1},
                    {"window_left", double(window)},
                    {"batch_invariant", double(invariant)},
                    {"variant", double(variant_index("attention.paged", GetParam().variant))}});
    for (const testing::CheckResult& r : testing::check_case({&op, c, 3, {{device.get(), "--device emu"}}}))
      EXPECT_EQ(r.verdict, testing::CheckResult::Verdict::right) << r.which << ": " << r.message;
  }
}

/// Lengths about each multiple of 64: there parts of keys may end, whichever a plan chooses.
TEST_P(attention_paged_edges, lengths_about_the_ends_of_parts) {
  const auto device = make_emulated_device(device_info_of(Arch{}), {});
  const Op& op = find_op("attention.paged");
  for (i64 end = 64; end < 600; end += 64)
    for (const i64 length : {end - 1, end, end + 1}) {
      const Case c = which({{"length", double(length)}, {"variant", double(variant_index("attention.paged", GetParam().variant))}});
      for (const testing::CheckResult& r : testing::check_case({&op, c, 3, {{device.get(), "--device emu"}}}))
        EXPECT_EQ(r.verdict, testing::CheckResult::Verdict::right) << r.which << ": " << r.message;
    }
}

/// Graphs that were captured with a workspace each have nothing in common: replayed at the same time, by two threads and on two streams,
/// each gives what it gives alone.
TEST_P(attention_paged_edges, two_graphs_replay_at_the_same_time) {
  Device& device = device_from_name("emu");
  struct Graph {
    CaseArgs c;
    std::vector<char> room;
    Stream stream;
    void* graph = nullptr;
    std::string alone;
    Graph(const Case& which, u64 seed) : c(find_op("attention.paged"), which, seed), room(32 << 20) {}
  } graphs[] = {{which({}), 3}, {which({{"batch", 2}}), 4}};
  for (Graph& g : graphs) {
    g.stream = device.create_stream();
    RunOptions with = options();
    with.device = &device, with.stream = g.stream,
    with.workspace = {reinterpret_cast<void*>(round_up<u64>(reinterpret_cast<u64>(g.room.data()), 256)), 31 << 20};
    paged(args_of(g.c), with);
    device.begin_capture(g.stream);
    paged(args_of(g.c), with);
    g.graph = device.end_capture(g.stream);
    device.replay(g.graph, g.stream), device.synchronize(g.stream);
    g.alone = bytes(args_of(g.c), 0, args_of(g.c).seq_lens.shape[0]);
  }
  std::vector<std::thread> threads;
  for (Graph& g : graphs)
    threads.emplace_back([&] {
      for (int i = 0; i < 4; ++i) {
        const PagedArgs& a = args_of(g.c);
        std::memset(a.out.data, 0xff, size_t(a.out.extent() * 2)), std::memset(a.out_lse.data, 0xff, size_t(a.out_lse.extent() * 4));
        device.replay(g.graph, g.stream), device.synchronize(g.stream);
        EXPECT_TRUE(bytes(a, 0, a.seq_lens.shape[0]) == g.alone) << "replay " << i;
      }
    });
  for (std::thread& t : threads) t.join();
  for (Graph& g : graphs) device.destroy_graph(g.graph), device.destroy(g.stream);
}

INSTANTIATE_TEST_SUITE_P(ways, attention_paged_edges,
                         ::testing::Values(Way{"portable", false, -2}, Way{"portable", true, -2}, Way{"portable", true, 9},
                                           Way{"prefill_sm90", false, 9}, Way{"few_rows_sm90", true, -2}, Way{"few_rows_sm90", false, 3}),
                         [](const auto& info) {
                           return std::string(info.param.variant) + (info.param.fp8 ? "_fp8" : "") +
                                  (info.param.queries < 0 ? "_decode" : "_" + std::to_string(info.param.queries) + "_tokens");
                         });

}  // namespace
}  // namespace quern::attention
