// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/attention/ragged.h"

#include <string>

#include "quern/ops/attention/options.h"
#include "quern/ops/attention/prefill/plan.h"
#include "quern/ops/attention/prefill_sm90/plan.h"
#include "quern/ops/attention/ragged/ref.h"
#include "quern/ops/attention/ragged/values.h"

namespace quern::attention {

namespace {

using A = RaggedArgs;

const Axis kTokensKv = axis_of("tokens_kv"), kHeadDimV = axis_of("head_dim_v");

PrefillShape shape_of(const Problem& p) {
  return prefill_shape<A>(p, p.tensor(&A::k), p.tensor(&A::v), p[kHeadDimV], min_of(p[kTokensKv], kMostKeys));
}

void set_params(const A& a, const Problem& p, AttendParams& to) {
  set_attend_params(a, p, to);
  to.k = static_cast<const u8*>(a.k.data), to.v = static_cast<const u8*>(a.v.data);
  to.kv_indptr = static_cast<const i32*>(a.kv_indptr.data);
  const i64 size = size_of(a.k.dtype);
  to.k_token = a.k.strides[0] * size, to.k_head = a.k.strides[1] * size;
  to.v_token = a.v.strides[0] * size, to.v_head = a.v.strides[1] * size;
  to.rows_of_keys = p[kTokensKv], to.capacity = i32(min_of(p[kTokensKv], kMostKeys));
  to.page_size = divisor(1);
}

PrefillParams params(const Call<A, PrefillWork>& c) {
  PrefillParams to{};
  set_params(c.args, c.problem, to);
  to.row_tiles = c.choice.row_tiles;
  return to;
}

PrefillSm90Params sm90_params(const Call<A, PrefillSm90Work>& c) {
  PrefillSm90Params to{};
  set_params(c.args, c.problem, to);
  set_prefill_sm90_params(c, c.args.k, c.args.v, 0, to);
  return to;
}

Rejection rejects(const Problem& p, const DeviceInfo& device) { return prefill_rejects(shape_of(p), device); }

Plan plan(const Problem& p, const DeviceInfo& device) {
  const PrefillShape shape = shape_of(p);
  const PrefillConfig config = prefill_config(shape, device);
  const PrefillWork work = prefill_work(shape, config);
  Plan plan;
  plan.launch<params>(prefill_kernel, config, {.x = prefill_blocks(shape, work), .smem = prefill_smem(config).bytes, .pdl = p.pdl}, work,
                      p.hooks);
  return plan;
}

Rejection sm90_rejects(const Problem& p, const DeviceInfo& device) {
  return prefill_sm90_rejects(shape_of(p), device, p.tensor(&A::k), p.tensor(&A::v));
}

Plan sm90_plan(const Problem& p, const DeviceInfo& device) {
  Plan plan;
  add_prefill_sm90<sm90_params>(plan, begin_prefill_sm90(plan, shape_of(p), device, 0), p.pdl, p.hooks);
  return plan;
}

Rejection head_dims(const Problem& p) { return head_dims_fit(p[Axis::head_dim], p[kHeadDimV], 256); }
Rejection heads(const Problem& p) { return heads_divide(p[Axis::heads_q], p[Axis::heads_kv]); }
Rejection dtypes(const Problem& p) { return dtypes_fit<A>(p, p.dtype(&A::k), "k"); }
Rejection sizes_fit(const Problem& p) {  // positions and rows of a request are 32-bit, numbers of row tiles too
  const i64 group = group_of(p[Axis::heads_q], p[Axis::heads_kv]);
  if (p[Axis::tokens] * max_of<i64>(1, group) >= kMostKeys) return {"tokens", p[Axis::tokens], "less than 2^30 / (heads_q / heads_kv)"};
  if (p[Axis::heads_q] > 0 && p[Axis::tokens] >= ceil_div(i64(1) << 31, p[Axis::heads_q]))
    return {"tokens", p[Axis::tokens], "less than 2^31 / heads_q"};
  if (p[kTokensKv] > kMostKeys) return {"tokens_kv", p[kTokensKv], "at most 2^30"};
  return {};
}

Breach contract(const A& a, const Problem& p) {
  for (i64 b = 0; b < p[Axis::batch]; ++b)
    if (Breach breach = mask_breach(a, b, ragged_request(a, b))) return breach;
  return {};
}

double pairs_of(const A& a, i64 batch) {
  double pairs = 0;
  for (i64 b = 0; b < batch; ++b) pairs += visible_pairs(a, ragged_request(a, b));
  return pairs;
}

/// q, k, v and out once; a multiply-add for each in q . k and in p v.
Cost cost(const Problem& p, const A& a) {
  const double q = double(p[Axis::tokens]) * double(p[Axis::heads_q]), kv = double(p[kTokensKv]) * double(p[Axis::heads_kv]);
  const double dim = double(p[Axis::head_dim]), dim_v = double(p[kHeadDimV]);
  return {.bytes = q * (dim * size_of(p.dtype(&A::q)) + dim_v * size_of(p.dtype(&A::out)) + (a.out_lse.present() ? 4 : 0)) +
                   kv * (dim + dim_v) * size_of(p.dtype(&A::k)) + double(a.mask.present() ? a.mask.shape[0] : 0),
          .flops = 2 * pairs_of(a, p[Axis::batch]) * double(p[Axis::heads_q]) * (dim + dim_v)};
}

/// One rounding of each probability before it multiplies v and logits in f32 (of_magnitude: of sum p |v|, see ref.h), one of the result,
/// and one of each of out_scale and v_scale. out_lse has a budget of its own: ex2 has 2^-22 and lg2 2^-22 of up to 32, the sum's log2; its
/// magnitude is the largest sum |q k| of a logit, to which the logits' errors are relative.
Budget budget(const Problem& p) {
  return {
      .of_value = unit_roundoff(p.dtype(&A::out)) + 0x1p-22, .of_magnitude = ref_probability_error(p.dtype(&A::q)), .absolute = 0x1p-18};
}

/// One sequence of as many keys as queries.
Case shape(i64 batch, i64 queries, i64 keys, bool causal, i64 head_dim = 128, i64 heads_kv = 8, i64 gqa = 4) {
  return {{"batch", double(batch)},       {"queries", double(queries)},   {"keys", double(keys)}, {"causal", causal},
          {"head_dim", double(head_dim)}, {"heads_kv", double(heads_kv)}, {"gqa", double(gqa)},   {"spare", 0}};
}

}  // namespace

QN_OP(ragged, RaggedArgs, "attention.ragged")
    .doc(
        "out = softmax(sm_scale * q k^T) v of requests of any number of query tokens over contiguous keys, with causality, windows and masks")
    .source("Dao, FlashAttention-2, arXiv 2307.08691; Milakov and Gimelshein, Online normalizer calculation, arXiv 1805.02867")
    .in("q", &A::q, "tokens heads_q head_dim", {DType::bf16, DType::f16, DType::e4m3, DType::e5m2})
    .unfit({DataKind::infinite})
    .in("k", &A::k, "tokens_kv heads_kv head_dim", like("q", {DType::e4m3, DType::e5m2}))
    .meaning("like q, or FP8 beside a q of 16 bits")
    .unfit({DataKind::nan, DataKind::infinite})  // of keys and values they may reach other queries of the tile
    .in("v", &A::v, "tokens_kv heads_kv head_dim_v", like("k"))
    .unfit({DataKind::nan, DataKind::infinite})
    .in("q_indptr", &A::q_indptr, "batch+1", {DType::i32})
    .values(generated())
    .contents(each_within("0", "tokens").ascending())
    .meaning("request b has the query tokens from q_indptr[b] to q_indptr[b + 1]")
    .in("kv_indptr", &A::kv_indptr, "batch+1", {DType::i32})
    .values(generated())
    .contents(each_within("0", "tokens_kv").ascending())
    .meaning("request b has the keys from kv_indptr[b] to kv_indptr[b + 1]")
    .with(state_masks_and_scales<A>)
    .out("out", &A::out, "tokens heads_q head_dim_v", like("q", {DType::bf16, DType::f16}))
    .meaning("bf16 or f16 where q is FP8")
    .out("out_lse", &A::out_lse, "tokens heads_q", {DType::f32})
    .optional()
    .strided()
    .within({.of_value = 0x1p-23, .of_magnitude = kLogitError, .absolute = 0x1p-13})
    .meaning("log of the sum of exp of the logits, sink included; -inf where a query sees nothing")
    .with(state_attributes<A>)
    .hooks(&A::hooks, &A::hook_params, &A::hook_tensors, kHookPoints)
    .require(head_dims)
    .require(heads)
    .require(dtypes)
    .require(numbers_valid<A>)
    .require(mask_whole<A>)
    .require(sizes_fit)
    .rows(Axis::batch, Axis::tokens, &A::q_indptr)
    .token<keep_ragged_token>()
    .variants({{"prefill_sm90", sm90_rejects, sm90_plan, nullptr}, {"portable", rejects, plan, nullptr}})
    .reference<ragged_ref<double>, ragged_ref<OrderFree>>()
    .generate<generate_ragged>()
    .contract<contract>()
    .cost<cost>()
    .budget(budget)
    .cases({{"batch", {2, 1, 0, 4}},
            {"heads_kv", {2, 1, 3}},
            {"gqa", {4, 1, 3, 7, 8, 12, 16}, "query heads of a head of k"},
            {"head_dim", {64, 80, 96, 112, 128, 192, 256, 16, 32, 48}},
            {"head_dim_v", {0, 128, 48}},
            {"queries", {-1, 0, 1, 2, 7, 16, 17, 64, 65}, "query tokens of each request; -1: they differ"},
            {"keys", {-1, 0, 1, 15, 16, 17, 63, 64, 65, 130}, "keys of each request; -1: they differ"},
            {"q.dtype", {DType::bf16, DType::f16}},
            {"fp8", {0, 1, 2, 3, 4}, "k and v are e4m3 (1) or e5m2 (2), q too (3, 4)"},
            {"scales", {0, 1, 2, 3}, "q_scale (1), k_scale and v_scale (2), all (3)"},
            {"causal", {true, false}},
            {"window_left", {-1, 0, 5, 70}},
            {"window_right", {-1, 0, 9}},
            {"bits", {0, 1}, "a packed mask"},
            {"sink.present", {false, true}},
            {"sink.dtype", {DType::f32, DType::bf16, DType::f16}},
            {"sm_scale", {0, 1, -0.25}},
            {"soft_cap", {0, 30, 1e4}},
            {"out_scale", {1, -0.5}},
            {"lse_base", {0, 1}},
            {"out_lse.present", {true, false}},
            {"out_lse.transposed", {false, true}},
            {"spare", {1, 0}, "tokens and keys of no request (1)"},
            {"max_seq_q", {0, 16}},
            {"k.pad", {0, 8, 4, 2, 1}},
            {"v.swap", {false, true}},
            {"q.pad", {0, 4, 1}},
            {"q.shift", {0, 1}},
            {"out.pad", {0, 8, 3}}},
           derive_ragged)
    .bench({shape(1, 1024, 1024, true), shape(1, 4096, 4096, true), shape(1, 4096, 4096, false), shape(1, 16384, 16384, true),
            shape(1, 16384, 16384, false), shape(8, 2048, 2048, true), shape(8, 512, 8192, true), shape(1, 4096, 4096, true, 64),
            shape(1, 4096, 4096, true, 256)});

}  // namespace quern::attention
