// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Hooks of the family: what they are told, the tensors that they read, and what is refused.
#include "quern/ops/attention/hooks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "quern/base/host_dtype.h"
#include "quern/device/emulated.h"
#include "quern/jit/kernel_table.h"
#include "quern/op/ref.h"
#include "quern/op/schema.h"
#include "quern/ops/attention/paged.h"
#include "quern/ops/attention/paged/ref.h"
#include "quern/testing/check.h"

namespace quern::attention {
namespace {

using ::testing::AllOf;
using testing::CaseArgs;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr i64 kBatch = 3, kHeadsKv = 2, kGroup = 4, kHeads = kHeadsKv * kGroup, kDim = 64, kCapacity = 90;

/// Arguments with requests of different lengths, the first as long as the table has room for.
struct Call {
  CaseArgs storage;
  PagedArgs& args;
  explicit Call(i64 capacity = kCapacity)
      : storage(find_op("attention.paged"),
                {{"batch", kBatch},
                 {"heads_kv", kHeadsKv},
                 {"gqa", kGroup},
                 {"head_dim", kDim},
                 {"capacity", double(capacity)},
                 {"length", double(capacity)},
                 {"q.dtype", int(DType::f16)}},
                7),
        args(*static_cast<PagedArgs*>(storage.args())) {
    const i32 lengths[kBatch] = {i32(capacity), 17, 1};
    std::memcpy(args.seq_lens.data, lengths, sizeof lengths);
  }
  void run(const RunOptions& options = {}) { paged(args, options); }
};

/// log2 of the sum of exp of the logits, and element 5 of the output, in double; `logit(b, h, key, x)` of the product
/// x, -inf where it is not seen.
template <class Logit>
void expect_attention(const PagedArgs& a, const Logit& logit) {
  const Ref q(a.q), k(a.k_cache), v(a.v_cache), out(a.out), lse(a.out_lse), table(a.page_table), lengths(a.seq_lens);
  const i64 page_size = a.k_cache.shape[1];
  for (i64 b = 0; b < kBatch; ++b) {
    for (i64 h = 0; h < kHeads; ++h) {
      double sum = 0, expected = 0;
      for (i64 j = 0; j < lengths.index(b); ++j) {
        const i64 page = table.index(b, j / page_size), slot = j % page_size;
        double x = 0;
        for (i64 d = 0; d < kDim; ++d) x += q(b, h, d) * k(page, slot, h / kGroup, d);
        const double p = std::exp(logit(b, h, j, x / std::sqrt(double(kDim))));
        sum += p, expected += p * v(page, slot, h / kGroup, 5);
      }
      EXPECT_NEAR(out(b, h, 5), expected / sum, 3e-3) << b << " " << h;
      EXPECT_NEAR(lse(b, h), std::log2(sum), 1e-3) << b << " " << h;
    }
  }
}

template <class F>
std::string error_of(F call, ErrorKind kind = ErrorKind::value) {
  try {
    call();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    return e.what();
  }
  return "nothing thrown";
}

std::unique_ptr<Device> checked_device() {
  EmulatedOptions how;
  how.checked = true;
  return make_emulated_device(device_info_of(Arch{}), how);
}

/// Each field of the context has a part in the logit that no other has. The first request is cut into parts.
TEST(attention_hooks, are_told_where_a_logit_lies) {
  Call call(400);
  call.args.hooks = hooks_of(R"(
struct Places {
  QN_DEVICE f32 logit(f32, const HookContext& at) {
    return f32(0.02f * float(at.query_position - at.key_position) + 0.003f * float(at.query_position * (at.key_position % 7)) +
               0.1f * float(at.request * (at.key_position % 3)) + 0.05f * float(at.query_token * (at.key_position % 5)) +
               0.04f * float(at.head_q * (at.key_position % 2)) - 0.3f * float(at.head_kv) - 0.01f * float(at.seq_len));
  }
};)");
  call.run();
  const Ref lengths(call.args.seq_lens);
  expect_attention(call.args, [&](i64 b, i64 h, i64 key, double) {
    const double query = double(lengths.index(b) - 1);
    return 0.02 * (query - double(key)) + 0.003 * query * double(key % 7) + 0.1 * double(b * (key % 3)) + 0.05 * double(b * (key % 5)) +
           0.04 * double(h * (key % 2)) - 0.3 * double(h / kGroup) - 0.01 * double(lengths.index(b));
  });
}

/// The text of docs/own_ops.md.
TEST(attention_hooks, a_text_is_enough) {
  Call call;
  PagedArgs& args = call.args;
  args.hooks = attention::hooks_of(R"(struct Alibi {
    QN_DEVICE f32 logit(f32 x, const HookContext& at) { return x - f32(0.1f) * f32(float(at.query_position - at.key_position)); }
  };)");
  attention::paged(args);
  const Ref lengths(args.seq_lens);
  expect_attention(args, [&](i64 b, i64, i64 key, double x) { return x - 0.1 * double(lengths.index(b) - 1 - key); });
}

const char* const kDecayedBias = R"(
/// A bias by head and bucket of distance, and a table of the buckets; what is further than the table is not seen.
struct DecayedBias {
  QN_DEVICE i32 distance(const HookContext& at) { return at.query_position - at.key_position; }
  QN_DEVICE f32 logit(f32 x, const HookContext& at) {
    return x + real_at(at.tensors[0], at.head_q, integer_at(at.tensors[1], distance(at))) / f32(float(1 + distance(at)));
  }
  QN_DEVICE bool visible(const HookContext& at) { return distance(at) < i32(at.tensors[1].sizes[0]); }
};)";

