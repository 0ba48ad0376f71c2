// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/rope/rope_quantise_fp8.h"

#include "quern/op/schema.h"
#include "quern/ops/rope/rope_quantise_fp8/ref.h"
#include "quern/ops/rope/rope_quantise_fp8/spec.h"
#include "quern/ops/rope/rotate/rotate.h"

namespace quern::rope {

using A = RopeQuantiseFp8Args;

static const jit::Kernel<RopeQuantiseFp8Config, RopeQuantiseFp8Params> quantise_kernel{"quern/ops/rope/rope_quantise_fp8/kernel.cuh",
                                                                                       "rope_quantise_fp8_heads"};

static i64 heads_of(const Problem& p) { return p[Axis::heads_q] + p[Axis::heads_kv]; }
static i64 q_nope_dim(const Problem& p) {
  static const Axis axis = axis_of("q_nope_dim");
  return p[axis];
}
static i64 k_nope_dim(const Problem& p) {
  static const Axis axis = axis_of("k_nope_dim");
  return p[axis];
}

static QuantisedHeads heads_params(const TensorView& rope, const TensorView& nope, const TensorView& rope_out, const TensorView& nope_out,
                                   const TensorView& scale) {
  return {.rope = rope.data,
          .nope = nope.data,
          .rope_out = rope_out.data,
          .nope_out = nope_out.data,
          .scale = static_cast<const float*>(scale.data),
          .token_stride = rope.strides[0],
          .head_stride = rope.strides[1],
          .nope_token_stride = nope.strides[0],
          .nope_head_stride = nope.strides[1],
          .out_token_stride = rope_out.strides[0],
          .out_head_stride = rope_out.strides[1],
          .nope_out_token_stride = nope_out.strides[0],
          .nope_out_head_stride = nope_out.strides[1],
          .nope_dim = nope.present() ? nope.shape[2] : 0};
}

static RopeQuantiseFp8Params params(const Call<A>& c) {
  const A& a = c.args;
  RopeQuantiseFp8Params p{};
  p.angles = angle_params(a, c.problem);
  p.q = heads_params(a.q_rope, a.q_nope, a.q_rope_out, a.q_nope_out, a.q_scale);
  p.k = heads_params(a.k_rope, a.k_nope, a.k_rope_out, a.k_nope_out, a.k_scale);
  p.tokens = c.problem[Axis::tokens];
  p.heads_q = i32(c.problem[Axis::heads_q]), p.heads_kv = i32(c.problem[Axis::heads_kv]), p.head_dim = i32(c.problem[Axis::head_dim]);
  p.parts = i32(ceil_div<i64>(heads_of(c.problem), c.config<RopeQuantiseFp8Config>().in_flight));
  return p;
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  i32 widest = 16;
  for (TensorView A::* tensor :
       {&A::q_rope, &A::k_rope, &A::q_nope, &A::k_nope, &A::q_rope_out, &A::k_rope_out, &A::q_nope_out, &A::k_nope_out})
    widest = min_of(widest, p.vector(tensor));
  while (q_nope_dim(p) % widest || k_nope_dim(p) % widest) widest /= 2;
  RopeQuantiseFp8Config c{};
  c.angles = angle_config<A>(p);
  c.head = head_config(p.dtype(&A::q_rope), p.attr(&A::interleaved), widest, rotary_dim_of<A>(p), p[Axis::head_dim],
                       rotary_dim_of<A>(p) < p[Axis::head_dim]);
  c.out_dtype = p.dtype(&A::q_rope_out);
  c.nope = p.tensor(&A::q_nope).present || p.tensor(&A::k_nope).present;
  // At most four units of 16 bytes of what is not rotated for each lane
  while (c.head.lanes < 32 && c.head.lanes * 4 * (16 / size_of(c.head.dtype)) < max_of(q_nope_dim(p), k_nope_dim(p))) c.head.lanes *= 2;
  c.in_flight = heads_in_flight(p[Axis::tokens], heads_of(p), c.head.lanes, device), c.threads = 256;
  Plan plan;
  plan.launch<params>(quantise_kernel, c,
                      {.x = part_blocks(p[Axis::tokens] * ceil_div<i64>(heads_of(p), c.in_flight), c.head.lanes, c.threads, device),
                       .smem = turns_smem(c.angles),
                       .pdl = p.pdl});
  return plan;
}

/// A part that is not rotated comes with its output, and no output without one.
static Rejection parts_and_outputs(const Problem& p) {
  const bool q = p.tensor(&A::q_nope).present, k = p.tensor(&A::k_nope).present;
  if (q != (p.tensor(&A::q_nope_out).present != 0))
    return {"q_nope_out", q ? "absent" : "given", q ? "a tensor, as q_nope is given" : "none: q_nope is absent"};
  if (k != (p.tensor(&A::k_nope_out).present != 0))
    return {"k_nope_out", k ? "absent" : "given", k ? "a tensor, as k_nope is given" : "none: k_nope is absent"};
  return {};
}
static Rejection positions_told(const Problem& p) {
  const bool positions = p.tensor(&A::positions).present, sections = p.tensor(&A::mrope_positions).present;
  if (sections && positions) return {"mrope_positions", "given", "none beside positions"};
  if (!positions && !sections) return {"positions", "absent", "positions or mrope_positions"};
  return {};
}

/// The rounding to FP8, of what the reciprocal of the scale and the product with it (2^-23 together) and the rotation left: its own budget,
/// of the reference's terms.
static Budget budget(const Problem& p) {
  const double fp8 = unit_roundoff(p.dtype(&A::q_rope_out));
  return {.of_value = (1 + fp8) * (1 + 0x1p-22) - 1, .of_magnitude = (1 + fp8) * rotation_budget<A>(p).of_magnitude};
}

static Cost cost(const Problem& p, const A&) {
  const double q = double(p[Axis::heads_q]) * double(p[Axis::head_dim] + q_nope_dim(p)),
               k = double(p[Axis::heads_kv]) * double(p[Axis::head_dim] + k_nope_dim(p));
  return {.bytes = double(p[Axis::tokens]) * (q + k) * (size_of(p.dtype(&A::q_rope)) + 1) + angle_bytes<A>(p), .flops = 0};
}

/// Scales with which some results saturate.
static void generate(A& a, const Case& which, Random& random) {
  generate_angles(a, which, random);
  if (which.at("proof") != 0) return;
  for (const TensorView* scale : {&a.q_scale, &a.k_scale})
    if (scale->present()) store_value(scale->data, DType::f32, 0.004 + 0.002 * random.uniform());
}

static void derive(Case& c) {
  c["q.dtype"] = c["q_rope.dtype"];
  derive_angles(c);
  const i64 parts = i64(c["parts"]), fp8 = i64(c["fp8"]);
  c["q_nope.present"] = c["q_nope_out.present"] = parts == 1 || parts == 2;
  c["k_nope.present"] = c["k_nope_out.present"] = parts == 1 || parts == 3;
  c["q_scale.present"] = c["scales"] > 0, c["k_scale.present"] = c["scales"] > 1;
  c["q_rope_out.dtype"] = i64(fp8 == 1 ? DType::e4m3 : DType::e5m2);
  for (const char* word : {"parts", "fp8", "scales", "q.dtype", "indptr.present", "offsets.present", "indptr.dtype", "offsets.dtype"})
    c.erase(word);
}

QN_OP(rope_quantise_fp8, A, "rope.rope_quantise_fp8")
    .doc("rope_out = fp8(rope(x) * (1 / scale)), nope_out = fp8(nope * (1 / scale)) for the two parts of each head of q and k")
    .source("Su et al., RoFormer, arXiv 2104.09864")
    .in("q_rope", &A::q_rope, "tokens heads_q head_dim", {DType::f32, DType::f16, DType::bf16})
    .meaning("the part of q that is rotated")
    .unfit({DataKind::infinite})  // where the angle is at a zero of the sine or cosine, the error of the angle chooses the sign
    .in("k_rope", &A::k_rope, "tokens heads_kv head_dim", like("q_rope"))
    .meaning("of MLA one head")
    .unfit({DataKind::infinite})
    .in("q_nope", &A::q_nope, "tokens heads_q q_nope_dim", like("q_rope"))
    .optional()
    .meaning("the part of q that is not rotated")
    .in("k_nope", &A::k_nope, "tokens heads_kv k_nope_dim", like("q_rope"))
    .optional()
    .meaning("of MLA the latent")
    .in("positions", &A::positions, "tokens", {DType::i32, DType::i64})
    .optional()
    .values(length_upto(Axis::positions))
    .contents(each_below("16777216"))
    .meaning("of each token; below the rows of cos too; NaN results elsewhere")
    .in("q_scale", &A::q_scale, "1", {DType::f32})
    .optional()
    .values(generated())
    .meaning("positive; FP8 times it is q; absent: 1")
    .in("k_scale", &A::k_scale, "1", {DType::f32})
    .optional()
    .values(generated())
    .meaning("positive; FP8 times it is k; absent: 1")
    .with(state_tables<A>)
    .in("mrope_positions", &A::mrope_positions, "3 tokens", {DType::i32, DType::i64})
    .optional()
    .values(length_upto(Axis::positions))
    .contents(each_below("16777216"))
    .meaning("time, height and width of each token, in the place of positions")
    .out("q_rope_out", &A::q_rope_out, "tokens heads_q head_dim", {DType::e4m3, DType::e5m2})
    .out("k_rope_out", &A::k_rope_out, "tokens heads_kv head_dim", like("q_rope_out"))
    .out("q_nope_out", &A::q_nope_out, "tokens heads_q q_nope_dim", like("q_rope_out"))
    .optional()
    .within({.exact = true})
    .meaning("beside q_nope")
    .out("k_nope_out", &A::k_nope_out, "tokens heads_kv k_nope_dim", like("q_rope_out"))
    .optional()
    .within({.exact = true})
    .meaning("beside k_nope")
    .attr("rotary_dim", &A::rotary_dim)
    .meaning("rotated elements of a head; 0: twice the pairs of a table, else head_dim")
    .attr("interleaved", &A::interleaved)
    .meaning("pairs (2i, 2i+1) instead of (i, i + rotary_dim/2)")
    .with(state_theta<A>)
    .with(state_tables_and_sections<A>)
    .require(rotary_dim_fits<A>)
    .require(one_source_of_angles<A>)
    .require(theta_fits<A>)
    .require(positions_told)
    .require(sections_fit<A>)
    .require(parts_and_outputs)
    .rows(Axis::tokens)
    .plan(plan)
    .reference<rope_quantise_fp8_ref>()
    .generate<generate>()
    .contract<positions_contract<A>>()
    .broken_contents("beyond", 1)
    .cost<cost>()
    .budget(budget)
    .cases({{"tokens", {4, 1, 0, 33}},
            {"heads_q", {8, 1, 5}},
            {"heads_kv", {1, 2}},
            {"head_dim", {64, 128, 80}},
            {"q_nope_dim", {128, 7, 40}},
            {"k_nope_dim", {512, 128, 9}},
            {"parts", {1, 0, 2, 3}, "parts that are not rotated: none (0), of q and k (1), of q (2), of k (3)"},
            {"fp8", {1, 2}, "outputs are e4m3 (1) or e5m2 (2)"},
            {"scales", {0, 1, 2}, "none, of q, or of q and k"},
            {"rotary_dim", {0, 64, 22}},
            {"interleaved", {true, false}},
            {"angles", {0, 1, 2, 3}, "of theta (0), of frequencies (1), rows of cos and sin in f32 (2) or in q's dtype (3)"},
            {"places", {0, 1, 2}, "positions (0), three of each token with sections (1) that are interleaved (2)"},
            {"theta", {500000.0, 10000.0}},
            {"llama31_factor", {8.0, 1.0}},
            {"cos_sin_scale", {1.0, 1.25}},
            {"positions", {131072, 100, 16777215}, "bound of the tokens' positions"},
            {"positions.dtype", {DType::i32, DType::i64}},
            {"beyond", {0, 1}, "some positions are none"},
            {"q_rope.dtype", {DType::bf16, DType::f16, DType::f32}},
            {"q_rope.pad", {0, 8, 1}},
            {"q_nope.pad", {0, 8, 1}},
            {"q_rope_out.pad", {0, 16, 1}},
            {"k_nope_out.pad", {0, 64, 1}}},
           derive)
    .bench({{{"tokens", 64}, {"heads_q", 128}, {"heads_kv", 1}, {"head_dim", 64}, {"q_nope_dim", 512}, {"k_nope_dim", 512}},
            {{"tokens", 4096}, {"heads_q", 128}, {"heads_kv", 1}, {"head_dim", 64}, {"q_nope_dim", 512}, {"k_nope_dim", 512}},
            {{"tokens", 4096}, {"heads_q", 32}, {"heads_kv", 8}, {"head_dim", 128}, {"parts", 0}}});

}  // namespace quern::rope
