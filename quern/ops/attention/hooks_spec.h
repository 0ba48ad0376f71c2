// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What users plug into the family's kernels: a class with one or more of the members in QN_ATTENTION_HOOK_POINTS. The
// kernel is compiled with it; a point that the class lacks costs nothing. QN_DEVICE makes a member static. A class
// without any point, a member of another signature, and one whose name is nearly a point's are refused.
#pragma once
#include "quern/kit/abi.h"

namespace quern::attention {

constexpr int kHookParamBytes = 64;
constexpr int kHookTensors = 4;
constexpr int kHookTensorRank = 4;

/// A tensor of the caller's, which hooks read by real_at() and integer_at(). It may not be written during the call.
struct HookTensor {
  const void* data;              // null: not given
  i64 strides[kHookTensorRank];  // elements
  i64 sizes[kHookTensorRank];
  DType dtype;  // f32, f16, bf16, i32, i64, u8
  i32 rank;
};

/// The tensors of a call, as hooks read them: at.tensors[i]. (hooks.cuh; the emulated device reports an i beyond the last.)
struct HookTensors {
  const HookTensor* first;  // kHookTensors of them
  QN_HOST_DEVICE constexpr HookTensors(const HookTensor* tensors) : first(tensors) {}
  template <class I>
  QN_HOST_DEVICE const HookTensor& operator[](I i) const;
};

/// Where in the problem a logit lies.
struct HookContext {
  i32 request;      // index in the batch
  i32 query_token;  // index among the query tokens of the call; in decode the request's
  i32 head_q;
  i32 head_kv;
  i32 query_position;  // of the query token in its request, whose first token is 0; in decode seq_len - 1
  i32 key_position;
  i32 seq_len;          // tokens of the request, that is of its keys
  const u8* params;     // kHookParamBytes of the caller's, 8-byte aligned
  HookTensors tensors;  // kHookTensors of the caller's
  i32 query_index = 0;  // of the query token among those of its request in this call
  i32 query_len = 1;    // query tokens of the request in this call
};

/// A rectangle of queries and keys of one request: positions, both ends included, of all query heads of a KV head.
struct HookTile {
  i32 request;
  i32 head_kv;
  i32 query_first, query_last;
  i32 key_first, key_last;
  i32 query_len;
  i32 seq_len;
  const u8* params;
  HookTensors tensors;
};
/// What the rows of a tile see of its keys, as far as a hook's `visible` decides it.
enum class TileVisibility : i32 {
  partial,  ///< `visible` is asked for each key
  skip,     ///< nothing: neither K nor V is read
  full,     ///< everything: `visible` is not asked
};

/// The points: name, what the member is, as C++ its arguments and a call of it in a class H, and whether it is a hint.
///   logit    the logit in natural units, after sm_scale and soft cap, becomes another
///   visible  false: the query does not see this key
///   tile     beside visible: what it says of a whole tile. The kernel for many rows asks it, to read less and to test less. It
///            changes no result, but for a NaN in values that it leaves unread
#define QN_ATTENTION_HOOK_POINTS(point) \
  point(logit, "f32 logit(f32 x, const HookContext& at)", (f32 x, const HookContext& at), x = H::logit(x, at), false) \
      point(visible, "bool visible(const HookContext& at)", (bool b, const HookContext& at), b = H::visible(at), false) \
          point(tile, "TileVisibility tile(const HookTile& at)", (TileVisibility t, const HookTile& at), t = H::tile(at), true)

/// Plain attention.
struct NoHooks {};

}  // namespace quern::attention
