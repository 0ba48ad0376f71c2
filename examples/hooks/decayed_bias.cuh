// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Hooks for quern.attention.paged, handed over as a file: a bias by head that decays with the distance of query and key,
// and a window whose length is a parameter. docs/own_ops.md calls it from Python.

struct DecayedBias {
  QN_DEVICE i32 distance(const HookContext& at) { return at.query_position - at.key_position; }

  /// tensors[0]: [heads_q] of any floating dtype.
  QN_DEVICE f32 logit(f32 x, const HookContext& at) { return x + real_at(at.tensors[0], at.head_q) / f32(float(1 + distance(at))); }

  /// params: an i32, the tokens that a query sees.
  QN_DEVICE bool visible(const HookContext& at) { return distance(at) < *reinterpret_cast<const i32*>(at.params); }
};
