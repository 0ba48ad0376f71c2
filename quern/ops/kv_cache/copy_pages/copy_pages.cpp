// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/kv_cache/copy_pages.h"

#include <map>
#include <set>
#include <string>

#include "quern/base/host_dtype.h"
#include "quern/bricks/rows/plan.h"
#include "quern/op/ref.h"
#include "quern/op/schema.h"
#include "quern/ops/kv_cache/copy_pages/ref.h"
#include "quern/ops/kv_cache/copy_pages/spec.h"

namespace quern::kv_cache {

using A = CopyPagesArgs;

static const jit::Kernel<CopyPagesConfig, CopyPagesParams> chunk_kernel{"quern/ops/kv_cache/copy_pages/kernel.cuh", "copy_pages_chunk"};

static Axis copies_axis() {
  static const Axis axis = axis_of("copies");
  return axis;
}

static CopyPagesConfig config_of(const Problem& p) {
  const bool both = p.tensor(&A::v_cache).present;
  const i32 widest = both ? min_of(p.tensor(&A::k_cache).alignment, p.tensor(&A::v_cache).alignment) : p.tensor(&A::k_cache).alignment;
  return {p.dtype(&A::src_pages), rows::vector_of(widest, p[Axis::head_dim] * size_of(p.dtype(&A::k_cache))), both, {1, 4}, 128};
}
static i64 page_accesses(const Problem& p, const CopyPagesConfig& config) {
  return p[Axis::page_size] * p[Axis::heads_kv] * (p[Axis::head_dim] * size_of(p.dtype(&A::k_cache)) / config.bytes);
}

static CopyPagesParams params(const Call<A>& c) {
  const A& a = c.args;
  const Problem& problem = c.problem;
  const CopyPagesConfig& config = c.config<CopyPagesConfig>();
  const i64 element = size_of(a.k_cache.dtype);
  // Heads follow each other in NHD, slots in HND
  const bool heads_inner = a.k_cache.strides[2] <= a.k_cache.strides[1];
  const auto cache = [&](const TensorView& view) {
    const i64 slot = view.strides[1] * element, head = view.strides[2] * element;
    return CopyPagesCache{static_cast<char*>(view.data), view.strides[0] * element, heads_inner ? slot : head, heads_inner ? head : slot};
  };
  CopyPagesParams p{};
  p.k = cache(a.k_cache);
  if (config.both) p.v = cache(a.v_cache);
  p.src_pages = a.src_pages.data, p.dst_pages = a.dst_pages.data;
  p.copies = problem[copies_axis()], p.pages = problem[Axis::pages];
  p.page_accesses = page_accesses(problem, config);
  p.row_accesses = divisor(u32(problem[Axis::head_dim] * element / config.bytes));
  p.inner = divisor(u32(heads_inner ? problem[Axis::heads_kv] : problem[Axis::page_size]));
  return p;
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  const CopyPagesConfig config = config_of(p);
  Plan plan;
  plan.launch<params>(
      chunk_kernel, config,
      {.x = rows::chunk_blocks(config.chunks, config.threads, {p[copies_axis()], page_accesses(p, config)}, device), .pdl = p.pdl});
  return plan;
}

/// The kernel counts the accesses of a page in 31 bits.
static Rejection page_fits(const Problem& p) {
  const i64 bytes = p[Axis::page_size] * p[Axis::heads_kv] * p[Axis::head_dim] * size_of(p.dtype(&A::k_cache));
  return bytes < (i64(1) << 31) ? Rejection{} : Rejection{"page_size", p[Axis::page_size], "pages of less than 2^31 bytes"};
}

/// No page is read by one copy and written by another.
static Breach contract(const A& a, const Problem& p) {
  const Ref src(a.src_pages), dst(a.dst_pages);
  std::map<i64, i64> read, written;
  for (i64 i = 0; i < p[copies_axis()]; ++i)
    if (dst.index(i) >= 0 && src.index(i) >= 0) read.emplace(src.index(i), i);
  for (i64 i = 0; i < p[copies_axis()]; ++i) {
    if (src.index(i) < 0 || dst.index(i) < 0) continue;
    if (const auto [first, is_new] = written.emplace(dst.index(i), i); !is_new)
      return {"dst_pages", {i}, dst.index(i), "a page that no other copy writes: it is `dst_pages`[" + std::to_string(first->second) + "]"};
    const auto at = read.find(dst.index(i));
    if (at == read.end()) continue;
    return {"dst_pages", {i}, dst.index(i), "a page that no copy reads: it is `src_pages`[" + std::to_string(at->second) + "]"};
  }
  return {};
}

static Budget budget(const Problem&) { return {.exact = true}; }

static Cost cost(const Problem& p, const A& a) {
  const Ref src(a.src_pages), dst(a.dst_pages);
  const double page = double(p[Axis::page_size] * p[Axis::heads_kv] * p[Axis::head_dim]) * size_of(p.dtype(&A::k_cache)) *
                      (p.tensor(&A::v_cache).present ? 2 : 1);
  double bytes = double(p[copies_axis()]) * 2 * size_of(p.dtype(&A::src_pages));
  std::set<i64> read;
  for (i64 i = 0; i < p[copies_axis()]; ++i) {
    if (src.index(i) < 0 || dst.index(i) < 0) continue;
    bytes += read.insert(src.index(i)).second ? 2 * page : page;
  }
  return {bytes, 0};
}

/// Half of the pages are read, some by several copies; the others are written. Some copies are skipped; where the case's word `beyond` is
/// 1, some name pages that the cache does not have.
static void generate(A& a, const Case& which, Random& random) {
  const auto at = which.find("beyond");
  const bool beyond = at != which.end() && at->second != 0;
  const i64 copies = a.src_pages.shape[0], pages = a.k_cache.shape[0];
  for (i64 i = 0; i < copies; ++i) {
    const i64 here[] = {i};
    i64 src = 2 * random.below((pages + 1) / 2), dst = 2 * i + 1;
    if (i % 4 == 2) (i % 8 == 2 ? src : dst) = -1 - i;
    if (beyond && i % 4 == 1) (i % 8 == 1 ? src : dst) = pages + i;
    store_integer(a.src_pages.at(here), a.src_pages.dtype, src);
    store_integer(a.dst_pages.at(here), a.dst_pages.dtype, dst);
  }
}

static void derive(Case& which) { which["pages"] = 2 * i64(which["copies"]) + 3; }

QN_OP(copy_pages, A, "kv_cache.copy_pages")
    .doc("cache[dst_pages[i]] = cache[src_pages[i]] for k and v")
    .source("Kwon et al., Efficient Memory Management for LLM Serving with PagedAttention, arXiv 2309.06180")
    .inout("k_cache", &A::k_cache, "pages page_size heads_kv head_dim", {DType::bf16, DType::f16, DType::f32, DType::e4m3, DType::e5m2})
    .meaning("NHD, HND or one half of a combined cache, by strides")
    .inout("v_cache", &A::v_cache, "pages page_size heads_kv head_dim", like("k_cache"))
    .optional()
    .meaning("absent where there is one cache, as of MLA")
    .in("src_pages", &A::src_pages, "copies", {DType::i32, DType::i64})
    .values(generated())
    .contents(each_below("pages").or_negative())
    .meaning("pages that are read; negative: the copy is skipped")
    .in("dst_pages", &A::dst_pages, "copies", like("src_pages"))
    .values(generated())
    .contents(each_below("pages").or_negative())
    .meaning("pages that are written, and read by no copy; negative: the copy is skipped")
    .require(page_fits)
    .plan(plan)
    .reference<copy_pages_ref<double>, copy_pages_ref<OrderFree>>()
    .generate<generate>()
    .contract<contract>()
    .broken_contents("beyond", 1)
    .cost<cost>()
    .budget(budget)
    .cases({{"copies", {5, 1, 0, 18}},
            {"heads_kv", {8, 1, 3}},
            {"head_dim", {128, 64, 80, 7}},
            {"page_size", {16, 1, 3}},
            {"v_cache.present", {true, false}},
            {"src_pages.dtype", {DType::i32, DType::i64}},
            {"k_cache.dtype", {DType::bf16, DType::f16, DType::f32, DType::e4m3, DType::e5m2}},
            {"beyond", {0, 1}, "some copies name pages that the cache does not have"},
            {"k_cache.pad", {0, 8, 1}},
            {"k_cache.swap", {false, true}},
            {"v_cache.swap", {false, true}}},
           derive)
    .bench({{{"copies", 4}, {"heads_kv", 8}, {"head_dim", 128}, {"page_size", 16}},
            {{"copies", 1024}, {"heads_kv", 8}, {"head_dim", 128}, {"page_size", 16}}});

}  // namespace quern::kv_cache
