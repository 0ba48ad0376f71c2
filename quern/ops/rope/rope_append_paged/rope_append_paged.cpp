// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/rope/rope_append_paged.h"

#include "quern/bricks/paged/places.h"
#include "quern/op/schema.h"
#include "quern/ops/rope/rope_append_paged/ref.h"
#include "quern/ops/rope/rope_append_paged/spec.h"
#include "quern/ops/rope/rotate/rotate.h"

namespace quern::rope {

using A = RopeAppendPagedArgs;

static const jit::Kernel<RopeAppendPagedConfig, RopeAppendPagedParams> append_kernel{"quern/ops/rope/rope_append_paged/kernel.cuh",
                                                                                     "rope_append_paged_heads"};

static bool is_fp8(DType dtype) { return dtype == DType::e4m3 || dtype == DType::e5m2; }

static paged::PlaceFacts place_facts(const Problem& p) {
  return {p.tensor(&A::slot_mapping).present, p.tensor(&A::batch_indices).present, p.tensor(&A::positions).present,
          p.tensor(&A::page_table).present,   p.tensor(&A::page_indptr).present,   p.tensor(&A::page_indices).present};
}
static paged::PlaceTensors place_tensors(const A& a) {
  return {a.k_cache, a.slot_mapping, a.batch_indices, a.positions, a.page_table, a.page_indptr, a.page_indices};
}
static i64 heads_of(const Problem& p) { return p[Axis::heads_q] + 2 * p[Axis::heads_kv]; }

static RopeAppendPagedParams params(const Call<A>& c) {
  const A& a = c.args;
  RopeAppendPagedParams p{};
  p.angles = angle_params(a, c.problem);
  p.place = paged::place_params(place_tensors(a));
  p.q = a.q.data, p.k = a.k.data, p.v = a.v.data, p.q_out = a.q_out.data, p.k_cache = a.k_cache.data, p.v_cache = a.v_cache.data;
  p.q_weight = a.q_weight.data, p.k_weight = a.k_weight.data;
  p.k_scale = static_cast<const float*>(a.k_scale.data), p.v_scale = static_cast<const float*>(a.v_scale.data);
  p.q_token_stride = a.q.strides[0], p.q_head_stride = a.q.strides[1], p.q_out_token_stride = a.q_out.strides[0],
  p.q_out_head_stride = a.q_out.strides[1];
  p.k_token_stride = a.k.strides[0], p.k_head_stride = a.k.strides[1], p.v_token_stride = a.v.strides[0], p.v_head_stride = a.v.strides[1];
  p.k_page_stride = a.k_cache.strides[0], p.k_slot_stride = a.k_cache.strides[1], p.k_cache_head_stride = a.k_cache.strides[2];
  p.v_page_stride = a.v_cache.strides[0], p.v_slot_stride = a.v_cache.strides[1], p.v_cache_head_stride = a.v_cache.strides[2];
  p.k_scale_stride = a.k_scale.shape[0] == 1 ? 0 : a.k_scale.strides[0],
  p.v_scale_stride = a.v_scale.shape[0] == 1 ? 0 : a.v_scale.strides[0];
  p.tokens = c.problem[Axis::tokens];
  p.heads_q = i32(c.problem[Axis::heads_q]), p.heads_kv = i32(c.problem[Axis::heads_kv]), p.head_dim = i32(c.problem[Axis::head_dim]);
  p.parts = i32(ceil_div<i64>(heads_of(c.problem), c.config<RopeAppendPagedConfig>().in_flight));
  p.eps = a.eps, p.weight_bias = a.weight_bias;
  return p;
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  i32 widest = min_of(min_of(p.vector(&A::q), p.vector(&A::q_out)), min_of(p.vector(&A::k), p.vector(&A::v)));
  widest = min_of(widest, min_of(p.vector(&A::k_cache), p.vector(&A::v_cache)));
  RopeAppendPagedConfig c{};
  c.weight_dtype = p.dtype(&A::q);
  for (TensorView A::* weight : {&A::q_weight, &A::k_weight}) {
    const TensorFacts& t = p.tensor(weight);
    if (!t.present) continue;
    c.norm = 1, c.weight_dtype = t.dtype;
    // A weight that is wider than q is read by accesses of 16 bytes, where it is aligned
    if (t.alignment < min_of(16, widest * size_of(t.dtype))) widest = max_of(1, t.alignment / size_of(t.dtype));
  }
  c.angles = angle_config<A>(p);
  c.head = head_config(p.dtype(&A::q), p.attr(&A::interleaved), widest, rotary_dim_of<A>(p), p[Axis::head_dim],
                       rotary_dim_of<A>(p) < p[Axis::head_dim]);
  c.places = paged::places_of(place_facts(p));
  c.place_dtype = c.places == paged::Places::slot_mapping ? p.dtype(&A::slot_mapping) : p.dtype(&A::batch_indices);
  c.cache_dtype = p.dtype(&A::k_cache);
  c.in_flight = heads_in_flight(p[Axis::tokens], heads_of(p), c.head.lanes, device), c.threads = 256;
  Plan plan;
  plan.launch<params>(append_kernel, c,
                      {.x = part_blocks(p[Axis::tokens] * ceil_div<i64>(heads_of(p), c.in_flight), c.head.lanes, c.threads, device),
                       .smem = turns_smem(c.angles),
                       .pdl = p.pdl});
  return plan;
}

/// By slots, or by requests, positions and one page table; positions beside slots are those of the angles.
static Rejection one_way_to_places(const Problem& p) {
  const paged::PlaceFacts f = place_facts(p);
  const bool sections = p.tensor(&A::mrope_positions).present;
  if (f.slot_mapping && f.batch_indices) return {"batch_indices", "given", "none beside slot_mapping"};
  if (!f.slot_mapping && !f.batch_indices)
    return {"slot_mapping", "absent", "slot_mapping, or batch_indices with positions and a page table"};
  if (f.slot_mapping && sections && f.positions) return {"positions", "given", "none beside slot_mapping and mrope_positions"};
  if (!f.positions && f.batch_indices) return {"positions", "absent", "a tensor, as batch_indices is given"};
  if (!f.positions && !sections) return {"positions", "absent", "positions or mrope_positions"};
  return paged::one_page_table(f);
}
static Rejection indices_agree(const Problem& p) {
  if (!p.tensor(&A::batch_indices).present || p.dtype(&A::batch_indices) == p.dtype(&A::positions)) return {};
  return {"batch_indices", name(p.dtype(&A::batch_indices)), "the dtype of positions"};
}
static Rejection weights_agree(const Problem& p) {
  if (!p.tensor(&A::q_weight).present || !p.tensor(&A::k_weight).present || p.dtype(&A::q_weight) == p.dtype(&A::k_weight)) return {};
  return {"k_weight", name(p.dtype(&A::k_weight)), "the dtype of q_weight"};
}

static Rejection norms_fit(const Problem& p) {
  const float eps = p.attr(&A::eps), bias = p.attr(&A::weight_bias);
  if (!(eps >= 0 && eps <= 1e30f)) return {"eps", eps, "a number from 0 to 1e30"};
  if (!(bias >= -1e30f && bias <= 1e30f)) return {"weight_bias", bias, "a number from -1e30 to 1e30"};
  if (p.tensor(&A::q_weight).present || p.tensor(&A::k_weight).present || bias == 0) return {};
  return {"weight_bias", bias, "0 without q_weight and k_weight"};
}

static Rejection scales_fit(const Problem& p) {
  static const Axis k_scales = axis_of("k_scales"), v_scales = axis_of("v_scales");
  const bool fp8 = is_fp8(p.dtype(&A::k_cache));
  const i64 heads = p[Axis::heads_kv];
  for (const auto& [word, present, extent] :
       {std::tuple{"k_scale", p.tensor(&A::k_scale).present, p[k_scales]}, {"v_scale", p.tensor(&A::v_scale).present, p[v_scales]}}) {
    if (present && !fp8) return {word, "given", "none: caches of k's dtype have no scale"};
    if (present && extent != 1 && extent != heads) return {word, extent, "1 element, or one of each head: {}", heads};
  }
  return {};
}

static Breach contract(const A& a, const Problem& p) {
  if (const Breach breach = positions_contract<A>(a, p)) return breach;
  return paged::places_contract(place_tensors(a), p[Axis::tokens]);
}

/// Of q_out and of caches like k: one rounding, and what the reference counts in units of 2^-19. FP8 caches hold k's dtype over the scale:
/// that dtype's rounding, the quotient's of 2^-24 and the last one, each of what the ones before left. A subnormal of that dtype is off by
/// half of its smallest number, over a scale that in cases is at least 0.002.
static Budget budget(const Problem& p) {
  const double q = unit_roundoff(p.dtype(&A::q));
  if (!is_fp8(p.dtype(&A::k_cache))) return {.of_value = q, .of_magnitude = 0x1p-19};
  const double cache = unit_roundoff(p.dtype(&A::k_cache));
  return {.of_value = (1 + cache) * (1 + q + 0x1p-23) - 1,
          .of_magnitude = (1 + cache) * (1 + q + 0x1p-23) * 0x1p-19,
          .absolute = (1 + cache) * smallest_positive(p.dtype(&A::q)) / 2 / 0.002};
}

static Cost cost(const Problem& p, const A&) {
  const double head = double(p[Axis::tokens]) * double(p[Axis::head_dim]), q = size_of(p.dtype(&A::q)),
               cache = size_of(p.dtype(&A::k_cache));
  const double places = p.tensor(&A::slot_mapping).present ? size_of(p.dtype(&A::slot_mapping)) : size_of(p.dtype(&A::batch_indices)) + 4;
  return {.bytes = head * (2 * q * double(p[Axis::heads_q]) + 2 * (q + cache) * double(p[Axis::heads_kv])) +
                   places * double(p[Axis::tokens]) + angle_bytes<A>(p),
          .flops = 0};
}

/// Positions of pages are small; those beside slots are any.
static void generate(A& a, const Case& which, Random& random) {
  paged::generate_places(place_tensors(a), a.q.shape[0], which, random);
  for (i64 t = 0; a.slot_mapping.present() && a.positions.present() && t < a.positions.shape[0]; ++t) {
    const i64 at[] = {t};
    store_integer(a.positions.at(at), a.positions.dtype, random.below(131072));
  }
  for (i64 r = 0; a.mrope_positions.present() && r < 3; ++r)
    for (i64 t = 0; t < a.mrope_positions.shape[1]; ++t) {
      const i64 at[] = {r, t};
      store_integer(a.mrope_positions.at(at), a.mrope_positions.dtype, random.below(131072));
    }
  generate_angles(a, which, random);
  if (which.at("proof") != 0) return;
  for (const TensorView* scale : {&a.k_scale, &a.v_scale})
    for (i64 h = 0; scale->present() && h < scale->shape[0]; ++h) {
      const i64 at[] = {h};
      store_element(*scale, at, 0.002 + 0.001 * random.uniform());
    }
}

static void derive(Case& c) {
  const bool csr = c["csr"] != 0, slots = c["slots"] != 0;
  derive_angles(c);
  const bool sections = c["mrope_positions.present"] != 0;
  c["positions.present"] = !slots || !sections;
  c["slot_mapping.present"] = slots, c["batch_indices.present"] = !slots, c["batch_indices.dtype"] = c["positions.dtype"];
  c["page_table.present"] = !csr && !slots, c["page_indptr.present"] = c["page_indices.present"] = csr && !slots;
  const i64 tokens = i64(c["tokens"]), batch = i64(c["batch"]), page_size = i64(c["page_size"]);
  const i64 max_pages = ceil_div<i64>(2 * tokens / max_of<i64>(batch, 1) + page_size + 2, page_size);
  c["max_pages"] = max_pages, c["page_indices"] = max_pages * batch, c["pages"] = max_pages * batch + 3;
  const i64 fp8 = i64(c["fp8"]), scales = fp8 ? i64(c["scales"]) : 0, norms = i64(c["norms"]);
  c["k_cache.dtype"] = fp8 == 0 ? c["q.dtype"] : Scalar(i64(fp8 == 1 ? DType::e4m3 : DType::e5m2));
  c["k_scale.present"] = scales > 0, c["v_scale.present"] = scales > 1;
  c["k_scales"] = scales == 1 ? Scalar(1) : c["heads_kv"], c["v_scales"] = 1;
  c["q_weight.present"] = norms > 0, c["k_weight.present"] = norms > 0 && norms < 3;
  c["q_weight.dtype"] = c["k_weight.dtype"] = norms == 2 ? Scalar(i64(DType::f32)) : c["q.dtype"];
  if (norms == 0) c["weight_bias"] = 0.0;
  for (const char* word : {"csr", "slots", "fp8", "scales", "norms", "indptr.present", "offsets.present", "indptr.dtype", "offsets.dtype"})
    c.erase(word);
}

QN_OP(rope_append_paged, A, "rope.rope_append_paged")
    .doc(
        "q_out = rope(norm(q)); k_cache[page, offset] = rope(norm(k)), v_cache[page, offset] = v of each token, or over a scale in FP8; norms only where there are weights")
    .source(
        "Su et al., RoFormer, arXiv 2104.09864; Kwon et al., Efficient Memory Management for LLM Serving with PagedAttention, arXiv 2309.06180")
    .in("q", &A::q, "tokens heads_q head_dim", {DType::f32, DType::f16, DType::bf16})
    .unfit({DataKind::infinite})  // where the angle is at a zero of the sine or cosine, the error of the angle chooses the sign
    .in("k", &A::k, "tokens heads_kv head_dim", like("q"))
    .unfit({DataKind::infinite})
    .in("v", &A::v, "tokens heads_kv head_dim", like("q"))
    .inout("k_cache", &A::k_cache, "pages page_size heads_kv head_dim", like("q", {DType::e4m3, DType::e5m2}))
    .meaning("NHD, HND or one half of a combined cache, by strides; FP8: rotated k in k's dtype / k_scale")
    .inout("v_cache", &A::v_cache, "pages page_size heads_kv head_dim", like("k_cache"))
    .within({.exact = true})
    .in("positions", &A::positions, "tokens", {DType::i32, DType::i64})
    .optional()
    .values(generated())
    .contents(each_below("16777216"))
    .meaning("of each token: of its angles and, beside batch_indices, of its place; below the rows of cos too")
    .in("slot_mapping", &A::slot_mapping, "tokens", {DType::i32, DType::i64})
    .optional()
    .values(generated())
    .contents(each_below("pages*page_size").or_negative())
    .meaning("page * page_size + offset of each token; negative: nothing is appended")
    .in("batch_indices", &A::batch_indices, "tokens", {DType::i32, DType::i64})
    .optional()
    .values(generated())
    .contents(each_below("batch").or_negative())
    .meaning("request of each token, in the place of slot_mapping; negative: nothing is appended")
    .with(paged::state_page_tables<A>)
    .with(state_tables<A>)
    .in("mrope_positions", &A::mrope_positions, "3 tokens", {DType::i32, DType::i64})
    .optional()
    .values(generated())
    .contents(each_below("16777216"))
    .meaning("time, height and width of each token, for its angles")
    .in("q_weight", &A::q_weight, "head_dim", like("q", {DType::f32}))
    .optional()
    .meaning("each head of q is normalised first")
    .in("k_weight", &A::k_weight, "head_dim", like("q", {DType::f32}))
    .optional()
    .meaning("each head of k is normalised first")
    .in("k_scale", &A::k_scale, "k_scales", {DType::f32})
    .optional()
    .strided()
    .values(generated())
    .meaning("of FP8 caches: one, or one of each head")
    .in("v_scale", &A::v_scale, "v_scales", {DType::f32})
    .optional()
    .strided()
    .values(generated())
    .out("q_out", &A::q_out, "tokens heads_q head_dim", like("q"))
    .may_be("q")
    .within({.of_magnitude = 0x1p-19})
    .attr("rotary_dim", &A::rotary_dim)
    .meaning("rotated elements of a head; 0: twice the pairs of a table, else head_dim")
    .attr("interleaved", &A::interleaved)
    .meaning("pairs (2i, 2i+1) instead of (i, i + rotary_dim/2)")
    .with(state_theta<A>)
    .with(state_tables_and_sections<A>)
    .attr("eps", &A::eps)
    .meaning("of the norms, added to the mean square, from 0 to 1e30")
    .attr("weight_bias", &A::weight_bias)
    .meaning("added to their weights: Gemma's is 1")
    .require(rotary_dim_fits<A>)
    .require(one_source_of_angles<A>)
    .require(theta_fits<A>)
    .require(sections_fit<A>)
    .require(one_way_to_places)
    .require(indices_agree)
    .require(weights_agree)
    .require(norms_fit)
    .require(scales_fit)
    .plan(plan)
    .reference<rope_append_paged_ref>()
    .generate<generate>()
    .contract<contract>()
    .broken_contents("beyond", 1)
    .cost<cost>()
    .budget(budget)
    .cases({{"tokens", {4, 1, 0, 33}},
            {"batch", {4, 1, 3}},
            {"heads_q", {8, 1, 5}},
            {"heads_kv", {2, 1, 3}},
            {"head_dim", {128, 64, 80, 96, 256}},
            {"page_size", {16, 1, 7}},
            {"rotary_dim", {0, 64, 22}},
            {"interleaved", {false, true}},
            {"angles", {0, 1, 2, 3}, "of theta (0), of frequencies (1), rows of cos and sin in f32 (2) or in q's dtype (3)"},
            {"places", {0, 1, 2}, "angles are of positions (0), of three of each token with sections (1) that are interleaved (2)"},
            {"csr", {false, true}, "the page table is page_indptr and page_indices, else dense"},
            {"slots", {false, true}, "places are told by slot_mapping"},
            {"beyond", {0, 1}, "some tokens have no place: indices break the contract"},
            {"norms", {0, 1, 2, 3}, "q and k have a weight of their dtype (1) or in f32 (2), or q alone (3)"},
            {"weight_bias", {0.0, 1.0}},
            {"fp8", {0, 1, 2}, "caches are e4m3 (1) or e5m2 (2)"},
            {"scales", {0, 1, 2}, "of these: none, one for k, or one for each head of k and one for v"},
            {"theta", {500000.0, 10000.0}},
            {"llama31_factor", {8.0, 1.0}},
            {"cos_sin_scale", {1.0, 1.25}},
            {"positions.dtype", {DType::i32, DType::i64}},
            {"slot_mapping.dtype", {DType::i32, DType::i64}},
            {"q.dtype", {DType::bf16, DType::f16, DType::f32}},
            {"k_cache.pad", {0, 8, 1}},
            {"k_cache.swap", {false, true}},
            {"v_cache.swap", {false, true}},
            {"q.pad", {0, 8, 1}}},
           derive)
    .bench({{{"tokens", 64}, {"batch", 64}, {"heads_q", 32}, {"heads_kv", 8}, {"head_dim", 128}, {"page_size", 16}},
            {{"tokens", 4096}, {"batch", 64}, {"heads_q", 32}, {"heads_kv", 8}, {"head_dim", 128}, {"page_size", 16}},
            {{"tokens", 4096},
             {"batch", 64},
             {"heads_q", 32},
             {"heads_kv", 8},
             {"head_dim", 128},
             {"page_size", 16},
             {"slots", 1},
             {"norms", 1},
             {"fp8", 1},
             {"scales", 1}},
            {{"tokens", 65536}, {"batch", 64}, {"heads_q", 32}, {"heads_kv", 8}, {"head_dim", 128}, {"page_size", 16}}});

}  // namespace quern::rope
