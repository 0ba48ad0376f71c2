// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What users plug into attention kernels: a class with one or both of
//   QN_DEVICE f32 logit(f32 scaled_logit, const HookContext&)   the logit in natural units, after sm_scale and soft cap
//   QN_DEVICE bool visible(const HookContext&)                  false: the query does not see this position
// The kernel is compiled with it; a member that the class lacks costs nothing. QN_DEVICE makes a member static. A signature
// other than these, and a class with neither member, do not compile; a misspelt member beside a right one is not noticed.
#pragma once
#include "quern/kit/abi.h"

namespace quern::attention {

constexpr int kHookParamBytes = 64;

/// Where in the problem a logit lies.
struct HookContext {
  i32 batch;
  i32 head_q;
  i32 head_kv;
  i32 position;      // of the key, 0 is the request's first token
  i32 seq_len;       // the query's position is seq_len - 1
  const u8* params;  // kHookParamBytes of the caller's, 8-byte aligned
};

/// Plain attention.
struct NoHooks {};

}  // namespace quern::attention