/// A table of biases of any dtype and strides, and one of i32, i64 or u8.
struct Tables {
  static constexpr i64 kBuckets = 5, kReach = 40;
  std::vector<char> bias, bucket;
  TensorView bias_view, bucket_view;
  Tables(DType of_bias, DType of_bucket) : bias(kHeads * kBuckets * 2 * 8), bucket(kReach * 8) {
    bias_view = TensorView(bias.data(), of_bias, {kHeads, kBuckets});
    bias_view.strides[0] = 1, bias_view.strides[1] = kHeads + 3;
    bucket_view = TensorView(bucket.data(), of_bucket, {kReach});
    for (i64 h = 0; h < kHeads; ++h)
      for (i64 i = 0; i < kBuckets; ++i) store_value(address(h, i), of_bias, double((h * 3 + i * 5) % 11 - 4));
    for (i64 i = 0; i < kReach; ++i) store_value(bucket.data() + i * size_of(of_bucket), of_bucket, double(i * i % kBuckets));
  }
  void* address(i64 h, i64 i) const {
    const i64 index[] = {h, i};
    return bias_view.at(index);
  }
  double value(i64 h, i64 distance) const {
    return load_value(static_cast<const char*>(address(h, distance * distance % kBuckets)), bias_view.dtype);
  }
};

TEST(attention_hooks, read_tensors_of_every_dtype) {
  for (const auto& [of_bias, of_bucket] : {std::pair{DType::f32, DType::i32},
                                           {DType::bf16, DType::u8},
                                           {DType::f16, DType::i64},
                                           {DType::i32, DType::i32},
                                           {DType::i64, DType::u8}}) {
    SCOPED_TRACE(std::string(name(of_bias)) + " " + name(of_bucket));
    Call call;
    const Tables tables(of_bias, of_bucket);
    call.args.hooks = hooks_of(kDecayedBias);
    call.args.hook_tensors[0] = tables.bias_view, call.args.hook_tensors[1] = tables.bucket_view;
    const auto checked = checked_device();
    for (Device* device : {&device_of({}), checked.get()}) {
      call.storage.reset();
      const i32 lengths[kBatch] = {90, 17, 1};
      std::memcpy(call.args.seq_lens.data, lengths, sizeof lengths);
      call.run({.device = device});
      expect_attention(call.args, [&](i64 b, i64 h, i64 key, double x) {
        const i64 distance = lengths[b] - 1 - key;
        return distance < Tables::kReach ? x + tables.value(h, distance) / double(1 + distance) : -HUGE_VAL;
      });
    }
  }
}

