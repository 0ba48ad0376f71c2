// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/kv_cache/append_paged.h"

#include <string>
#include <vector>

#include "quern/op/ref.h"
#include "quern/op/schema.h"
#include "quern/ops/kv_cache/append_paged/ref.h"
#include "quern/ops/kv_cache/append_paged/spec.h"

namespace quern::kv_cache {

using A = AppendPagedArgs;

static const jit::Kernel<AppendPagedConfig, AppendPagedParams> token_kernel{"quern/ops/kv_cache/append_paged/kernel.cuh",
                                                                            "append_paged_token"};

static i32 access_bytes(const Problem& p) {
  i32 bytes = min_of(min_of(p.tensor(&A::k).alignment, p.tensor(&A::v).alignment),
                     min_of(p.tensor(&A::k_cache).alignment, p.tensor(&A::v_cache).alignment));
  while (p[Axis::head_dim] * size_of(p.dtype(&A::k)) % bytes) bytes /= 2;
  return bytes;
}

static AppendPagedParams params(const Call<A>& c) {
  const A& a = c.args;
  const Problem& problem = c.problem;
  const i64 element = size_of(a.k.dtype);
  const bool csr = a.page_indptr.present();
  AppendPagedParams p{};
  p.k = static_cast<const char*>(a.k.data), p.v = static_cast<const char*>(a.v.data);
  p.k_cache = static_cast<char*>(a.k_cache.data), p.v_cache = static_cast<char*>(a.v_cache.data);
  p.batch_indices = static_cast<const i32*>(a.batch_indices.data);
  p.positions = static_cast<const i32*>(a.positions.data);
  p.page_table = static_cast<const i32*>(csr ? a.page_indices.data : a.page_table.data);
  p.page_indptr = static_cast<const i32*>(a.page_indptr.data);
  p.k_token_stride = a.k.strides[0] * element, p.k_head_stride = a.k.strides[1] * element;
  p.v_token_stride = a.v.strides[0] * element, p.v_head_stride = a.v.strides[1] * element;
  p.k_page_stride = a.k_cache.strides[0] * element, p.k_slot_stride = a.k_cache.strides[1] * element;
  p.k_cache_head_stride = a.k_cache.strides[2] * element;
  p.v_page_stride = a.v_cache.strides[0] * element, p.v_slot_stride = a.v_cache.strides[1] * element;
  p.v_cache_head_stride = a.v_cache.strides[2] * element;
  p.page_table_stride = csr ? 0 : a.page_table.strides[0];
  p.tokens = problem[Axis::tokens], p.pages = problem[Axis::pages], p.batch = problem[Axis::batch];
  p.max_pages = csr ? problem[Axis::page_indices] : problem[Axis::max_pages];
  p.page_size = i32(problem[Axis::page_size]), p.heads_kv = i32(problem[Axis::heads_kv]);
  p.head_accesses = i32(problem[Axis::head_dim] * element / access_bytes(problem));
  return p;
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  const AppendPagedConfig config{access_bytes(p), p.tensor(&A::page_indptr).present, 128};
  Plan plan;
  plan.launch<params>(token_kernel, config, {.x = max_of<i64>(1, min_of<i64>(p[Axis::tokens], i64(device.sms) << 16)), .pdl = p.pdl});
  return plan;
}

static Rejection one_page_table(const Problem& p) {
  const bool dense = p.tensor(&A::page_table).present, indptr = p.tensor(&A::page_indptr).present, indices = p.tensor(&A::page_indices).present;
  if (!dense && !indptr && !indices) return {"page_table", "absent", "page_table, or page_indptr with page_indices"};
  if (dense && (indptr || indices)) return {indptr ? "page_indptr" : "page_indices", "given", "none beside page_table"};
  if (!dense && !indptr) return {"page_indptr", "absent", "a tensor, as page_indices is given"};
  if (!dense && !indices) return {"page_indices", "absent", "a tensor, as page_indptr is given"};
  return {};
}

/// A token that is not skipped has a place: its request has a page for it, which is one of the cache.
static Breach contract(const A& a, const Problem& p) {
  const bool csr = a.page_indptr.present();
  const Ref<> batch_indices(a.batch_indices), positions(a.positions), indptr(a.page_indptr), pages(csr ? a.page_indices : a.page_table);
  for (i64 t = 0; t < p[Axis::tokens]; ++t) {
    const i64 request = batch_indices.index(t), position = positions.index(t), page_size = p[Axis::page_size];
    if (request < 0) continue;
    const i64 begin = csr ? indptr.index(request) : 0, room = csr ? indptr.index(request + 1) - begin : p[Axis::max_pages];
    if (position < 0 || position >= room * page_size)
      return {"positions", {t}, position, range_text(0, room * page_size - 1) + ": request " + std::to_string(request) + " has " + std::to_string(room) + " pages of " + std::to_string(page_size) + " tokens"};
    const i64 slot = position / page_size, page = csr ? pages.index(begin + slot) : pages.index(request, slot);
    if (page >= 0 && page < p[Axis::pages]) continue;
    const std::vector<i64> at = csr ? std::vector<i64>{begin + slot} : std::vector<i64>{request, slot};
    return {csr ? "page_indices" : "page_table", at, page, range_text(0, p[Axis::pages] - 1) + ", as token " + std::to_string(t) + " is written there"};
  }
  return {};
}

/// The rows are copied, whatever their bits.
static Budget budget(const Problem&) { return {.exact = true}; }

static Cost cost(const Problem& p, const A&) {
  const double rows = 2.0 * double(p[Axis::tokens]) * double(p[Axis::heads_kv]) * double(p[Axis::head_dim]);
  return {.bytes = 2 * rows * size_of(p.dtype(&A::k)) + 12.0 * double(p[Axis::tokens]), .flops = 0};
}

/// Distinct places: the tokens are dealt out over the requests in turn, each taking its request's next position.
static void generate(A& a, const Case&, Random& random) {
  const bool csr = a.page_indptr.present();
  const i64 batch = csr ? a.page_indptr.shape[0] - 1 : a.page_table.shape[0];
  const i64 page_size = a.k_cache.shape[1];
  const i64 max_pages = csr ? (batch ? a.page_indices.shape[0] / batch : 0) : a.page_table.shape[1];
  if (csr) {
    for (i64 b = 0; b <= batch; ++b) static_cast<i32*>(a.page_indptr.data)[b * a.page_indptr.strides[0]] = i32(b * max_pages);
  }
  std::vector<i64> next(static_cast<size_t>(batch));
  for (i64& position : next) position = random.below(page_size + 2);
  for (i64 t = 0; t < a.k.shape[0]; ++t) {
    const i64 request = batch ? random.below(batch) : -1;
    const bool fits = request >= 0 && next[size_t(request)] < max_pages * page_size;
    static_cast<i32*>(a.batch_indices.data)[t] = fits ? i32(request) : -1;
    static_cast<i32*>(a.positions.data)[t] = fits ? i32(next[size_t(request)]++) : 0;
  }
}

/// Dense and CSR from one word, and room for the tokens.
static void derive(Case& c) {
  const bool csr = c["csr"] != 0;
  c["page_table.present"] = !csr;
  c["page_indptr.present"] = c["page_indices.present"] = csr;
  const double tokens = c["tokens"], batch = c["batch"], page_size = c["page_size"];
  const double max_pages = double(ceil_div<i64>(i64(2 * tokens / (batch > 0 ? batch : 1)) + i64(page_size) + 2, i64(page_size)));
  c["max_pages"] = max_pages;
  c["page_indices"] = max_pages * batch;
  c["pages"] = max_pages * batch + 3;
  c.erase("csr");
}

QN_OP(append_paged, A, "kv_cache.append_paged")
    .doc("cache[page(b, p / page_size), p % page_size] = row of token (b, p), for k and v")
    .source("Kwon et al., Efficient Memory Management for LLM Serving with PagedAttention, arXiv 2309.06180")
    .in("k", &A::k, "tokens heads_kv head_dim", {DType::f32, DType::f16, DType::bf16, DType::e4m3, DType::e5m2})
    .in("v", &A::v, "tokens heads_kv head_dim", like("k"))
    .inout("k_cache", &A::k_cache, "pages page_size heads_kv head_dim", like("k"))
    .meaning("NHD, HND or one half of a combined cache, by strides")
    .inout("v_cache", &A::v_cache, "pages page_size heads_kv head_dim", like("k"))
    .in("batch_indices", &A::batch_indices, "tokens", {DType::i32})
    .values(generated())
    .contents(each_below("batch").or_negative())
    .meaning("request of each token; negative: skipped")
    .in("positions", &A::positions, "tokens", {DType::i32})
    .values(generated())
    .meaning("place of each token in its request, of one that is not skipped below page_size times the request's pages")
    .in("page_table", &A::page_table, "batch max_pages", {DType::i32})
    .optional()
    .values(permutation_of(Axis::pages))
    .contents(each_below("pages").if_read())
    .in("page_indptr", &A::page_indptr, "batch+1", {DType::i32})
    .optional()
    .values(generated())
    .contents(each_within("0", "page_indices").ascending())
    .in("page_indices", &A::page_indices, "page_indices", {DType::i32})
    .optional()
    .values(permutation_of(Axis::pages))
    .contents(each_below("pages").if_read())
    .require(one_page_table)
    .plan(plan)
    .reference<append_paged_ref<double>, append_paged_ref<OrderFree>>()
    .generate<generate>()
    .contract<contract>()
    .cost<cost>()
    .budget(budget)
    .cases({{"tokens", {4, 1, 0, 33}},
            {"batch", {4, 1, 3}},
            {"heads_kv", {8, 1, 3}},
            {"head_dim", {128, 64, 80, 96, 7}},
            {"page_size", {16, 1, 3, 7, 64}},
            {"csr", {false, true}, "the page table is page_indptr and page_indices, else dense"},
            {"k.dtype", {DType::bf16, DType::f16, DType::f32, DType::e4m3, DType::e5m2}},
            {"k_cache.pad", {0, 8, 1}},
            {"k_cache.swap", {false, true}},
            {"v_cache.swap", {false, true}},
            {"k.pad", {0, 8, 1}}},
           derive)
    .bench({{{"tokens", 64}, {"batch", 64}, {"heads_kv", 8}, {"head_dim", 128}, {"page_size", 16}},
            {{"tokens", 4096}, {"batch", 64}, {"heads_kv", 8}, {"head_dim", 128}, {"page_size", 16}},
            {{"tokens", 65536}, {"batch", 64}, {"heads_kv", 8}, {"head_dim", 128}, {"page_size", 16}}});

}  // namespace quern::kv_cache
