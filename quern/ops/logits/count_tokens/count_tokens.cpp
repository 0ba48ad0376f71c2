// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/logits/count_tokens.h"

#include "quern/base/host_dtype.h"
#include "quern/op/schema.h"
#include "quern/ops/logits/count_tokens/ref.h"
#include "quern/ops/logits/count_tokens/spec.h"

namespace quern::logits {

using A = CountTokensArgs;

static const jit::Kernel<CountTokensConfig, CountTokensParams> thread_kernel{"quern/ops/logits/count_tokens/kernel.cuh",
                                                                             "count_tokens_thread"};

/// Bits alone have no other vocabulary than all that they have room for.
static i64 vocab_of(const A& a) { return a.counts.present() ? a.counts.shape[1] : 32 * a.prompt_bits.shape[1]; }

static CountTokensParams params(const Call<A>& c) {
  const A& a = c.args;
  return {.counts = static_cast<u32*>(a.counts.data),
          .prompt_bits = static_cast<u32*>(a.prompt_bits.data),
          .ids = a.ids.data,
          .slots = static_cast<const i32*>(a.slots.data),
          .counts_stride = a.counts.present() ? a.counts.strides[0] : 0,
          .prompt_bits_stride = a.prompt_bits.present() ? a.prompt_bits.strides[0] : 0,
          .tokens = a.ids.shape[0],
          .slot_rows = a.counts.present() ? a.counts.shape[0] : a.prompt_bits.shape[0],
          .vocab = vocab_of(a)};
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  const CountTokensConfig config{p.dtype(&A::ids), 128};
  Plan plan;
  plan.launch<params>(
      thread_kernel, config,
      {.x = max_of<i64>(1, min_of<i64>(ceil_div<i64>(p[Axis::tokens], config.threads), i64(device.sms) * 16)), .pdl = p.pdl});
  return plan;
}

static Rejection state_fits(const Problem& p) {
  if (!p.tensor(&A::counts).present && !p.tensor(&A::prompt_bits).present) return {"counts", "absent", "counts, prompt_bits, or both"};
  static const Axis vocab = axis_of("vocab"), prompt_words = axis_of("prompt_words");
  const bool both = p.tensor(&A::counts).present && p.tensor(&A::prompt_bits).present;
  if (both && p[prompt_words] != ceil_div<i64>(p[vocab], 32))
    return {"prompt_words", p[prompt_words], "{}, a bit for each column of counts", ceil_div<i64>(p[vocab], 32)};
  return {};
}

/// No token beyond the vocabulary, which counts tell where they are given.
static Breach contract(const A& a, const Problem&) {
  const Ref ids(a.ids);
  for (i64 i = 0; i < ids.dim(0); ++i)
    if (ids.index(i) >= vocab_of(a)) return {"ids", {i}, ids.index(i), range_text(0, vocab_of(a) - 1) + " or negative"};
  return {};
}

/// A count and a word are read and written for each token; the tensors are as large as they like.
static Cost cost(const Problem& p, const A& a) {
  const double updates = (a.counts.present() ? 8 : 0) + (a.prompt_bits.present() ? 8 : 0);
  return {double(p[Axis::tokens]) * (size_of(p.dtype(&A::ids)) + 4 + updates), 0};
}

/// Few distinct tokens, so that they meet; some tokens and slots are none, and where the case's word `beyond` is 1, some are beyond the
/// tensors.
static void generate(A& a, const Case& which, Random& random) {
  const auto at = which.find("beyond");
  const bool beyond = at != which.end() && at->second != 0;
  const TensorView& state = a.counts.present() ? a.counts : a.prompt_bits;
  const i64 rows = state.shape[0], vocab = vocab_of(a);
  for (i64 i = 0; i < a.ids.shape[0]; ++i) {
    const i64 here[] = {i};
    i64 id = random.below(2) ? random.below(vocab) : random.below(min_of<i64>(vocab, 3)), slot = rows > 0 ? random.below(rows) : -1;
    if (i % 8 == 3) id = -1 - i;
    if (i % 8 == 6) slot = -1 - i;
    if (beyond && i % 4 == 1) (i % 8 == 1 ? id : slot) = (i % 8 == 1 ? vocab : rows) + random.below(2) * i;
    store_integer(a.ids.at(here), a.ids.dtype, id);
    store_integer(a.slots.at(here), a.slots.dtype, slot);
  }
  for (i64 row = 0; a.counts.present() && row < rows; ++row)
    for (i64 v = 0; v < vocab; ++v) {
      const i64 here[] = {row, v};
      store_integer(a.counts.at(here), DType::i32, random.below(4) ? 0 : random.below(100));
    }
  for (i64 row = 0; a.prompt_bits.present() && row < rows; ++row)
    for (i64 w = 0; w < a.prompt_bits.shape[1]; ++w) {
      const i64 here[] = {row, w};
      store_integer(a.prompt_bits.at(here), DType::i32, i64(i32(u32(random.next() & random.next() & random.next()))));
    }
}

static void derive(Case& which) {
  const i64 given = i64(which["given"]);
  which["counts.present"] = given != 2, which["prompt_bits.present"] = given != 1;
  which["prompt_words"] = (i64(which["vocab"]) + 31) / 32;
  which.erase("given");
}

QN_OP(count_tokens, A, "logits.count_tokens")
    .doc(
        "counts[slots[i], ids[i]] += 1 and bit ids[i] of prompt_bits[slots[i]] = 1 for each token i; negative ids and slots are passed over")
    .inout("counts", &A::counts, "slots vocab", {DType::i32})
    .optional()
    .values(generated())
    .contents(each_within("-2147483648", "2147483647"))
    .meaning("what logits.process reads: how often each token stands in the output")
    .inout("prompt_bits", &A::prompt_bits, "slots prompt_words", {DType::i32})
    .optional()
    .values(generated())
    .contents(each_within("-2147483648", "2147483647"))
    .meaning("bit j of word w is token 32 w + j")
    .in("ids", &A::ids, "tokens", {DType::i32, DType::i64})
    .values(generated())
    .contents(each_within("0", "2147483647").or_negative())
    .meaning("tokens, below vocab or, where counts are absent, below 32 prompt_words; negative: passed over")
    .in("slots", &A::slots, "tokens", {DType::i32})
    .values(generated())
    .contents(each_below("slots").or_negative())
    .meaning("the row of counts and prompt_bits; negative: the token is passed over")
    .require(state_fits)
    .plan(plan)
    .reference<count_tokens_ref>()
    .generate<generate>()
    .contract<contract>()
    .broken_contents("beyond", 1)
    .cost<cost>()
    .exact("counts and bits are integers: other number types have none")
    .cases({{"tokens", {300, 1, 0, 33}},
            {"slots", {3, 1, 0, 40}},
            {"vocab", {1000, 1, 32, 33}},
            {"given", {0, 1, 2}, "counts and prompt_bits (0), counts alone (1), prompt_bits alone (2)"},
            {"ids.dtype", {DType::i32, DType::i64}},
            {"beyond", {0, 1}, "some ids and slots are beyond the tensors"},
            {"counts.pad", {0, 5}},
            {"prompt_bits.pad", {0, 3}}},
           derive)
    .bench({{{"tokens", 64}, {"slots", 256}, {"vocab", 128256}, {"given", 1}},
            {{"tokens", 8192}, {"slots", 256}, {"vocab", 128256}, {"given", 2}}});

}  // namespace quern::logits