TEST(attention_hooks, a_read_outside_of_a_tensor_is_reported_with_its_name) {
  Call call;
  const Tables tables(DType::f32, DType::i32);
  call.args.hooks = hooks_of(R"(struct TooFar {
    QN_DEVICE f32 logit(f32 x, const HookContext& at) { return x + real_at(at.tensors[0], 0, 0) + f32(float(integer_at(at.tensors[1], at.key_position))); }
  };)");
  call.args.hook_tensors[0] = tables.bias_view, call.args.hook_tensors[1] = tables.bucket_view;
  const auto checked = checked_device();
  EXPECT_THAT(error_of([&] { call.run({.device = checked.get()}); }, ErrorKind::device),
              ContainsRegex("'hook_tensors.1.' i32 .40. is read at index [4-8][0-9] of dim 0, expected one in .0, 40\\)"));
}

TEST(attention_hooks, wrong_tensors_are_refused) {
  const Tables tables(DType::f32, DType::i32);
  const auto error_with = [&](void (*broken)(PagedArgs&), ErrorKind kind = ErrorKind::value) {
    Call call;
    call.args.hooks = hooks_of(kDecayedBias);
    call.args.hook_tensors[0] = tables.bias_view, call.args.hook_tensors[1] = tables.bucket_view;
    broken(call.args);
    return error_of([&] { call.run(); }, kind);
  };
  EXPECT_EQ(error_with([](auto& a) { a.hook_tensors[1] = {}; }),
            "attention.paged: `hook_tensors[1]` is missing, expected a tensor, which the hooks DecayedBias read");
  EXPECT_EQ(error_with([](auto& a) { a.hooks = nullptr, a.hook_tensors[1] = {}; }),
            "attention.paged: `hook_tensors[0]` is given, expected none, as the call has no hooks");
  EXPECT_EQ(error_with([](auto& a) { a.hook_tensors[0].dtype = DType::f64; }, ErrorKind::type),
            "attention.paged: `hook_tensors[0]` is f64, expected f32, f16, bf16, i32, i64 or u8");
  EXPECT_EQ(error_with([](auto& a) { a.hook_tensors[0].device = {DeviceType::cuda, 1}; }),
            "attention.paged: `hook_tensors[0]` is on cuda:1, expected the host like the tensors before it");
  EXPECT_EQ(error_with([](auto& a) { a.hook_tensors[2] = TensorView(a.hook_tensors[1].data, DType::i32, {1, 1, 2, 2, 2}); }),
            "attention.paged: `hook_tensors[2]` has shape [1, 1, 2, 2, 2], expected 1 to 4 dims");
  EXPECT_EQ(error_with([](auto& a) { a.hook_tensors[3] = TensorView(a.out.data, DType::f16, {4}); }),
            "attention.paged: `out` overlaps `hook_tensors[3]` in memory, expected memory of its own");
  EXPECT_EQ(error_with([](auto& a) { a.hook_tensors[0].data = nullptr; }),
            "attention.paged: `hook_tensors[0]` has no data, expected a pointer, its shape is [8, 5]");
}

TEST(attention_hooks, may_ask_for_a_tensor) {
  const jit::Hooks* hooks = hooks_of(R"(struct Asks {
    QN_DEVICE f32 logit(f32 x, const HookContext& at) { return is_given(at.tensors[2]) ? x + real_at(at.tensors[2], at.head_q) * f32(float(at.key_position)) : x; }
  };)");
  Call call;
  call.args.hooks = hooks;
  call.run();
  expect_attention(call.args, [&](i64, i64, i64, double x) { return x; });
  float slopes[kHeads];
  for (i64 h = 0; h < kHeads; ++h) slopes[h] = -0.01f * float(h);
  call.args.hook_tensors[2] = TensorView(slopes, DType::f32, {kHeads});
  call.run();
  expect_attention(call.args, [&](i64, i64 h, i64 key, double x) { return x + double(slopes[h]) * double(key); });
}

/// Hooks named Wrong whose logit adds `access`, with a tensor f32 [2] that they read.
std::string error_of_access(const std::string& access, ErrorKind kind, Device* device = nullptr) {
  float two[2] = {1, 1}, others[2] = {1, 1};
  Call call;
  call.args.hooks = hooks_of(
      "struct Wrong { QN_DEVICE f32 logit(f32 x, const HookContext& at) { const HookTensor& t = at.tensors[1]; return is_given(t) ? x + f32(float(" +
      access + ")) : x; } };");
  call.args.hook_tensors[0] = TensorView(two, DType::f32, {2}), call.args.hook_tensors[1] = TensorView(others, DType::f32, {2});
  return error_of([&] { call.run({.device = device}); }, kind);
}

