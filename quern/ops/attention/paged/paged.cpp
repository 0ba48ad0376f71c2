// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/attention/paged.h"

#include "quern/ops/attention/options.h"
#include "quern/ops/attention/paged/call.h"
#include "quern/ops/attention/paged/contract.h"
#include "quern/ops/attention/paged/ref.h"
#include "quern/ops/attention/paged/split_kv/spec.h"
#include "quern/ops/attention/paged/values.h"

namespace quern::attention {

namespace {

using A = PagedArgs;

const jit::Kernel<SplitKvConfig, SplitKvParams> split_kv{"quern/ops/attention/paged/split_kv/kernel.cuh", "paged_split_kv", &kHookPoints};
const jit::Kernel<CombineConfig, SplitKvParams> combine{"quern/ops/attention/paged/split_kv/combine.cuh", "paged_combine"};

Rejection heads(const Problem& p) { return heads_divide(p[Axis::heads_q], p[Axis::heads_kv]); }
Rejection head_dims(const Problem& p) { return head_dims_fit(p[Axis::head_dim], p[Axis::head_dim], 512); }
Rejection dtypes(const Problem& p) { return dtypes_fit<A>(p, p.dtype(&A::k_cache), "k_cache"); }
/// Names the tensor that is missing from its form, or that is given beside the other form.
Rejection one_table(const Problem& p) {
  const bool table = p.tensor(&A::page_table).present, lens = p.tensor(&A::seq_lens).present;
  const bool indptr = p.tensor(&A::page_indptr).present, indices = p.tensor(&A::page_indices).present,
             last = p.tensor(&A::last_page_len).present;
  if (!table && !lens && !indptr && !indices && !last)
    return {"page_table", "absent", "page_table and seq_lens, or page_indptr, page_indices and last_page_len"};
  if ((table || lens) && (indptr || indices || last))
    return {indptr    ? "page_indptr"
            : indices ? "page_indices"
                      : "last_page_len",
            "given", table ? "none beside page_table, which takes seq_lens" : "none beside seq_lens, which takes page_table"};
  if (table && !lens) return {"seq_lens", "absent", "a tensor, as page_table is given"};
  if (lens && !table) return {"page_table", "absent", "a tensor, as seq_lens is given"};
  if (!table && !(indptr && indices && last))
    return {!indptr    ? "page_indptr"
            : !indices ? "page_indices"
                       : "last_page_len",
            "absent", "page_indptr, page_indices and last_page_len together"};
  return {};
}
Rejection one_token_each(const Problem& p) {
  if (several(p) || p[Axis::tokens] == p[Axis::batch]) return {};
  return {"tokens", p[Axis::tokens], "batch={}, one query token a request, or q_indptr", p[Axis::batch]};
}
Rejection longest_valid(const Problem& p) {
  if (p.attr(&A::max_seq_kv) < 0) return {"max_seq_kv", p.attr(&A::max_seq_kv), "0 or more"};
  return {};
}
Rejection page_size_valid(const Problem& p) {
  const i64 size = p[Axis::page_size];
  if (size >= 1 && size <= kMostKeys) return {};
  return {"page_size", size, "1 or more, at most {}", kMostKeys};
}
Rejection sizes_fit(const Problem& p) {  // grid indices and sums of units over the batch are 32-bit
  const i64 rows = product(max_of(p[Axis::batch], p[Axis::tokens]), p[Axis::heads_q]);
  if (rows >= i64(1) << 31)
    return {p[Axis::batch] >= p[Axis::tokens] ? "batch" : "tokens", max_of(p[Axis::batch], p[Axis::tokens]), "less than 2^31 / heads_q"};
  if (product(p[Axis::tokens], max_of<i64>(1, group_of(p))) >= kMostKeys)
    return {"tokens", p[Axis::tokens], "less than 2^30 / (heads_q / heads_kv)"};
  // At most eight tiles of rows see each key: their units of 64 keys, and one more a request, are fewer than 2^32
  if (table_tokens(p) > i64(1) << 33) return {"page_size", p[Axis::page_size], "a page table of at most 2^33 tokens"};
  return {};
}

/// How a head_dim lies in a multiprocessor's shared memory.
struct Residency {
  i32 warps, blocks, stages;
};
/// Two blocks a multiprocessor, so that one streams while the other changes its item, of 4 warps; else one; else 2 warps.
/// At least 3 stages: 2 tiles a warp in flight are 128 KB a multiprocessor for head_dim 128. An H200 needs about 33 KB
/// (4.35 TB/s / 132 * 1 us) to stream.
Residency residency_of(const DeviceInfo& device, i64 head_dim, i32 group_rows) {
  for (const i32 warps : {4, 2}) {
    for (const i32 blocks : {2, 1}) {
      const i32 room = smem_room(device, blocks) - 1024 - i32(group_rows * head_dim * 2);
      const i32 stages = min_of(6, room / i32(warps * 2 * kWarpTokens * head_dim * 2));
      if (stages >= 3) return {warps, blocks, stages};
    }
  }
  return {2, 1, 2};
}

/// Whether split KV has a kernel: its sums of one row tile of head_dim 512 would be 256 registers.
bool splits(const Problem& p) { return p[Axis::head_dim] <= 256; }

SplitKvConfig config_of(const Problem& p, const DeviceInfo& device) {
  const i32 group_rows = group_of(p) <= 8 && !several(p) ? 8 : 16;
  const Residency fit = residency_of(device, p[Axis::head_dim], group_rows);
  // A row that one chunk holds needs no parts and no second launch.
  const bool fixed = p.batch_invariant || visible_tokens(p, kFewRows) <= kChunkTokens;
  return {.dtype = product_dtype(p.dtype(&A::q)),
          .q_dtype = p.dtype(&A::q),
          .kv_dtype = p.dtype(&A::k_cache),
          .out_dtype = p.dtype(&A::out),
          .lens_dtype = lens_dtype(p),
          .head_dim = i32(p[Axis::head_dim]),
          .group_rows = group_rows,
          .copy_bytes = cache_alignment(p),
          .stages = fit.stages,
          .soft_cap = p.attr(&A::soft_cap) > 0,
          .bits = p.tensor(&A::mask).present,
          .scales = p.tensor(&A::q_scale).present || p.tensor(&A::k_scale).present,
          .places = places_of(p),
          .several = several(p),
          .fixed_chunks = fixed,
          .threads = fit.warps * 32,
          .min_blocks = fit.blocks};
}

/// How work is laid out, for both launches: from the problem and the Config.
struct Work {
  i64 items;                           ///< of a row
  i64 max_splits;                      ///< parts of an item, fixed_chunks
  i64 min_share;                       ///< least units of a block
  Region part_out, part_lse, leaders;  ///< of parts; none where each row is one
};

Work work_of(const Problem& p, const SplitKvConfig& c) {
  return {.items = p[Axis::heads_kv] * ceil_div<i64>(group_of(p), 16),
          .max_splits = min_of<i64>(kMostChunks, ceil_div<i64>(visible_tokens(p, kFewRows), kChunkTokens)),
          .min_share = c.fixed_chunks ? 1 : 2,  // two block tiles: one is shorter than the start of a block
          .part_out = {},
          .part_lse = {},
          .leaders = {}};
}

/// All resident blocks, unless there is less work than that at full capacity.
i64 blocks_of(const Problem& p, const SplitKvConfig& c, const Work& w, const DeviceInfo& device) {
  const i64 units = c.fixed_chunks ? w.max_splits : ceil_div<i64>(visible_tokens(p, kFewRows), c.threads / 32 * kWarpTokens);
  const i64 most = ceil_div(min_of(product(product(p[Axis::batch], w.items), units), i64(1) << 40), w.min_share);
  return min_of(most, min_of<i64>(kMostBlocks, i64(device.sms) * c.min_blocks));
}

/// The parts that `blocks` blocks leave to the second launch.
void add_parts(Plan& plan, const Problem& p, const SplitKvConfig& c, i64 blocks, Work& w) {
  const i64 rows = (c.fixed_chunks ? p[Axis::batch] * w.items * w.max_splits : 2 * blocks) * c.group_rows;
  w.part_out = plan.scratch("part_out", rows * c.head_dim * 4);
  w.part_lse = plan.scratch("part_lse", rows * 4);
  w.leaders = plan.scratch("leaders", c.fixed_chunks ? 0 : blocks * 16);
}

SplitKvParams split_params(const Call<A, Work>& c) {
  const A& a = c.args;
  const Problem& p = c.problem;
  SplitKvParams to{};
  set_paged_params(a, p, to);
  to.part_out = reinterpret_cast<float*>(c.region(c.choice.part_out));
  to.part_lse = reinterpret_cast<float*>(c.region(c.choice.part_lse));
  to.leaders = reinterpret_cast<i32*>(c.region(c.choice.leaders));
  to.head_tiles = i32(ceil_div<i64>(group_of(p), 16));
  to.max_splits = i32(c.choice.max_splits), to.min_share = i32(c.choice.min_share);
  to.q_pairs = p.tensor(&A::q).alignment >= 4;
  return to;
}

void plan_split_kv(Plan& plan, const Problem& p, const DeviceInfo& device) {
  const SplitKvConfig config = config_of(p, device);
  Work work = work_of(p, config);
  const i64 blocks = blocks_of(p, config, work, device);
  const bool parts = !config.fixed_chunks || work.max_splits > 1;
  if (parts) add_parts(plan, p, config, blocks, work);
  plan.launch<split_params>(split_kv, config, {.x = blocks, .smem = split_kv_smem(config).bytes, .pdl = p.pdl}, work, p.hooks);
  if (!parts) return;
  const CombineConfig merge{config.dtype,    config.out_dtype,    config.lens_dtype,
                            config.head_dim, config.group_rows,   config.places,
                            config.several,  config.fixed_chunks, 128};
  const i64 rows = (config.fixed_chunks ? p[Axis::batch] * work.items : blocks) * (config.several ? 16 : min_of<i64>(group_of(p), 16));
  plan.launch<split_params>(combine, merge, {.x = rows, .smem = combine_smem(merge).bytes, .pdl = 1}, work);
}

Rejection rejects(const Problem& p, const DeviceInfo& device) {
  if (splits(p) && !several(p)) return {};  // fits everywhere
  return prefill_rejects(paged_prefill_shape(p, splits(p) ? kFewRows : 0), device);
}

/// Both kernels where requests may have many rows or few: each takes its own, as lengths on the device say.
Plan plan_both(const Problem& p, const DeviceInfo& device, bool native) {
  Plan plan;
  const PagedPrefill prefill = several(p) || !splits(p) ? begin_prefill(plan, p, device, splits(p) ? kFewRows : 0, native) : PagedPrefill{};
  if (splits(p)) plan_split_kv(plan, p, device);
  if (several(p) || !splits(p)) add_prefill(plan, p, device, prefill);
  return plan;
}

Plan plan(const Problem& p, const DeviceInfo& device) { return plan_both(p, device, false); }

Rejection sm90_rejects(const Problem& p, const DeviceInfo& device) {
  if (!several(p)) return {"q_indptr", "absent", "query tokens of each request"};
  return paged_prefill_sm90_rejects(p, device, kFewRows);
}
Plan sm90_plan(const Problem& p, const DeviceInfo& device) { return plan_both(p, device, true); }

/// The table entries, K and V of keys that some query sees, q and out; a multiply-add for each in q . k and in p v.
Cost cost(const Problem& p, const A& a) {
  const double dim = double(p[Axis::head_dim]), heads = double(p[Axis::heads_q]);
  double keys = 0, pairs = 0, entries = 0, queries = 0;
  for (i64 b = 0; b < p[Axis::batch]; ++b) {
    const RefRequest r = paged_request(a, b);
    if (r.q_len == 0) continue;
    const i64 seen = std::max<i64>(0, ref_span(a, r, r.q_len - 1).last - ref_span(a, r, 0).first + 1);
    keys += double(seen), pairs += visible_pairs(a, r), queries += double(r.q_len);
    entries += double(ceil_div(seen, p[Axis::page_size])) + 1;
  }
  return {.bytes = 2 * keys * double(p[Axis::heads_kv]) * dim * size_of(p.dtype(&A::k_cache)) +
                   queries * heads * (dim * (size_of(p.dtype(&A::q)) + size_of(p.dtype(&A::out))) + (a.out_lse.present() ? 4 : 0)) +
                   entries * 4,
          .flops = 4 * pairs * heads * dim};
}

/// One rounding of each probability before it multiplies v and logits in f32 (of_magnitude: of sum p |v|, see ref.h), one of the result,
/// and one of each of out_scale and v_scale. out_lse has a budget of its own: what merges splits needs f32's precision; ex2 has 2^-22 and
/// lg2 2^-22 of up to 32, the sum's log2. Its magnitude is the largest sum |q k| of a logit, to which the logits' errors are relative.
Budget budget(const Problem& p) {
  const double wide = p[Axis::head_dim] > 256 ? 0x1p-13 : 0;  // twice the steps, twice the logits' error
  return {.of_value = unit_roundoff(p.dtype(&A::out)) + 0x1p-22,
          .of_magnitude = ref_probability_error(p.dtype(&A::q)) + wide,
          .absolute = 0x1p-18};
}

/// Shapes of the measured peers: length tokens in each request.
Case shape(i64 batch, i64 length, i64 heads_kv = 8, i64 gqa = 4, i64 page_size = 16) {
  return {{"batch", double(batch)}, {"capacity", double(length)}, {"length", double(length)},       {"heads_kv", double(heads_kv)},
          {"queries", -2},          {"gqa", double(gqa)},         {"page_size", double(page_size)}, {"head_dim", 128},
          {"spare_pages", 0}};
}
/// A step in which each request brings as many query tokens.
Case step(i64 batch, i64 queries, i64 length) {
  Case which = shape(batch, length);
  which["queries"] = double(queries), which["causal"] = 1, which["spare"] = 0;
  return which;
}

}  // namespace

QN_OP(paged, PagedArgs, "attention.paged")
    .doc(
        "out = softmax(sm_scale * q k^T) v of requests of any number of query tokens over a paged KV cache: prefill, decode, and batches that mix them")
    .source(
        "Dao et al., Flash-Decoding, 2023; Dao, FlashAttention-2, arXiv 2307.08691; Milakov and Gimelshein, Online normalizer calculation, arXiv 1805.02867")
    .in("q", &A::q, "tokens heads_q head_dim", {DType::bf16, DType::f16, DType::e4m3, DType::e5m2})
    .unfit({DataKind::infinite})
    .in("k_cache", &A::k_cache, "pages page_size heads_kv head_dim", like("q", {DType::e4m3, DType::e5m2}))
    .meaning("like q, or FP8 beside a q of 16 bits; HND, or K and V in one tensor, are strides; head_dim is dense")
    .unfit({DataKind::nan, DataKind::infinite})  // of keys and values they may reach other queries of the tile
    .in("v_cache", &A::v_cache, "pages page_size heads_kv head_dim", like("k_cache"))
    .unfit({DataKind::nan, DataKind::infinite})
    .in("page_table", &A::page_table, "batch max_pages", {DType::i32})
    .optional()
    .values(generated())
    .contents(each_below("pages").if_read())
    .meaning("dense form, with seq_lens; entries that no query needs are not read")
    .in("seq_lens", &A::seq_lens, "batch", {DType::i32, DType::i64})
    .optional()
    .values(generated())
    .contents(each_within("0", "min(max_pages*page_size,1073741824)").if_read())
    .meaning("keys of each request, this step's included; at most max_pages * page_size; not read of a request without query tokens")
    .in("page_indptr", &A::page_indptr, "batch+1", {DType::i32})
    .optional()
    .values(generated())
    .contents(each_within("0", "page_indices").ascending())
    .meaning("CSR form, with page_indices and last_page_len")
    .in("page_indices", &A::page_indices, "page_indices", {DType::i32})
    .optional()
    .values(generated())
    .contents(each_below("pages").if_read())
    .in("last_page_len", &A::last_page_len, "batch", {DType::i32})
    .optional()
    .values(generated())
    .contents(each_within("1", "page_size").if_read())
    .meaning("not read of a request without pages")
    .in("q_indptr", &A::q_indptr, "batch+1", {DType::i32})
    .optional()
    .values(generated())
    .contents(each_within("0", "tokens").ascending())
    .meaning("request b has the query tokens from q_indptr[b] to q_indptr[b + 1]; absent: one each")
    .with(state_masks_and_scales<A>)
    .out("out", &A::out, "tokens heads_q head_dim", like("q", {DType::bf16, DType::f16}))
    .meaning("bf16 or f16 where q is FP8")
    .out("out_lse", &A::out_lse, "tokens heads_q", {DType::f32})
    .optional()
    .strided()
    .within({.of_value = 0x1p-23, .of_magnitude = kLogitError, .absolute = 0x1p-13})
    .meaning("log of the sum of exp of the logits, sink included; -inf where a query sees nothing")
    .with(state_attributes<A>)
    .attr("max_seq_kv", &A::max_seq_kv)
    .meaning("most keys of a request, a promise: keys beyond are not read; 0: what the table has room for")
    .hooks(&A::hooks, &A::hook_params, &A::hook_tensors, kHookPoints)
    .require(head_dims)
    .require(heads)
    .require(dtypes)
    .require(page_size_valid)
    .require(one_table)
    .require(one_token_each)
    .require(numbers_valid<A>)
    .require(mask_whole<A>)
    .require(longest_valid)
    .require(sizes_fit)
    .rows(Axis::batch, Axis::tokens, &A::q_indptr)
    .token<keep_paged_token>()
    .variants({{"prefill_sm90", sm90_rejects, sm90_plan, nullptr}, {"portable", rejects, plan, nullptr}})
    .reference<paged_ref<double>, paged_ref<OrderFree>>()
    .generate<generate_paged>()
    .contract<paged_contract>()
    .broken_contents("beyond", 1)
    .cost<cost>()
    .budget(budget)
    .cases({{"sizes",
             {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14},
             "batch, heads_kv, gqa, queries and capacity, where they are not given"},
            {"batch", {}},
            {"heads_kv", {}},
            {"gqa", {}, "query heads of a head of the cache"},
            {"queries", {}, "query tokens of each request; -1: they differ; -2: one each, without q_indptr"},
            {"capacity", {}, "tokens that a request has room for"},
            {"length", {}, "tokens of each request, at most capacity; without it they differ"},
            {"spare_pages", {}, "pages that no request has; 2 without it"},
            {"head_dim", {128, 64, 80, 96, 112, 192, 256, 512}},
            {"page_size", {16, 1, 3, 7, 64, 128, 8, 24}},
            {"csr", {false, true}, "the page table is page_indptr, page_indices and last_page_len, else dense"},
            {"q.dtype", {DType::bf16, DType::f16}},
            {"fp8", {0, 1, 2, 3, 4}, "the caches are e4m3 (1) or e5m2 (2), q too (3, 4)"},
            {"scales", {0, 1, 2, 3}, "q_scale (1), k_scale and v_scale (2), all (3)"},
            {"seq_lens.dtype", {DType::i32, DType::i64}},
            {"beyond", {0, 1}, "some lengths are beyond what the table has room for; without bits"},
            {"spare", {1, 0}, "tokens of q that no request has (1)"},
            {"causal", {true, false}},
            {"bits", {0, 1}, "a packed mask"},
            {"k_cache.swap", {false, true}},
            {"v_cache.pad", {0, 8, 4, 2, 1}},
            {"q.shift", {0, 1}},
            {"out.pad", {0, 3}},
            {"out_lse.present", {true, false}},
            {"out_lse.transposed", {false, true}},
            {"lse_base", {0, 1}},
            {"sink.present", {false, true}},
            {"sink.dtype", {DType::f32, DType::bf16, DType::f16}},
            {"window_left", {-1, 0, 100, 700}},
            {"window_right", {-1, 0, 9}},
            {"sm_scale", {0, 1, -0.25, 3000, 1e6}},
            {"soft_cap", {0, 30, 1e-6, 1e4, 1e6}},
            {"out_scale", {1, -0.5}},
            {"max_seq_q", {0, 3}},
            {"batch_invariant", {false, true}}},
           derive_paged)
    .bench({shape(1, 8192), shape(16, 1024), shape(64, 1024), shape(64, 8192), shape(64, 8192, 8, 4, 64), shape(128, 8192),
            shape(16, 32768), shape(64, 8192, 8, 8), shape(64, 2048, 32, 1), shape(256, 1024), shape(1, 131072), step(64, 4, 8192),
            step(1, 2048, 4096), step(8, 512, 4096)});

}  // namespace quern::attention
