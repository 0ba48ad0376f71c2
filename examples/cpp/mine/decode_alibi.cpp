// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// An attention variant: quern's plan and kernels with hooks of our own, and a reference that knows what the hooks mean.
#include "mine/decode_alibi.h"

#include <cstring>

#include "quern/op/schema.h"
#include "quern/ops/attention/paged/ref.h"

namespace quern::mine {

using attention::HookContext;
using attention::PagedArgs;

// The text of hooks is part of a kernel's source; this one includes a file that the library carries.
static const jit::Hooks kHooks = {"quern::mine::AlibiHooks", "alibi", "#include \"mine/alibi_hooks.cuh\""};

static Alibi alibi_of(const u8* params) {
  Alibi a;
  std::memcpy(&a, params, sizeof a);
  return a;
}

static void reference(const PagedArgs& args, const PagedArgs& magnitudes) {
  const Alibi a = alibi_of(args.hook_params);
  const Ref slopes(args.hook_tensors[0]);
  paged_ref_with(
      args, magnitudes, [&](double x, const HookContext& at) { return x - slopes(at.head_q) * (at.query_position - at.key_position); },
      [&](const HookContext& at) {
        const i32 block = at.key_position / a.block, blocks = (at.seq_len + a.block - 1) / a.block;
        return block < a.first || block >= blocks - a.last;
      });
}

static void generate(PagedArgs& args, const Case&, Random&) {
  const Alibi a{.block = 48, .first = 1, .last = 2};
  std::memcpy(args.hook_params, &a, sizeof a);
  const TensorView& slopes = args.hook_tensors[0];
  for (i64 h = 0; h < slopes.shape[0]; ++h) static_cast<float*>(slopes.data)[h * slopes.strides[0]] = 0.01f * float(h + 1);
}

QN_OP(decode_alibi, PagedArgs, "mine.decode_alibi")
    .based_on("attention.paged", &kHooks)
    .doc("attention.paged with ALiBi, over the first and last blocks of positions")
    .hook_tensor(0, "slopes", "heads_q", {DType::f32})
    .meaning("what a logit loses for each position between query and key")
    .hook_params<Alibi>()
    .source("Press et al., Train Short, Test Long, arXiv 2108.12409")
    .reference<reference>()
    .generate<generate>()
    .bench({{{"batch", 64}, {"capacity", 8192}, {"length", 8192}, {"heads_kv", 8}, {"gqa", 4}, {"head_dim", 128}}});

}  // namespace quern::mine
