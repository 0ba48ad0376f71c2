// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// How an op of the family plans prefill_mma: from its Problem and Args, whose members have the same names in all of them.
#pragma once
#include <cmath>
#include <cstring>

#include "quern/op/schema.h"
#include "quern/ops/attention/hooks.h"
#include "quern/ops/attention/lse_base.h"
#include "quern/ops/attention/prefill/spec.h"

namespace quern::attention {

inline const jit::Kernel<PrefillConfig, PrefillParams> prefill_kernel{"quern/ops/attention/prefill/kernel.cuh", "prefill_mma",
                                                                      &kHookPoints};

inline bool is_fp8(DType dtype) { return dtype == DType::e4m3 || dtype == DType::e5m2; }
/// What products are computed in: FP8 queries have every value in f16.
inline DType product_dtype(DType q) { return is_fp8(q) ? DType::f16 : q; }

/// Query heads of a KV head.
inline i64 group_of(i64 heads_q, i64 heads_kv) { return heads_q / max_of<i64>(1, heads_kv); }
/// Most bytes of shared memory that leave room for `blocks` blocks on a multiprocessor.
i32 smem_room(const DeviceInfo& device, i32 blocks);

/// What of a problem chooses the kernel.
struct PrefillShape {
  DType q, kv, out, lens;
  i32 alignment;  // of k and v
  i32 q_alignment;
  i64 batch, tokens, heads_q, heads_kv, head_dim, head_dim_v;
  i64 max_seq_q;  // 0: unknown
  i64 most_keys;  // of a request
  KeyPlaces places;
  bool soft_cap, bits, hooks;
  i32 leave_few_rows;  // PrefillConfig's
  bool batch_invariant;
};

/// The shape of an op's problem whose requests have contiguous keys and query tokens from q_indptr. An op that differs there changes the
/// fields.
template <class A> PrefillShape prefill_shape(const Problem& p, const TensorFacts& k, const TensorFacts& v, i64 head_dim_v, i64 most_keys) {
  return {.q = p.dtype(&A::q),
          .kv = k.dtype,
          .out = p.dtype(&A::out),
          .lens = DType::i32,
          .alignment = min_of(k.alignment, v.alignment),
          .q_alignment = p.tensor(&A::q).alignment,
          .batch = p[Axis::batch],
          .tokens = p[Axis::tokens],
          .heads_q = p[Axis::heads_q],
          .heads_kv = p[Axis::heads_kv],
          .head_dim = p[Axis::head_dim],
          .head_dim_v = head_dim_v,
          .max_seq_q = p.attr(&A::max_seq_q),
          .most_keys = most_keys,
          .places = KeyPlaces::contiguous,
          .soft_cap = p.attr(&A::soft_cap) > 0,
          .bits = p.tensor(&A::mask).present != 0,
          .hooks = p.hooks != nullptr,
          .leave_few_rows = 0,
          .batch_invariant = p.batch_invariant != 0};
}

/// Handed to the params functions.
struct PrefillWork {
  i64 row_tiles;
};

/// The kernel for a shape on a device; `threads` 0: its tiles do not fit into the device's shared memory.
PrefillConfig prefill_config(const PrefillShape& shape, const DeviceInfo& device);
/// Why no kernel fits.
Rejection prefill_rejects(const PrefillShape& shape, const DeviceInfo& device);
PrefillWork prefill_work(const PrefillShape& shape, const PrefillConfig& config);
/// Blocks of the launch.
inline i64 prefill_blocks(const PrefillShape& shape, const PrefillWork& work) { return max_of<i64>(1, work.row_tiles * shape.heads_kv); }

/// Requirements that the ops share.
Rejection head_dims_fit(i64 head_dim, i64 head_dim_v, i64 most);
inline Rejection heads_divide(i64 heads_q, i64 heads_kv) {
  if (heads_kv > 0 ? heads_q % heads_kv == 0 : heads_q == 0) return {};
  return {"heads_q", heads_q, "a multiple of heads_kv={}", heads_kv};
}
/// sm_scale, soft_cap, out_scale, windows.
template <class A> Rejection numbers_valid(const Problem& p) {
  const float scale = p.attr(&A::sm_scale), cap = p.attr(&A::soft_cap), out = p.attr(&A::out_scale);
  // A million keeps sm_scale / soft_cap, and logits of any f16, far from f32's ends
  if (!(scale >= -1e6f && scale <= 1e6f)) return {"sm_scale", scale, "a number from -1e6 to 1e6"};
  if (!(cap == 0 || (cap >= 1e-6f && cap <= 1e6f))) return {"soft_cap", cap, "0 or a number from 1e-6 to 1e6"};
  if (!(out >= -1e6f && out <= 1e6f)) return {"out_scale", out, "a number from -1e6 to 1e6"};
  const i32 left = p.attr(&A::window_left), right = p.attr(&A::window_right);
  if (left < -1) return {"window_left", left, "-1 or more"};
  if (right < -1) return {"window_right", right, "-1 or more"};
  if (p.attr(&A::causal) && right > 0) return {"window_right", right, "-1 or 0 beside causal"};
  if (p.attr(&A::max_seq_q) < 0) return {"max_seq_q", p.attr(&A::max_seq_q), "0 or more"};
  return {};
}
template <class A> Rejection mask_whole(const Problem& p) {
  const bool mask = p.tensor(&A::mask).present, indptr = p.tensor(&A::mask_indptr).present;
  if (mask && !indptr) return {"mask_indptr", "absent", "a tensor, as mask is given"};
  if (indptr && !mask) return {"mask", "absent", "a tensor, as mask_indptr is given"};
  return {};
}
/// 16-bit queries have an output of their dtype and keys of their dtype or of FP8; FP8 ones have keys of their dtype.
template <class A> Rejection dtypes_fit(const Problem& p, DType kv, const char* kv_name) {
  const DType q = p.dtype(&A::q), out = p.dtype(&A::out);
  if (is_fp8(q) && kv != q) return {kv_name, name(kv), q == DType::e4m3 ? "e4m3, as q has" : "e5m2, as q has"};
  if (is_fp8(q) && is_fp8(out)) return {"out", name(out), "bf16 or f16: q is FP8"};
  if (!is_fp8(q) && out != q) return {"out", name(out), q == DType::bf16 ? "bf16, as q has" : "f16, as q has"};
  return {};
}

/// The factor of logits as kernels are given it: with a soft cap divided by it.
template <class A> float logit_scale(const A& a, i64 head_dim) {
  const float scale = a.sm_scale != 0 ? a.sm_scale : float(1 / std::sqrt(double(head_dim)));
  return a.soft_cap > 0 ? scale / a.soft_cap : scale;
}

inline ScaleTensor scale_tensor(const TensorView& view) {
  if (!view.present()) return {};
  return {static_cast<const float*>(view.data), {view.strides[0], view.strides[1]}};
}

/// What does not depend on where keys lie.
template <class A> void set_attend_params(const A& a, const Problem& p, AttendParams& to) {
  to.out = a.out.data, to.out_lse = static_cast<float*>(a.out_lse.data);
  to.q = static_cast<const u8*>(a.q.data);
  to.q_indptr = static_cast<const i32*>(a.q_indptr.data);
  to.sink = a.sink.data, to.sink_dtype = a.sink.dtype;
  to.mask = static_cast<const u8*>(a.mask.data), to.mask_indptr = static_cast<const i32*>(a.mask_indptr.data),
  to.mask_bytes = a.mask.present() ? a.mask.shape[0] : 0;
  to.q_scale = scale_tensor(a.q_scale), to.k_scale = scale_tensor(a.k_scale), to.v_scale = scale_tensor(a.v_scale);
  const i64 q_size = size_of(a.q.dtype), out_size = size_of(a.out.dtype);
  to.q_token = a.q.strides[0] * q_size, to.q_head = a.q.strides[1] * q_size;
  to.out_token = a.out.strides[0] * out_size, to.out_head = a.out.strides[1] * out_size;
  to.lse_token = a.out_lse.strides[0], to.lse_head = a.out_lse.strides[1];
  to.batch = p[Axis::batch], to.tokens = p[Axis::tokens];
  to.heads_kv = i32(p[Axis::heads_kv]);
  to.window_left = a.window_left < 0 ? kNoWindow : min_of(a.window_left, kNoWindow);
  to.window_right = a.causal ? 0 : a.window_right < 0 ? kNoWindow : min_of(a.window_right, kNoWindow);
  to.q_wide = p.tensor(&A::q).alignment >= 16, to.out_pairs = p.tensor(&A::out).alignment >= 4,
  to.out_wide = p.tensor(&A::out).alignment >= 16;
  to.scale = logit_scale(a, p[Axis::head_dim]), to.soft_cap = a.soft_cap, to.out_scale = a.out_scale;
  to.lse_factor = a.lse_base == LseBase::e ? 0.69314718055994531f : 1.0f;
  to.group = divisor(u32(max_of<i64>(1, group_of(p[Axis::heads_q], p[Axis::heads_kv]))));
  std::memcpy(to.hook_params, a.hook_params, sizeof to.hook_params);
  set_hook_tensors(a.hook_tensors, to.hook_tensors);
}

}  // namespace quern::attention