/// What the text shows is refused before anything runs, on every device.
TEST(attention_hooks, an_access_of_the_wrong_kind_is_refused) {
  const std::string op = "attention.paged: ";
  EXPECT_EQ(error_of_access("real_at(at.tensors[0], 0, 0)", ErrorKind::value),
            op + "`hook_tensors[0]` has shape [2], expected 2 dims, by which the hooks Wrong read it");
  EXPECT_EQ(error_of_access("integer_at(at.tensors[0], 0)", ErrorKind::type),
            op + "`hook_tensors[0]` is f32, expected i32, i64 or u8, which the hooks Wrong read by integer_at");
  EXPECT_EQ(error_of_access("real_at(at.tensors[5], 0)", ErrorKind::value),
            op + "`hooks` is Wrong, which reads at.tensors[5], expected at.tensors[0] to at.tensors[3]");
  EXPECT_EQ(error_of_access("reinterpret_cast<const float*>(at.params)[16]", ErrorKind::value),
            op + "`hooks` is Wrong, which reads 68 bytes of at.params, expected at most 64");
  EXPECT_EQ(error_of_access("at.tensors[0].rank == 1 ? real_at(at.tensors[0], 1) : real_at(at.tensors[0], 1, 1)", ErrorKind::value),
            "nothing thrown");
}

/// What it does not show is reported by the emulated device, whether checked or not.
TEST(attention_hooks, an_access_of_the_wrong_kind_is_reported) {
  const auto checked = checked_device();
  for (const auto& [access, text] : {std::pair{"real_at(t, 0, 0)", " is read with 2 indices, expected 1, one for each dim"},
                                     {"real_at(t, at.seq_len > 0 ? 2 : 0)", " is read at index 2 of dim 0, expected one in [0, 2)"},
                                     {"real_at(t, at.seq_len > 0 ? -1 : 0)", " is read at index -1 of dim 0, expected one in [0, 2)"},
                                     {"float(integer_at(t, 0))", " is read by integer_at, expected a tensor of i32, i64 or u8"}})
    EXPECT_THAT(error_of_access(access, ErrorKind::device, checked.get()),
                AllOf(HasSubstr("HOOK block"), HasSubstr(std::string("'hook_tensors[1]' f32 [2]") + text), HasSubstr("hooks.cuh")));
  EXPECT_THAT(error_of_access("real_at(t, 0, 0)", ErrorKind::device),
              AllOf(HasSubstr("HOOK block"), HasSubstr("a tensor of the hooks is read with 2 indices, expected 1, one for each dim")))
      << "not checked";
  EXPECT_THAT(error_of_access("real_at(at.tensors[at.seq_len > 0 ? 4 : 0], 0)", ErrorKind::device),
              HasSubstr("hooks read at.tensors[4], expected an index in [0, 4)"));
  EXPECT_EQ(error_of_access("real_at(t, at.key_position % 2)", ErrorKind::device, checked.get()), "nothing thrown");
}

