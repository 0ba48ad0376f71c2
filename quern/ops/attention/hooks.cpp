// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/attention/hooks.h"

#include <algorithm>

#include "quern/jit/hook_text.h"
#include "quern/op/schema.h"

namespace quern::attention {

static_assert(kHookTensorRank == kMaxHookRank);

#define QN_POINT(name, signature, arguments, call) {#name, signature},
static constexpr jit::HookPoint kPoints[] = {QN_ATTENTION_HOOK_POINTS(QN_POINT)};
#undef QN_POINT

constinit const jit::HookPoints kHookPoints = {"quern::attention", "quern::attention::NoHooks", kPoints};

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
