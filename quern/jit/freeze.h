// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/base/api.h"

namespace quern::jit {

/// From now on this process compiles nothing: a call whose kernel is neither loaded nor on disk is Error{frozen} at once,
/// naming the op, the kernel and the command that compiles it. For servers: called when the warm-up is done, it turns a stall
/// of a request into an error that a test finds. Kernels may still be loaded from the cache folders and packs, except while
/// the stream is capturing. freeze(false) allows compiles again, unless QN_JIT_FROZEN is set.
QN_API void freeze(bool on = true);
/// By freeze() or by QN_JIT_FROZEN=1.
QN_API bool frozen();

}  // namespace quern::jit