/// Hooks that would silently not be called are refused: what the text shows before a compiler is asked, the rest by it.
TEST(attention_hooks, that_would_not_be_called_are_refused) {
  const auto error_with = [](const std::string& text, ErrorKind kind) {
    const jit::Hooks hooks = {"mine::Bad", "bad", text.c_str()};
    Call call;
    call.args.hooks = &hooks;
    const i64 compiled = jit::counters().compiled;
    const std::string said = error_of([&] { call.run(); }, kind);
    EXPECT_EQ(jit::counters().compiled, compiled);
    return said;
  };
  const auto member = [](const std::string& text) { return "namespace mine { using namespace quern; struct Bad { " + text + " }; }"; };
  const std::string points =
      "`f32 logit(f32 x, const HookContext& at)`, `bool visible(const HookContext& at)` or `TileVisibility tile(const HookTile& at)`";
  const std::string right = "QN_DEVICE f32 logit(f32 x, const attention::HookContext&) { return x; } ";
  EXPECT_EQ(error_with(member(right + "QN_DEVICE bool visble(const attention::HookContext&) { return false; }"), ErrorKind::value),
            "attention.paged: `hooks` has the member `visble` in mine::Bad, which no kernel calls, expected "
            "`visible`, or a name that is not nearly that of a point: " +
                points);
  EXPECT_EQ(error_with(member("QN_DEVICE bool mask(const attention::HookContext&) { return false; }"), ErrorKind::value),
            "attention.paged: `hooks` is the type mine::Bad, which has none of the points that kernels call, "
            "expected " +
                points);
  EXPECT_THAT(error_with(member("QN_DEVICE bool visible(int) { return false; }"), ErrorKind::compile),
              HasSubstr("`visible` is another, expected QN_DEVICE bool visible(const HookContext& at)"));
  EXPECT_THAT(error_with(member("f32 logit(f32 x, const attention::HookContext&) { return x; }"), ErrorKind::compile),
              HasSubstr("`logit` is another, expected QN_DEVICE f32 logit(f32 x, const HookContext& at)"));
  EXPECT_THAT(error_with("namespace mine { struct Nothing {}; using Bad = Nothing; }", ErrorKind::compile),
              HasSubstr("none of these is a member, expected one or more: `f32 logit(f32 x, const HookContext& at)` "
                        "`bool visible(const HookContext& at)`"));
}

struct Factor {
  float value = 0.25f;
};
void reference(const PagedArgs& args, const PagedArgs& magnitudes) {
  const Ref slopes(args.hook_tensors[1]);
  Factor factor;
  std::memcpy(&factor, args.hook_params, sizeof factor);
  paged_ref_with(
      args, magnitudes, [&](double x, const HookContext& at) { return x - double(factor.value) * slopes(at.head_q, at.key_position % 2); },
      [](const HookContext&) { return true; });
}
void generate(PagedArgs& args, const Case&, Random&) {
  const Factor factor;
  std::memcpy(args.hook_params, &factor, sizeof factor);
}

/// An op that is based on the family's names a tensor of its hooks: it is then one of the op's, which checks fill and
/// break.
TEST(attention_hooks, an_op_of_ones_own_names_their_tensors) {
  static const jit::Hooks* const hooks = hooks_of(R"(struct Slopes {
    QN_DEVICE f32 logit(f32 x, const HookContext& at) {
      return x - f32(*reinterpret_cast<const float*>(at.params)) * real_at(at.tensors[1], at.head_q, at.key_position % 2);
    }
  };)");
  static Op op;
  Schema<PagedArgs> schema(op, "test.decode_slopes");
  schema.based_on("attention.paged", hooks)
      .hook_tensor(1, "slopes", "heads_q 2", {DType::f32, DType::bf16})
      .meaning("by head and parity")
      .hook_params<Factor>();
  schema.reference<reference>().generate<generate>();
  EXPECT_EQ(op.tensors.back().name, "slopes");
  EXPECT_EQ(op.tensors.back().doc, "by head and parity");
  EXPECT_LT(op.tensor_index("hook_tensors[1]"), 0);
  const auto checked = checked_device();
  for (const Case& which :
       {Case{{"heads_kv", 2}, {"head_dim", 64}, {"capacity", 60}, {"slopes.dtype", int(DType::bf16)}, {"slopes.pad", 3}},
        Case{{"csr", 1}, {"head_dim", 80}, {"capacity", 300}}}) {
    const auto results =
        testing::check_case({&op, which, 3, {{&device_of({}), "--device emu"}, {checked.get(), "--device emu --checked"}}});
    ASSERT_EQ(results.size(), 2u);
    for (const testing::CheckResult& r : results) EXPECT_EQ(r.verdict, testing::CheckResult::Verdict::right) << r.message;
  }
  CaseArgs args(op, {}, 1);
  static_cast<PagedArgs*>(args.args())->hook_tensors[1].shape[1] = 3;
  EXPECT_THAT(error_of([&] { run(op, args.args(), {}); }), HasSubstr("test.decode_slopes: `slopes` has shape [8, 3], expected 2 at dim 1"));
}

}  // namespace
}  // namespace quern::attention
