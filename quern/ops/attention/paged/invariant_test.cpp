// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// With batch_invariant a request of attention.paged has the same bits whatever its neighbours are: about the numbers of rows at which a
// kernel for few rows leaves it to one for many, in every variant.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "quern/device/emulated.h"
#include "quern/op/ref.h"
#include "quern/ops/attention/paged/ref.h"
#include "quern/testing/case_args.h"

namespace quern::attention {
namespace {

using testing::CaseArgs;

std::unique_ptr<Device> device_of(i32 sms) {
  DeviceInfo info = device_info_of(Arch{});
  info.sms = sms;
  return make_emulated_device(info, {});
}

std::string rows_of(const TensorView& view, i64 from, i64 count) {
  const i64 row = view.strides[0] * size_of(view.dtype);
  return {static_cast<char*>(view.data) + from * row, size_t(count * row)};
}

/// Query heads of a KV head, and query tokens: 15, 16 and 17 rows about split KV's 16, then 64 and 65 about few_rows_sm90's 64.
struct Rows {
  i64 group, queries;
};
struct Kernel {
  const char* variant;
  bool fp8;
  std::vector<Rows> rows;
  i64 length = 600;  // of keys: three chunks, the last one not whole
};

class attention_paged_invariant : public ::testing::TestWithParam<Kernel> {};

TEST_P(attention_paged_invariant, a_request_keeps_its_bits_in_every_batch) {
  const i64 length_of_it = GetParam().length, room = length_of_it + 40;
  const i64 neighbours[][4] = {
      {1, 1, 1, 1}, {2, room, 0, 0}, {70, 80, 1, length_of_it}, {16, 16, 17, 300}};  // query tokens and keys before and behind
  for (const Rows& rows : GetParam().rows) {
    SCOPED_TRACE(std::to_string(rows.group) + " heads, " + std::to_string(rows.queries) + " query tokens");
    const Case which = {{"batch", 3},
                        {"heads_kv", 1},
                        {"gqa", double(rows.group)},
                        {"head_dim", 64},
                        {"queries", 70},
                        {"capacity", double(room)},
                        {"length", double(room)},
                        {"causal", 1},
                        {"fp8", GetParam().fp8},
                        {"spare", 0},
                        {"page_size", 16}};
    CaseArgs c(find_op("attention.paged"), which, 5);
    PagedArgs& a = *static_cast<PagedArgs*>(c.args());
    const std::string q = rows_of(a.q, 0, rows.queries);
    RunOptions options{.variant = GetParam().variant, .batch_invariant = true};
    std::string alone;
    const auto expect_same = [&](const PagedArgs& call, i64 first) {
      for (const i32 sms : {1, 132}) {
        const auto device = device_of(sms);
        options.device = device.get();
        std::memcpy(static_cast<char*>(call.q.data) + first * call.q.strides[0] * size_of(call.q.dtype), q.data(), q.size());
        std::memset(a.out.data, 0xff, size_t(a.out.extent() * 2)), std::memset(a.out_lse.data, 0xff, size_t(a.out_lse.extent() * 4));
        paged(call, options);
        const std::string mine = rows_of(call.out, first, rows.queries) + rows_of(call.out_lse, first, rows.queries);
        if (alone.empty()) alone = mine;
        EXPECT_TRUE(mine == alone) << "behind " << first << " query tokens, " << sms << " multiprocessors, " << call.seq_lens.shape[0]
                                   << " requests";
      }
    };
    PagedArgs one = a;  // a batch of one, and a table as long as its keys
    one.page_table = a.page_table.slice(0, 1, 2).slice(1, 0, ceil_div<i64>(length_of_it, 16)), one.seq_lens = a.seq_lens.slice(0, 1, 2),
    one.q_indptr = a.q_indptr.slice(0, 0, 2);
    for (TensorView PagedArgs::* m : {&PagedArgs::q, &PagedArgs::out, &PagedArgs::out_lse}) one.*m = (a.*m).slice(0, 0, rows.queries);
    const i32 own[] = {0, i32(rows.queries)}, length = i32(length_of_it);
    std::memcpy(one.q_indptr.data, own, sizeof own), std::memcpy(one.seq_lens.data, &length, sizeof length);
    expect_same(one, 0);
    ASSERT_TRUE(std::isfinite(Ref(a.out_lse)(rows.queries - 1, rows.group - 1)));
    for (const auto& n : neighbours) {
      const i32 indptr[] = {0, i32(n[0]), i32(n[0] + rows.queries), i32(n[0] + rows.queries + n[2])},
                lengths[] = {i32(n[1]), i32(length_of_it), i32(n[3])};
      std::memcpy(a.q_indptr.data, indptr, sizeof indptr), std::memcpy(a.seq_lens.data, lengths, sizeof lengths);
      expect_same(a, n[0]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(variants, attention_paged_invariant,
                         ::testing::Values(Kernel{"portable", false, {{5, 3}, {16, 1}, {4, 4}, {1, 17}}},
                                           Kernel{"portable", true, {{8, 2}, {1, 17}}},
                                           Kernel{"prefill_sm90", false, {{8, 2}, {1, 16}, {1, 17}}, 2000},
                                           Kernel{"few_rows_sm90", true, {{8, 2}, {1, 17}, {8, 8}, {13, 5}}}),
                         [](const auto& info) { return std::string(info.param.variant) + (info.param.fp8 ? "_fp8" : ""); });

}  // namespace
}  // namespace quern::attention
