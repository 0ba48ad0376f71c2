// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/rope/rope.h"

#include "quern/op/schema.h"
#include "quern/ops/rope/rope/ref.h"
#include "quern/ops/rope/rotate/rotate.h"

namespace quern::rope {

using A = RopeArgs;

static RotateParams params(const Call<A>& c) {
  const A& a = c.args;
  RotateParams p{};
  p.angles = angle_params(a, c.problem);
  p.q = a.q.data, p.k = a.k.data, p.q_out = a.q_out.data, p.k_out = a.k_out.data;
  p.q_token_stride = a.q.strides[0], p.q_head_stride = a.q.strides[1], p.k_token_stride = a.k.strides[0], p.k_head_stride = a.k.strides[1];
  p.q_out_token_stride = a.q_out.strides[0], p.q_out_head_stride = a.q_out.strides[1];
  p.k_out_token_stride = a.k_out.strides[0], p.k_out_head_stride = a.k_out.strides[1];
  p.tokens = c.problem[Axis::tokens];
  p.heads_q = i32(c.problem[Axis::heads_q]), p.heads_kv = i32(c.problem[Axis::heads_kv]), p.head_dim = i32(c.problem[Axis::head_dim]);
  p.parts = ceil_div(p.heads_q + p.heads_kv, c.config<RotateConfig>().in_flight);
  return p;
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  const i32 widest = min_of(min_of(p.vector(&A::q), p.vector(&A::k)), min_of(p.vector(&A::q_out), p.vector(&A::k_out)));
  const i64 rotary_dim = rotary_dim_of<A>(p), heads = p[Axis::heads_q] + p[Axis::heads_kv];
  const HeadConfig head =
      head_config(p.dtype(&A::q), p.attr(&A::interleaved), widest, rotary_dim, p[Axis::head_dim], rotary_dim < p[Axis::head_dim]);
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

/// rotary_dim is at most head_dim, and 256.
static void derive(Case& which) {
  if (which["rotary_dim"] == 0 && which["head_dim"] > 2 * kMaxPairs) which["rotary_dim"] = 64;
  derive_angles(which);
}

QN_OP(rope, A, "rope.rope")
    .doc("(a, b) -> (a cos - b sin, b cos + a sin) for each pair of q and k; angles of theta, of frequencies, or as rows of cos and sin")
    .source("Su et al., RoFormer: Enhanced Transformer with Rotary Position Embedding, arXiv 2104.09864")
    .attr("rotary_dim", &A::rotary_dim)
    .meaning("rotated elements of a head; the rest is copied; 0: twice the pairs of a table, else head_dim")
    .attr("interleaved", &A::interleaved)
    .meaning("pairs (2i, 2i+1) instead of (i, i + rotary_dim/2)")
    .in("q", &A::q, "tokens heads_q head_dim", {DType::f32, DType::f16, DType::bf16})
    .unfit({DataKind::infinite})  // where the angle is at a zero of the sine or cosine, the error of the angle chooses the sign
    .in("k", &A::k, "tokens heads_kv head_dim", like("q"))
    .unfit({DataKind::infinite})
    .in("positions", &A::positions, "tokens", {DType::i32, DType::i64})
    .optional()
    .values(length_upto(Axis::positions))
    .contents(each_below("16777216"))
    .meaning("of each token; below the rows of cos too; NaN results elsewhere")
    .with(state_tables<A>)
    .in("mrope_positions", &A::mrope_positions, "3 tokens", like("positions", {DType::i32, DType::i64}))
    .optional()
    .values(length_upto(Axis::positions))
    .contents(each_below("16777216"))
    .meaning("time, height and width of each token, in the place of positions")
    .in("indptr", &A::indptr, "batch+1", {DType::i32, DType::i64})
    .optional()
    .values(generated())
    .contents(each_within("0", "tokens").ascending())
    .meaning("where each request's tokens begin, in the place of positions")
    .in("offsets", &A::offsets, "batch", like("indptr"))
    .optional()
    .values(generated())
    .contents(each_below("16777216"))
    .meaning("position of each request's first token; a token of no request has position 0")
    .out("q_out", &A::q_out, "tokens heads_q head_dim", like("q"))
    .may_be("q")
    .out("k_out", &A::k_out, "tokens heads_kv head_dim", like("k"))
    .may_be("k")
    .with(state_theta<A>)
    .with(state_tables_and_sections<A>)
    .require(rotary_dim_fits<A>)
    .require(one_source_of_angles<A>)
    .require(theta_fits<A>)
    .require(one_source_of_positions<A>)
    .require(sections_fit<A>)
    .rows(Axis::tokens)
    .plan(plan)
    .reference<rope_ref>()
    .generate<generate_angles<A>>()
    .contract<positions_contract<A>>()
    .broken_contents("beyond", 1)
    .cost<cost>()
    .budget(rotation_budget<A>)
    .cases({{"tokens", {4, 1, 0, 33}},
            {"batch", {3, 1}},
            {"heads_q", {8, 1, 5}},
            {"heads_kv", {2, 0, 1, 8}},
            {"head_dim", {128, 64, 80, 96, 256, 576}},
            {"rotary_dim", {0, 64, 32, 22}},
            {"interleaved", {false, true}},
            {"angles", {0, 1, 2, 3}, "of theta (0), of frequencies (1), rows of cos and sin in f32 (2) or in q's dtype (3)"},
            {"places", {0, 1, 2, 3}, "positions (0), three of each token with sections (1) that are interleaved (2), or requests (3)"},
            {"theta", {500000.0, 10000.0, 1.0}},
            {"llama31_factor", {8.0, 1.0}},
            {"scale", {1.0, 4.0, 0.125}},
            {"cos_sin_scale", {1.0, 1.25}},
            {"positions", {131072, 100, 16777215}, "bound of the tokens' positions"},
            {"positions.dtype", {DType::i32, DType::i64}},
            {"beyond", {0, 1}, "some positions are none"},
            {"q.dtype", {DType::bf16, DType::f16, DType::f32}},
            {"cos.pad", {0, 3, 8}},
            {"sin.transposed", {false, true}},
            {"q.pad", {0, 8, 1}},
            {"q_out.pad", {0, 8, 1}}},
           derive)
    .bench({{{"tokens", 64}, {"heads_q", 32}, {"heads_kv", 8}, {"head_dim", 128}},
            {{"tokens", 4096}, {"heads_q", 32}, {"heads_kv", 8}, {"head_dim", 128}},
            {{"tokens", 65536}, {"heads_q", 32}, {"heads_kv", 8}, {"head_dim", 128}},
            {{"tokens", 65536}, {"heads_q", 32}, {"heads_kv", 8}, {"head_dim", 128}, {"angles", 2}}});

}  // namespace quern::rope
