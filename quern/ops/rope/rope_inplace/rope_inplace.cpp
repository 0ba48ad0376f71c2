// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/rope/rope_inplace.h"

#include "quern/op/schema.h"
#include "quern/ops/rope/rope_inplace/ref.h"
#include "quern/ops/rope/rotate/rotate.h"

namespace quern::rope {

using A = RopeInplaceArgs;

static RotateParams params(const Call<A>& c) {
  const A& a = c.args;
  RotateParams p{};
  p.angles = angle_params(a, c.problem);
  p.q = p.q_out = a.q.data, p.k = p.k_out = a.k.data;
  p.q_token_stride = p.q_out_token_stride = a.q.strides[0], p.q_head_stride = p.q_out_head_stride = a.q.strides[1];
  p.k_token_stride = p.k_out_token_stride = a.k.strides[0], p.k_head_stride = p.k_out_head_stride = a.k.strides[1];
  p.tokens = c.problem[Axis::tokens];
  p.heads_q = i32(c.problem[Axis::heads_q]), p.heads_kv = i32(c.problem[Axis::heads_kv]), p.head_dim = i32(c.problem[Axis::head_dim]);
  p.parts = ceil_div(p.heads_q + p.heads_kv, c.config<RotateConfig>().in_flight);
  return p;
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  const i64 heads = p[Axis::heads_q] + p[Axis::heads_kv];
  const HeadConfig head = head_config(p.dtype(&A::q), p.attr(&A::interleaved), min_of(p.vector(&A::q), p.vector(&A::k)),
                                      rotary_dim_of<A>(p), p[Axis::head_dim], false);
  const RotateConfig config = rotate_config(angle_config<A>(p), head, p[Axis::tokens], heads, device);
  Plan plan;
  plan.launch<params>(rotate_kernel, config,
                      {.x = part_blocks(p[Axis::tokens] * ceil_div<i64>(heads, config.in_flight), head.lanes, config.threads, device),
                       .smem = turns_smem(config.angles),
                       .pdl = p.pdl});
  return plan;
}

static Cost cost(const Problem& p, const A&) {
  return {.bytes = 2.0 * double(p[Axis::tokens]) * double(p[Axis::heads_q] + p[Axis::heads_kv]) * double(p[Axis::head_dim]) *
                       size_of(p.dtype(&A::q)) +
                   angle_bytes<A>(p),
          .flops = 0};
}

QN_OP(rope_inplace, A, "rope.rope_inplace")
    .doc("(a, b) = (a cos - b sin, b cos + a sin) for each pair of q and k, angle = position * theta^(-2i / rotary_dim)")
    .source("Su et al., RoFormer: Enhanced Transformer with Rotary Position Embedding, arXiv 2104.09864")
    .inout("q", &A::q, "tokens heads_q head_dim", {DType::f32, DType::f16, DType::bf16})
    .unfit({DataKind::infinite})  // where the angle is at a zero of the sine or cosine, the error of the angle chooses the sign
    .inout("k", &A::k, "tokens heads_kv head_dim", like("q"))
    .unfit({DataKind::infinite})
    .in("positions", &A::positions, "tokens", {DType::i32, DType::i64})
    .values(length_upto(Axis::positions))
    .contents(each_below("16777216"))
    .attr("rotary_dim", &A::rotary_dim)
    .meaning("rotated elements of a head; 0: head_dim")
    .attr("interleaved", &A::interleaved)
    .meaning("pairs (2i, 2i+1) instead of (i, i + rotary_dim/2)")
    .with(state_theta<A>)
    .require(rotary_dim_fits<A>)
    .require(theta_fits<A>)
    .rows(Axis::tokens)
    .plan(plan)
    .reference<rope_inplace_ref>()
    .cost<cost>()
    .budget(rotation_budget<A>)
    .cases({{"tokens", {4, 1, 0, 33}},
            {"heads_q", {8, 1, 5}},
            {"heads_kv", {2, 1, 8}},
            {"head_dim", {128, 64, 80, 96, 256}},
            {"rotary_dim", {0, 64, 32, 22}},
            {"interleaved", {false, true}},
            {"theta", {500000.0, 10000.0, 1.0, 1e30}},
            {"llama31_factor", {8.0, 1.0, 1e30}},
            {"scale", {1.0, 4.0, 0.125, 1e30}},
            {"positions", {131072, 100, 16777215}, "bound of the tokens' positions"},
            {"positions.dtype", {DType::i32, DType::i64}},
            {"q.dtype", {DType::bf16, DType::f16, DType::f32}},
            {"q.pad", {0, 8, 1}}})
    .bench({{{"tokens", 64}, {"heads_q", 32}, {"heads_kv", 8}, {"head_dim", 128}},
            {{"tokens", 4096}, {"heads_q", 32}, {"heads_kv", 8}, {"head_dim", 128}},
            {{"tokens", 65536}, {"heads_q", 32}, {"heads_kv", 8}, {"head_dim", 128}}});

}  // namespace quern::rope
