// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/kv_cache/append_paged.h"

#include "quern/base/host_dtype.h"
#include "quern/bricks/paged/places.h"
#include "quern/op/ref.h"
#include "quern/op/schema.h"
#include "quern/ops/kv_cache/append_paged/ref.h"
#include "quern/ops/kv_cache/append_paged/spec.h"

namespace quern::kv_cache {

using A = AppendPagedArgs;

static const jit::Kernel<AppendPagedConfig, AppendPagedParams> token_kernel{"quern/ops/kv_cache/append_paged/kernel.cuh",
                                                                            "append_paged_token"};

static bool is_fp8(DType dtype) { return dtype == DType::e4m3 || dtype == DType::e5m2; }

static paged::PlaceFacts place_facts(const Problem& p) {
  return {p.tensor(&A::slot_mapping).present, p.tensor(&A::batch_indices).present, p.tensor(&A::positions).present,
          p.tensor(&A::page_table).present,   p.tensor(&A::page_indptr).present,   p.tensor(&A::page_indices).present};
}
static paged::PlaceTensors place_tensors(const A& a) {
  return {a.k_cache, a.slot_mapping, a.batch_indices, a.positions, a.page_table, a.page_indptr, a.page_indices};
}

static AppendPagedConfig config_of(const Problem& p) {
  AppendPagedConfig c{DType::u8, DType::u8, 1, paged::places_of(place_facts(p)), DType::i32, 128};
  c.index_dtype = c.places == paged::Places::slot_mapping ? p.dtype(&A::slot_mapping) : p.dtype(&A::batch_indices);
  const i32 rows = min_of(p.tensor(&A::k).alignment, p.tensor(&A::v).alignment),
            caches = min_of(p.tensor(&A::k_cache).alignment, p.tensor(&A::v_cache).alignment);
  i64 row = p[Axis::head_dim];
  if (p.dtype(&A::k) == p.dtype(&A::k_cache)) {
    c.vector = min_of(rows, caches), row *= size_of(p.dtype(&A::k));
  } else {
    c.dtype = p.dtype(&A::k), c.cache_dtype = p.dtype(&A::k_cache);
    c.vector = max_of(1, min_of(rows / i32(size_of(c.dtype)), caches));
  }
  while (row % c.vector) c.vector /= 2;
  return c;
}

static AppendPagedParams params(const Call<A>& c) {
  const A& a = c.args;
  const Problem& problem = c.problem;
  const AppendPagedConfig& config = c.config<AppendPagedConfig>();
  const i64 element = size_of(a.k.dtype), stored = size_of(a.k_cache.dtype);
  AppendPagedParams p{};
  p.k = static_cast<const char*>(a.k.data), p.v = static_cast<const char*>(a.v.data);
  p.k_cache = static_cast<char*>(a.k_cache.data), p.v_cache = static_cast<char*>(a.v_cache.data);
  p.place = paged::place_params(place_tensors(a));
  p.k_scale = static_cast<const float*>(a.k_scale.data), p.v_scale = static_cast<const float*>(a.v_scale.data);
  p.k_scale_stride = a.k_scale.shape[0] == 1 ? 0 : a.k_scale.strides[0],
  p.v_scale_stride = a.v_scale.shape[0] == 1 ? 0 : a.v_scale.strides[0];
  p.k_token_stride = a.k.strides[0] * element, p.k_head_stride = a.k.strides[1] * element;
  p.v_token_stride = a.v.strides[0] * element, p.v_head_stride = a.v.strides[1] * element;
  p.k_page_stride = a.k_cache.strides[0] * stored, p.k_slot_stride = a.k_cache.strides[1] * stored;
  p.k_cache_head_stride = a.k_cache.strides[2] * stored;
  p.v_page_stride = a.v_cache.strides[0] * stored, p.v_slot_stride = a.v_cache.strides[1] * stored;
  p.v_cache_head_stride = a.v_cache.strides[2] * stored;
  p.tokens = problem[Axis::tokens], p.heads_kv = i32(problem[Axis::heads_kv]);
  p.head_accesses = i32(problem[Axis::head_dim] * (config.dtype == DType::u8 ? element : 1) / config.vector);
  return p;
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  const AppendPagedConfig config = config_of(p);
  Plan plan;
  plan.launch<params>(token_kernel, config, {.x = max_of<i64>(1, min_of<i64>(p[Axis::tokens], i64(device.sms) << 16)), .pdl = p.pdl});
  return plan;
}

/// By slots, or by requests, positions and one page table.
static Rejection one_way_to_places(const Problem& p) {
  const bool indices = p.tensor(&A::batch_indices).present, positions = p.tensor(&A::positions).present;
  if (p.tensor(&A::slot_mapping).present) {
    if (indices || positions) return {indices ? "batch_indices" : "positions", "given", "none beside slot_mapping"};
    return {};
  }
  if (!indices && !positions) return {"slot_mapping", "absent", "slot_mapping, or batch_indices with positions and a page table"};
  if (!indices) return {"batch_indices", "absent", "a tensor, as positions is given"};
  if (!positions) return {"positions", "absent", "a tensor, as batch_indices is given"};
  return {};
}

/// Rows are copied, or f32, f16 or bf16 become FP8.
static Rejection convertible(const Problem& p) {
  const DType k = p.dtype(&A::k), cache = p.dtype(&A::k_cache);
  if (k == cache) {
    if (p.tensor(&A::k_scale).present) return {"k_scale", "given", "none: rows of the caches' dtype are copied"};
    if (p.tensor(&A::v_scale).present) return {"v_scale", "given", "none: rows of the caches' dtype are copied"};
    return {};
  }
  if (is_fp8(k)) return {"k_cache", name(cache), k == DType::e4m3 ? "e4m3, as k has" : "e5m2, as k has"};
  static const Axis k_scales = axis_of("k_scales"), v_scales = axis_of("v_scales");
  const i64 heads = p[Axis::heads_kv];
  if (p.tensor(&A::k_scale).present && p[k_scales] != 1 && p[k_scales] != heads)
    return {"k_scale", p[k_scales], "1 element, or one of each head: {}", heads};
  if (p.tensor(&A::v_scale).present && p[v_scales] != 1 && p[v_scales] != heads)
    return {"v_scale", p[v_scales], "1 element, or one of each head: {}", heads};
  return {};
}

static Rejection one_page_table(const Problem& p) { return paged::one_page_table(place_facts(p)); }
static Breach contract(const A& a, const Problem& p) { return paged::places_contract(place_tensors(a), p[Axis::tokens]); }

/// The rows are copied, whatever their bits; the reference states the roundings of FP8.
static Budget budget(const Problem&) { return {.exact = true}; }

static Cost cost(const Problem& p, const A&) {
  const double rows = 2.0 * double(p[Axis::tokens]) * double(p[Axis::heads_kv]) * double(p[Axis::head_dim]);
  const double indices = paged::places_of(place_facts(p)) == paged::Places::slot_mapping ? size_of(p.dtype(&A::slot_mapping))
                                                                                         : 2 * size_of(p.dtype(&A::batch_indices)) + 4;
  return {.bytes = rows * (size_of(p.dtype(&A::k)) + size_of(p.dtype(&A::k_cache))) + indices * double(p[Axis::tokens]), .flops = 0};
}

/// Scales are positive numbers with which some elements are cut to the largest of the dtype.
static void generate(A& a, const Case& which, Random& random) {
  paged::generate_places(place_tensors(a), a.k.shape[0], which, random);
  if (which.at("proof") != 0) return;
  for (const TensorView* scale : {&a.k_scale, &a.v_scale})
    for (i64 h = 0; scale->present() && h < scale->shape[0]; ++h) {
      const i64 at[] = {h};
      store_element(*scale, at, 0.002 + 0.001 * random.uniform());
    }
}

/// Dense and CSR from one word, and room for the tokens.
static void derive(Case& c) {
  const bool csr = c["csr"] != 0, slots = c["slots"] != 0;
  c["batch_indices.present"] = c["positions.present"] = !slots;
  c["slot_mapping.present"] = slots;
  c["page_table.present"] = !csr && !slots;
  c["page_indptr.present"] = c["page_indices.present"] = csr && !slots;
  const double tokens = c["tokens"], batch = c["batch"], page_size = c["page_size"];
  const double max_pages = double(ceil_div<i64>(i64(2 * tokens / (batch > 0 ? batch : 1)) + i64(page_size) + 2, i64(page_size)));
  c["max_pages"] = max_pages;
  c["page_indices"] = max_pages * batch;
  c["pages"] = max_pages * batch + 3;
  const i64 fp8 = i64(c["fp8"]), dtype = i64(c["k.dtype"]);
  const bool converts = fp8 != 0 && !is_fp8(DType(dtype));
  c["k_cache.dtype"] = converts ? i64(fp8 == 1 ? DType::e4m3 : DType::e5m2) : dtype;
  const i64 scales = converts ? i64(c["scales"]) : 0;
  c["k_scale.present"] = scales > 0, c["v_scale.present"] = scales > 1;
  c["k_scales"] = scales == 1 ? Scalar(1) : c["heads_kv"];
  c["v_scales"] = 1;
  for (const char* word : {"csr", "slots", "fp8", "scales"}) c.erase(word);
}

QN_OP(append_paged, A, "kv_cache.append_paged")
    .doc("cache[page, offset] = row of each token, or row / scale in FP8, for k and v; by slots, or by positions and a page table")
    .source("Kwon et al., Efficient Memory Management for LLM Serving with PagedAttention, arXiv 2309.06180")
    .in("k", &A::k, "tokens heads_kv head_dim", {DType::f32, DType::f16, DType::bf16, DType::e4m3, DType::e5m2})
    .in("v", &A::v, "tokens heads_kv head_dim", like("k"))
    .inout("k_cache", &A::k_cache, "pages page_size heads_kv head_dim", like("k", {DType::e4m3, DType::e5m2}))
    .meaning("NHD, HND or one half of a combined cache, by strides; FP8 beside wider k: k / k_scale")
    .inout("v_cache", &A::v_cache, "pages page_size heads_kv head_dim", like("k_cache"))
    .in("batch_indices", &A::batch_indices, "tokens", {DType::i32, DType::i64})
    .optional()
    .values(generated())
    .contents(each_below("batch").or_negative())
    .meaning("request of each token; negative: skipped")
    .in("positions", &A::positions, "tokens", like("batch_indices"))
    .optional()
    .values(generated())
    .meaning("place of each token in its request, of one that is not skipped below page_size times the request's pages")
    .with(paged::state_page_tables<A>)
    .in("slot_mapping", &A::slot_mapping, "tokens", {DType::i32, DType::i64})
    .optional()
    .values(generated())
    .contents(each_below("pages*page_size").or_negative())
    .meaning("page * page_size + offset of each token, in the place of the five before; negative: skipped")
    .in("k_scale", &A::k_scale, "k_scales", {DType::f32})
    .optional()
    .strided()
    .values(generated())
    .meaning("of FP8 caches beside wider k: one, or one of each head")
    .in("v_scale", &A::v_scale, "v_scales", {DType::f32})
    .optional()
    .strided()
    .values(generated())
    .require(one_way_to_places)
    .require(one_page_table)
    .require(convertible)
    .plan(plan)
    .reference<append_paged_ref<double>, append_paged_ref<OrderFree>>()
    .generate<generate>()
    .contract<contract>()
    .broken_contents("beyond", 1)
    .cost<cost>()
    .budget(budget)
    .cases({{"tokens", {4, 1, 0, 33}},
            {"batch", {4, 1, 3}},
            {"heads_kv", {8, 1, 3}},
            {"head_dim", {128, 64, 80, 96, 7}},
            {"page_size", {16, 1, 3, 7, 64}},
            {"csr", {false, true}, "the page table is page_indptr and page_indices, else dense"},
            {"slots", {false, true}, "places are told by slot_mapping"},
            {"beyond", {0, 1}, "some tokens have no place: indices break the contract"},
            {"batch_indices.dtype", {DType::i32, DType::i64}},
            {"slot_mapping.dtype", {DType::i32, DType::i64}},
            {"k.dtype", {DType::bf16, DType::f16, DType::f32, DType::e4m3, DType::e5m2}},
            {"fp8", {0, 1, 2}, "wider k become e4m3 (1) or e5m2 (2)"},
            {"scales", {0, 1, 2}, "of these: none, one for k, or one for each head of k and one for v"},
            {"k_cache.pad", {0, 8, 1}},
            {"k_cache.swap", {false, true}},
            {"v_cache.swap", {false, true}},
            {"k.pad", {0, 8, 1}}},
           derive)
    .bench(
        {{{"tokens", 64}, {"batch", 64}, {"heads_kv", 8}, {"head_dim", 128}, {"page_size", 16}},
         {{"tokens", 4096}, {"batch", 64}, {"heads_kv", 8}, {"head_dim", 128}, {"page_size", 16}},
         {{"tokens", 4096}, {"batch", 64}, {"heads_kv", 8}, {"head_dim", 128}, {"page_size", 16}, {"slots", 1}, {"fp8", 1}, {"scales", 1}},
         {{"tokens", 65536}, {"batch", 64}, {"heads_kv", 8}, {"head_dim", 128}, {"page_size", 16}}});

}  // namespace quern::kv_cache
