// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Hooks of the family's ops, on the host: from a text to what Args name, from views to what kernels read.
#pragma once
#include <string>

#include "quern/base/error.h"
#include "quern/base/tensor_view.h"
#include "quern/jit/spec.h"
#include "quern/ops/attention/hooks_spec.h"

namespace quern::attention {

/// What hooks of the family may be, for Schema::hooks and kernels.
QN_API extern const jit::HookPoints kHookPoints;

/// Hooks from their text, for Args: equal texts are the same object, which lives as long as the process.
///   args.hooks = hooks_of("struct Near { QN_DEVICE bool visible(const HookContext& at) { return at.key_position > 7; }
///   };");
/// The text defines one struct with a point (hooks_spec.h), sees the names of quern and of quern::attention, and may
/// include. hooks_of("alibi") ships with quern: logit - slope * |p - j|, slopes from hook_tensors[0], [heads_q] or [batch, heads_q].
/// Throws Error{value}.
QN_API const jit::Hooks* hooks_of(const std::string& text);

/// The tensors of a call as its hooks read them.
void set_hook_tensors(const TensorView (&from)[kHookTensors], HookTensor (&to)[kHookTensors]);

}  // namespace quern::attention
