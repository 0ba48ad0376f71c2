// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/attention/hooks.h"

#include <algorithm>

#include "quern/jit/hook_text.h"
#include "quern/op/schema.h"

namespace quern::attention {

static_assert(kHookTensorRank == kMaxHookRank);

#define QN_POINT(name, signature, arguments, call, hint) {#name, signature, hint},
static constexpr jit::HookPoint kPoints[] = {QN_ATTENTION_HOOK_POINTS(QN_POINT)};
#undef QN_POINT

/// Press et al., Train Short, Test Long: Attention with Linear Biases, arXiv 2108.12409.
static constexpr char kAlibi[] = R"(struct Alibi {
  QN_DEVICE f32 logit(f32 x, const HookContext& at) {
    const i32 distance = at.query_position > at.key_position ? at.query_position - at.key_position : at.key_position - at.query_position;
    const f32 slope = at.tensors[0].rank == 2 ? real_at(at.tensors[0], at.request, at.head_q) : real_at(at.tensors[0], at.head_q);
    return x - slope * f32(float(distance));
  }
};)";
static constexpr jit::ShippedHooks kShipped[] = {{"alibi", kAlibi}};

constinit const jit::HookPoints kHookPoints = {"quern::attention", "quern::attention::NoHooks", kPoints, kShipped};

const jit::Hooks* hooks_of(const std::string& text) { return jit::hooks_of_text(kHookPoints, text); }

void set_hook_tensors(const TensorView (&from)[kHookTensors], HookTensor (&to)[kHookTensors]) {
  for (int i = 0; i < kHookTensors; ++i) {
    if (!from[i].present()) continue;
    to[i].data = from[i].data, to[i].dtype = from[i].dtype, to[i].rank = from[i].rank;
    std::copy_n(from[i].strides, from[i].rank, to[i].strides);
    std::copy_n(from[i].shape, from[i].rank, to[i].sizes);
  }
}

}  // namespace quern::attention
