// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <tuple>

#include "quern/base/host_dtype.h"
#include "quern/jit/spec.h"
#include "quern/op/ref.h"
#include "quern/op/variants.h"
#include "quern/op/workspace.h"
#include "quern/ops/attention/paged.h"
#include "quern/testing/check.h"

namespace quern::attention {
namespace {

using testing::ArgsStorage;
using testing::CaseArgs;

const Op& op() { return find_op("attention.paged"); }
PagedArgs& args_of(CaseArgs& c) { return *static_cast<PagedArgs*>(c.args()); }
Device& device() { return device_from_name("emu"); }

/// What a call with a broken argument throws.
std::string error_of(const Case& which, void (*broken)(PagedArgs&), ErrorKind kind = ErrorKind::value) {
  CaseArgs c(op(), which, 1);
  broken(args_of(c));
  try {
    paged(args_of(c));
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    return e.what();
  }
  return "nothing thrown";
}

const Case kSmall = {{"batch", 2}, {"heads_kv", 2}, {"gqa", 4}, {"head_dim", 64}, {"capacity", 40}, {"window_left", -1}};

TEST(attention_paged, says_what_is_wrong) {
  EXPECT_EQ(error_of(kSmall, [](auto& a) { a.q.shape[1] = a.out.shape[1] = a.out_lse.shape[1] = 7; }),
            "attention.paged: `heads_q` is 7, expected a multiple of heads_kv=2 (heads_kv was set by `k_cache` [8, 16, 2, 64])");
  // HND handed as NHD: the heads of the cache are its page's tokens.
  EXPECT_EQ(error_of(kSmall,
                     [](auto& a) {
                       for (TensorView* v : {&a.k_cache, &a.v_cache}) std::swap(v->shape[1], v->shape[2]);
                     }),
            "attention.paged: `heads_q` is 8, expected a multiple of heads_kv=16 (heads_kv was set by `k_cache` [8, 2, 16, 64])");
  EXPECT_EQ(error_of(kSmall,
                     [](auto& a) {
                       for (TensorView* v : {&a.q, &a.out, &a.k_cache, &a.v_cache}) v->shape[v->rank - 1] = 40;
                     }),
            "attention.paged: `head_dim` is 40, expected a multiple of 16 from 16 to 256, or 512");
  EXPECT_EQ(error_of(kSmall, [](auto& a) { a.seq_lens = {}; }),
            "attention.paged: `seq_lens` is absent, expected a tensor, as page_table is given");
  EXPECT_EQ(error_of(kSmall, [](auto& a) { a.page_table = {}; }),
            "attention.paged: `page_table` is absent, expected a tensor, as seq_lens is given");
  EXPECT_EQ(error_of(kSmall, [](auto& a) { a.seq_lens = {}, a.page_table = {}; }),
            "attention.paged: `page_table` is absent, expected page_table and seq_lens, or page_indptr, page_indices and last_page_len");
  EXPECT_EQ(error_of(kSmall, [](auto& a) { a.last_page_len = a.seq_lens, a.seq_lens = a.page_table = {}; }),
            "attention.paged: `page_indptr` is absent, expected page_indptr, page_indices and last_page_len together");
  EXPECT_EQ(error_of(kSmall, [](auto& a) { a.last_page_len = a.seq_lens; }),
            "attention.paged: `last_page_len` is given, expected none beside page_table, which takes seq_lens");
  EXPECT_EQ(error_of(kSmall, [](auto& a) { a.window_left = -2; }), "attention.paged: `window_left` is -2, expected -1 or more");
  EXPECT_EQ(error_of(kSmall, [](auto& a) { a.soft_cap = -1; }),
            "attention.paged: `soft_cap` is -1, expected 0 or a number from 1e-6 to 1e6");
  EXPECT_EQ(error_of(kSmall, [](auto& a) { a.soft_cap = NAN; }),
            "attention.paged: `soft_cap` is nan, expected 0 or a number from 1e-6 to 1e6");
  EXPECT_EQ(error_of(kSmall, [](auto& a) { a.sm_scale = NAN; }), "attention.paged: `sm_scale` is nan, expected a number from -1e6 to 1e6");
  EXPECT_EQ(
      error_of(kSmall, [](auto& a) { a.q.shape[0] = a.out.shape[0] = a.out_lse.shape[0] = 1; }),
      "attention.paged: `tokens` is 1, expected batch=2, one query token a request, or q_indptr (batch was set by `page_table` [2, 3])");
  EXPECT_EQ(error_of(kSmall, [](auto& a) { a.max_seq_kv = -5; }), "attention.paged: `max_seq_kv` is -5, expected 0 or more");
  EXPECT_EQ(error_of(kSmall, [](auto& a) { a.v_cache.strides[3] = 2; }),
            "attention.paged: `v_cache` has stride 2 at its last dim, expected 1 (dense rows)");
  EXPECT_EQ(error_of(kSmall, [](auto& a) { a.seq_lens.shape[0] = 3; }),
            "attention.paged: `seq_lens` has shape [3], expected batch=2 at dim 0 (batch was set by `page_table` [2, 3])");
  EXPECT_EQ(error_of(
                kSmall, [](auto& a) { a.k_cache.dtype = DType::f16; }, ErrorKind::type),
            "attention.paged: `k_cache` is f16, expected bf16 like `q`, e4m3 or e5m2");
}

/// As paged.h says: no page is read that the table does not name.
TEST(attention_paged, a_length_beyond_the_table_is_cut_to_it) {
  CaseArgs c(op(), {{"batch", 2}, {"heads_kv", 1}, {"head_dim", 64}, {"page_size", 16}, {"capacity", 48}, {"length", 48}}, 1);
  const PagedArgs& a = args_of(c);
  ASSERT_EQ(a.page_table.shape[1], 3);
  const auto result = [&](i32 length) {
    for (i64 b = 0; b < 2; ++b) static_cast<i32*>(a.seq_lens.data)[b * a.seq_lens.strides[0]] = length;
    paged(a);
    return std::string(static_cast<const char*>(a.out.data), size_t(a.out.extent()) * 2);
  };
  const std::string whole = result(48);
  EXPECT_EQ(result(49), whole);
  EXPECT_EQ(result(1 << 30), whole);
  EXPECT_NE(result(47), whole);
}

TEST(attention_paged, a_workspace_is_large_enough_and_aligned) {
  CaseArgs c(op(), {{"batch", 2}, {"heads_kv", 1}, {"head_dim", 64}, {"capacity", 600}}, 1);
  std::vector<char> room(8 << 20);
  char* const aligned = reinterpret_cast<char*>(round_up<u64>(reinterpret_cast<u64>(room.data()), 256));
  const auto refused = [&](char* at, i64 bytes) -> std::string {
    RunOptions options;
    options.workspace = {at, bytes};
    try {
      paged(args_of(c), options);
    } catch (const Error& e) { return e.what(); }
    return "nothing thrown";
  };
  char address[32];
  std::snprintf(address, sizeof address, "%p", static_cast<void*>(aligned + 16));
  EXPECT_EQ(refused(aligned + 16, 4 << 20),
            std::string("attention.paged: `workspace` starts at ") + address + ", expected an address that is a multiple of 256");
  EXPECT_THAT(refused(aligned, 1), ::testing::HasSubstr("`workspace` has 1 bytes, expected "));
  EXPECT_EQ(refused(nullptr, 4 << 20), "attention.paged: `workspace` has no address and 4194304 bytes, expected an address, or 0 bytes");
}

TEST(attention_paged, a_workspace_has_memory_of_its_own) {
  CaseArgs c(op(), {{"batch", 2}, {"heads_kv", 1}, {"head_dim", 64}, {"capacity", 600}}, 1);
  std::vector<char> room(16 << 20);
  char* const aligned = reinterpret_cast<char*>(round_up<u64>(reinterpret_cast<u64>(room.data()), 256));
  PagedArgs a = args_of(c);
  const i64 needed = workspace_bytes("attention.paged", a);
  ASSERT_GT(needed, 256);
  a.out.data = aligned + needed - 128;  // its first row begins in the workspace's last bytes
  const auto call = [&] { paged(a, {.workspace = {aligned, needed}}); };
  try {
    call();
    FAIL() << "nothing thrown";
  } catch (const Error& e) { EXPECT_STREQ(e.what(), "attention.paged: `workspace` overlaps `out` in memory, expected memory of its own"); }
  a.out.data = aligned + round_up<i64>(needed, 256);
  call();
}

static i64 paged_workspace(Case which, const DeviceInfo& device) {
  which["heads_kv"] = 2, which["gqa"] = 4, which["head_dim"] = 128, which["spare"] = 0;
  const testing::ArgsStorage args = testing::fake_args(op(), testing::derived(op(), which));
  return make_plan(op(), bind(op(), args.get(), {}), device).workspace;
}

/// What an engine allocates once for its limits serves every smaller step.
TEST(attention_paged, a_workspace_grows_with_its_limits) {
  const auto bytes = [](const Case& which) { return paged_workspace(which, device_info_of(Arch{})); };
  const i64 limit = bytes({{"batch", 64}, {"queries", 4}, {"capacity", 8192}});
  EXPECT_GT(limit, 0);
  for (const i64 batch : {1, 7, 64})
    for (const i64 queries : {1, 4})
      for (const i64 capacity : {1, 300, 8192})
        EXPECT_LE(bytes({{"batch", double(batch)}, {"queries", double(queries)}, {"capacity", double(capacity)}}), limit)
            << batch << " " << queries << " " << capacity;
}

/// The bytes are those of the arch and of the number of multiprocessors: a size that was computed on the emulated device holds on the GPU.
TEST(attention_paged, a_workspace_is_the_same_on_both_devices) {
  i64 largest = 0;
  for (const Arch arch : {Arch{80}, Arch{90, 'a'}})
    for (const i64 batch : {1, 7, 64})
      for (const i64 queries : {-2, 1, 4, 100})
        for (const i64 capacity : {300, 8192, 131072}) {
          const Case which = {{"batch", double(batch)}, {"queries", double(queries)}, {"capacity", double(capacity)}};
          DeviceInfo device = device_info_of(arch);
          const i64 bytes = paged_workspace(which, device);
          largest = std::max(largest, bytes);
          device.emulated = 1 - device.emulated, device.l2_bytes /= 2, device.memory_bytes /= 8, device.name[0] = '?';
          EXPECT_EQ(paged_workspace(which, device), bytes) << arch.number << " " << batch << " " << queries << " " << capacity;
        }
  EXPECT_GT(largest, 1 << 20);
}

std::string plan_text(Case which, Arch arch = Arch{}) {
  const Case derived = testing::derived(op(), which);
  const ArgsStorage args = testing::fake_args(op(), derived);
  const Plan plan = make_plan(op(), bind(op(), args.get(), testing::options_of(op(), derived)), device_info_of(arch));
  std::string text;
  for (i32 i = 0; i < plan.count; ++i)
    text += jit::print(plan.launches[i].spec) + " grid=" + std::to_string(plan.launches[i].config.grid[0]) + "\n";
  return text + "workspace=" + std::to_string(plan.workspace);
}

/// plans.txt has the plans.
TEST(attention_paged, a_window_of_one_chunk_is_planned_as_a_call_of_one_chunk) {
  for (const char* variant : {"portable", "few_rows_sm90"}) {
    Case window = {{"batch", 64}, {"heads_kv", 8}, {"gqa", 4}, {"head_dim", 128}, {"capacity", 8192}, {"page_size", 16}};
    window["variant"] = variant_index("attention.paged", variant);
    Case alone = window;
    alone["capacity"] = 256;
    EXPECT_NE(plan_text(window), plan_text(alone));
    window["window_left"] = 127;
    EXPECT_EQ(plan_text(window), plan_text(alone));
  }
}

TEST(attention_paged, few_rows_sm90_says_what_it_cannot_run) {
  const auto reason = [](const char* name, double value, Arch arch = Arch{90, 1}) {
    Case which = {{"batch", 2}, {"heads_kv", 2}, {"gqa", 4}, {"head_dim", 128}, {"capacity", 64}, {"page_size", 16}};
    which["variant"] = variant_index("attention.paged", "few_rows_sm90");
    if (name) which[name] = value;
    const Case derived = testing::derived(op(), which);
    const ArgsStorage args = testing::fake_args(op(), derived);
    try {
      make_plan(op(), bind(op(), args.get(), testing::options_of(op(), derived)), device_info_of(arch));
    } catch (const Error& e) { return std::string(e.what()); }
    return std::string();
  };
  EXPECT_EQ(reason(nullptr, 0), "");
  EXPECT_EQ(reason("page_size", 8), "");
  for (const auto& [name, value, said] : {std::tuple{"page_size", 7, "page_size=7, wants a multiple of 8"},
                                          {"v_cache.pad", 4, "alignment of v_cache=8, wants 16 bytes for every row"},
                                          {"head_dim", 512, "head_dim=512, wants at most 256"},
                                          {"bits", 1, "mask=given, wants none: its bits are read by the portable kernels"}})
    EXPECT_THAT(reason(name, value), ::testing::HasSubstr(said));
  EXPECT_THAT(reason(nullptr, 0, Arch::parse("sm_80")), ::testing::HasSubstr("arch=80, wants 90"));
}

/// Lengths and pages are read on the device only: the plan does not depend on them, and a row has the same bits whatever
/// the other rows are when batch_invariant is asked for.
TEST(attention_paged, rows_keep_their_bits_alone) {
  Case which = {{"batch", 5},        {"heads_kv", 2},       {"gqa", 4}, {"head_dim", 64}, {"capacity", 900},
                {"sink.present", 1}, {"batch_invariant", 1}};
  for (const bool csr : {false, true}) {
    which["csr"] = csr;
    CaseArgs c(op(), which, 3);
    PagedArgs together = args_of(c);
    RunOptions options;
    options.batch_invariant = true;
    paged(together, options);
    const i64 row_bytes = together.out.shape[1] * together.out.strides[1] * 2;
    const std::vector<char> before(static_cast<char*>(together.out.data),
                                   static_cast<char*>(together.out.data) + 5 * together.out.strides[0] * 2);
    for (i64 b = 0; b < 5; ++b) {
      PagedArgs one = together;
      for (TensorView PagedArgs::* m :
           {&PagedArgs::out, &PagedArgs::out_lse, &PagedArgs::q, &PagedArgs::page_table, &PagedArgs::seq_lens, &PagedArgs::last_page_len})
        if ((one.*m).present()) one.*m = (one.*m).slice(0, b, b + 1);
      if (csr) one.page_indptr = one.page_indptr.slice(0, b, b + 2);  // indices stay absolute
      paged(one, options);
      EXPECT_EQ(std::memcmp(one.out.data, before.data() + b * together.out.strides[0] * 2, size_t(row_bytes)), 0)
          << "row " << b << " csr " << csr;
    }
  }
}

/// A captured call replayed with other lengths gives the bits of an eager call with them.
TEST(attention_paged, replays_with_other_lengths) {
  const Case which = {{"batch", 3}, {"heads_kv", 2}, {"gqa", 4}, {"head_dim", 64}, {"capacity", 900}, {"length", 900}};
  CaseArgs c(op(), which, 5);
  PagedArgs& a = args_of(c);
  std::vector<char> workspace_room(8 << 20);
  void* aligned = reinterpret_cast<void*>(round_up<u64>(reinterpret_cast<u64>(workspace_room.data()), 256));
  Device& on = device();
  const Stream stream = on.create_stream();
  const RunOptions options{.device = &on, .stream = stream, .workspace = {aligned, 7 << 20}};
  paged(a, options);  // compiles
  on.begin_capture(stream);
  paged(a, options);
  void* graph = on.end_capture(stream);
  const i32 lengths[2][3] = {{37, 0, 900}, {512, 899, 1}};
  for (const auto& set : lengths) {
    std::memcpy(a.seq_lens.data, set, sizeof set);
    on.replay(graph, stream);
    on.synchronize(stream);
    const std::vector<char> replayed(static_cast<char*>(a.out.data), static_cast<char*>(a.out.data) + a.out.numel() * 2);
    std::memset(a.out.data, 0xff, replayed.size());
    paged(a, options);
    on.synchronize(stream);
    EXPECT_EQ(std::memcmp(a.out.data, replayed.data(), replayed.size()), 0);
  }
  on.destroy_graph(graph);
  on.destroy(stream);
}

/// A NaN among a row's keys is in its output and in its lse, in one part and in cut items alike: fmax skips NaN, so that a
/// row of NaNs has the maximum of an empty one.
TEST(attention_paged, nan_keys_reach_output_and_lse) {
  for (const i64 capacity : {16, 900}) {
    for (const bool all : {true, false}) {
      CaseArgs c(
          op(), {{"batch", 2}, {"heads_kv", 1}, {"gqa", 4}, {"head_dim", 64}, {"capacity", double(capacity)}, {"length", double(capacity)}},
          5);
      PagedArgs& a = args_of(c);
      const u16 nan = 0x7fc0;
      u16* key = static_cast<u16*>(a.k_cache.data);
      const i64 page = Ref(a.page_table).index(0, 0);
      for (i64 i = 0; i < (all ? a.k_cache.numel() : 1); ++i) key[all ? i : page * a.k_cache.strides[0]] = nan;
      paged(a);
      for (i64 h = 0; h < 4; ++h) {
        EXPECT_TRUE(std::isnan(Ref(a.out)(0, h, 7))) << capacity << " " << all;
        EXPECT_TRUE(std::isnan(Ref(a.out_lse)(0, h))) << capacity << " " << all;
        EXPECT_EQ(std::isnan(Ref(a.out_lse)(1, h)), all) << capacity;
      }
    }
  }
}

const jit::Hooks kSlope = {"mine::Slope", "slope", R"(
namespace mine {
using namespace quern;
struct Slope {
  QN_DEVICE f32 logit(f32 x, const attention::HookContext& c) {
    const float slope = *reinterpret_cast<const float*>(c.params);
    return x - f32(slope) * f32(float(c.head_q + 1)) * f32(float(c.query_position - c.key_position));
  }
  QN_DEVICE bool visible(const attention::HookContext& c) { return c.key_position % 3 != 1 || c.request == 0; }
};
}  // namespace mine
)"};

/// ALiBi by a hook with the caller's parameter, and a mask that a window cannot say.
TEST(attention_paged, calls_hooks) {
  const Case which = {
      {"batch", 2}, {"heads_kv", 2}, {"gqa", 4}, {"head_dim", 64}, {"capacity", 300}, {"length", 300}, {"q.dtype", int(DType::f16)}};
  CaseArgs c(op(), which, 7);
  PagedArgs& a = args_of(c);
  const float slope = 0.02f;
  std::memcpy(a.hook_params, &slope, sizeof slope);
  a.hooks = &kSlope;
  paged(a);
  const Ref q(a.q), k(a.k_cache), v(a.v_cache), out(a.out), table(a.page_table);
  for (i64 b = 0; b < 2; ++b) {
    for (i64 h = 0; h < 8; ++h) {
      double sum = 0, expected = 0;
      for (i64 j = 0; j < 300; ++j) {
        if (j % 3 == 1 && b != 0) continue;
        const i64 page = table.index(b, j / 16), slot = j % 16;
        double x = 0;
        for (i64 d = 0; d < 64; ++d) x += q(b, h, d) * k(page, slot, h / 4, d);
        const double p = std::exp(x / 8 - double(slope) * double(h + 1) * double(299 - j));
        sum += p, expected += p * v(page, slot, h / 4, 5);
      }
      EXPECT_NEAR(out(b, h, 5), expected / sum, 3e-3) << b << " " << h;
    }
  }
}

}  // namespace
}  // namespace quern::attention
