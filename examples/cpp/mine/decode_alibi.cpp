// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// An attention variant: quern's plan and kernels with hooks of our own, and a reference that knows what the hooks mean.
#include "mine/decode_alibi.h"

#include <cstring>

#include "quern/op/schema.h"
#include "quern/ops/attention/decode_paged/ref.h"

namespace quern::mine {

using attention::DecodePagedArgs;
using attention::HookContext;

// The text of hooks is part of a kernel's source; this one includes a file that the library carries.
static const jit::Hooks kHooks = {"quern::mine::AlibiHooks", "alibi", "#include \"mine/alibi_hooks.cuh\""};

static Alibi alibi_of(const u8* params) {
  Alibi a;
  std::memcpy(&a, params, sizeof a);
  return a;
}

static void reference(const DecodePagedArgs& args, const DecodePagedArgs& magnitudes) {
  const Alibi a = alibi_of(args.hook_params);
  decode_paged_ref_with(
      args, magnitudes,
      [&](double x, const HookContext& at) { return x - double(a.slope) * (at.head_q + 1) * (at.seq_len - 1 - at.position); },
      [&](const HookContext& at) {
        const i32 block = at.position / a.block, blocks = (at.seq_len + a.block - 1) / a.block;
        return block < a.first || block >= blocks - a.last;
      });
}

static void generate(DecodePagedArgs& args, const Case&, Random&) {
  const Alibi a{.slope = 0.01f, .block = 48, .first = 1, .last = 2};
  std::memcpy(args.hook_params, &a, sizeof a);
}

QN_OP(decode_alibi, DecodePagedArgs, "mine.decode_alibi")
    .based_on("attention.decode_paged", &kHooks)
    .doc("attention.decode_paged with ALiBi, over the first and last blocks of positions")
    .source("Press et al., Train Short, Test Long, arXiv 2108.12409")
    .reference<reference>()
    .generate<generate>()
    .bench({{{"batch", 64}, {"capacity", 8192}, {"length", 8192}, {"heads_kv", 8}, {"gqa", 4}, {"head_dim", 128}}});

}  // namespace quern::mine
