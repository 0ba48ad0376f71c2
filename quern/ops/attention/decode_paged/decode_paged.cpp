// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/attention/decode_paged.h"

#include <cmath>
#include <cstdint>

#include "quern/ops/attention/decode_paged/contract.h"
#include "quern/ops/attention/decode_paged/ref.h"
#include "quern/ops/attention/decode_paged/spec.h"
#include "quern/ops/attention/decode_paged/values.h"

namespace quern::attention {

namespace {

using A = DecodePagedArgs;

const jit::Kernel<DecodePagedConfig, DecodePagedParams> attend{"quern/ops/attention/decode_paged/kernel.cuh", "decode_paged",
                                                               &kHookPoints};
const jit::Kernel<DecodePagedCombineConfig, DecodePagedParams> combine{"quern/ops/attention/decode_paged/combine.cuh",
                                                                       "decode_paged_combine"};

i64 product(i64 a, i64 b) {
  i64 c;
  return __builtin_mul_overflow(a, b, &c) ? INT64_MAX : c;
}

bool dense(const Problem& p) { return p.tensor(&A::page_table).present != 0; }

/// Tokens that the whole page table can name.
i64 table_tokens(const Problem& p) {
  return product(dense(p) ? product(p[Axis::batch], p[Axis::max_pages]) : p[Axis::page_indices], p[Axis::page_size]);
}

/// Tokens of the longest request.
i64 capacity(const Problem& p) {
  i64 tokens = product(dense(p) ? p[Axis::max_pages] : p[Axis::page_indices], p[Axis::page_size]);
  if (!dense(p) && p.attr(&A::max_seq_kv) > 0) tokens = min_of(tokens, p.attr(&A::max_seq_kv));
  return min_of(tokens, kMostTokens);
}

Rejection heads_divide(const Problem& p) {
  const i64 q = p[Axis::heads_q], kv = p[Axis::heads_kv];
  if (kv > 0 ? q % kv == 0 : q == 0) return {};
  return {"heads_q", q, "a multiple of heads_kv={}", kv};
}
Rejection head_dim_fits(const Problem& p) {
  const i64 d = p[Axis::head_dim];
  if (d % 16 == 0 && d >= 16 && d <= 256) return {};
  return {"head_dim", d, "a multiple of 16 from 16 to 256"};
}
/// Names the tensor that is missing from its form, or that is given beside the other form.
Rejection one_table(const Problem& p) {
  const bool table = p.tensor(&A::page_table).present, lens = p.tensor(&A::seq_lens).present;
  const bool indptr = p.tensor(&A::page_indptr).present, indices = p.tensor(&A::page_indices).present, last = p.tensor(&A::last_page_len).present;
  if (!table && !lens && !indptr && !indices && !last)
    return {"page_table", "absent", "page_table and seq_lens, or page_indptr, page_indices and last_page_len"};
  if ((table || lens) && (indptr || indices || last))
    return {indptr ? "page_indptr" : indices ? "page_indices" : "last_page_len", "given", table ? "none beside page_table, which takes seq_lens" : "none beside seq_lens, which takes page_table"};
  if (table && !lens) return {"seq_lens", "absent", "a tensor, as page_table is given"};
  if (lens && !table) return {"page_table", "absent", "a tensor, as seq_lens is given"};
  if (!table && !(indptr && indices && last))
    return {!indptr ? "page_indptr" : !indices ? "page_indices" : "last_page_len", "absent", "page_indptr, page_indices and last_page_len together"};
  return {};
}
Rejection window_valid(const Problem& p) {
  if (p.attr(&A::window_left) >= -1) return {};
  return {"window_left", p.attr(&A::window_left), "-1 or more"};
}
/// A million keeps sm_scale / soft_cap, and logits of any f16, far from f32's ends.
Rejection scale_valid(const Problem& p) {
  const float scale = p.attr(&A::sm_scale);
  if (scale >= -1e6f && scale <= 1e6f) return {};
  return {"sm_scale", scale, "a number from -1e6 to 1e6"};
}
Rejection cap_valid(const Problem& p) {
  const float cap = p.attr(&A::soft_cap);
  if (cap == 0 || (cap >= 1e-6f && cap <= 1e6f)) return {};
  return {"soft_cap", cap, "0 or a number from 1e-6 to 1e6"};
}
Rejection longest_valid(const Problem& p) {
  if (p.attr(&A::max_seq_kv) < 0) return {"max_seq_kv", p.attr(&A::max_seq_kv), "0 or more"};
  if (dense(p) && p.attr(&A::max_seq_kv) != 0) return {"max_seq_kv", p.attr(&A::max_seq_kv), "0 beside page_table, whose columns are the capacity"};
  return {};
}
Rejection page_size_valid(const Problem& p) {
  const i64 size = p[Axis::page_size];
  if (size >= 1 && size <= kMostTokens) return {};
  return {"page_size", size, "1 or more, at most {}", kMostTokens};
}
Rejection sizes_fit(const Problem& p) {  // grid indices and sums of units over the batch are 32-bit
  const i64 rows = product(p[Axis::batch], p[Axis::heads_q]);
  if (rows >= i64(1) << 31) return {"batch", p[Axis::batch], "less than 2^31 / heads_q"};
  if (table_tokens(p) > i64(1) << 36) return {"page_size", p[Axis::page_size], "a page table of at most 2^36 tokens"};
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
  constexpr i32 kReserved = 1024;  // of each block, by the system
  for (const i32 warps : {4, 2}) {
    for (const i32 blocks : {2, 1}) {
      const i32 room = min_of(device.smem_block, device.smem_sm / blocks - kReserved) - 1024 - i32(group_rows * head_dim * 2);
      const i32 stages = min_of(6, room / i32(warps * 2 * kWarpTokens * head_dim * 2));
      if (stages >= 3) return {warps, blocks, stages};
    }
  }
  return {2, 1, 2};
}

i64 group_of(const Problem& p) { return p[Axis::heads_q] / max_of<i64>(1, p[Axis::heads_kv]); }

/// Most tokens that the query of a request can see, at least 1.
i64 visible_tokens(const Problem& p) {
  const i64 window = p.attr(&A::window_left);
  return max_of<i64>(1, window < 0 ? capacity(p) : min_of(capacity(p), window + 1));
}

DecodePagedConfig config_of(const Problem& p, const DeviceInfo& device) {
  const i32 group_rows = group_of(p) <= 8 ? 8 : 16;
  const Residency fit = residency_of(device, p[Axis::head_dim], group_rows);
  // A row that one chunk holds needs no parts and no second launch.
  const bool fixed = p.batch_invariant || visible_tokens(p) <= kChunkTokens;
  return {.dtype = p.dtype(&A::q),
          .head_dim = i32(p[Axis::head_dim]),
          .group_rows = group_rows,
          .copy_bytes = min_of(p.tensor(&A::k_cache).alignment, p.tensor(&A::v_cache).alignment),
          .stages = fit.stages,
          .soft_cap = p.attr(&A::soft_cap) > 0,
          .fixed_chunks = fixed,
          .threads = fit.warps * 32,
          .min_blocks = fit.blocks};
}

/// How work is laid out, for both launches: from the problem and the Config.
struct Work {
  i64 items;       ///< of a row
  i64 max_splits;  ///< parts of an item, fixed_chunks
  i64 min_share;   ///< least units of a block
  Region part_out, part_lse, leaders;  ///< of parts; none where each row is one
};

Work work_of(const Problem& p, const DecodePagedConfig& c) {
  return {.items = p[Axis::heads_kv] * ceil_div<i64>(group_of(p), 16),
          .max_splits = min_of<i64>(kMostChunks, ceil_div<i64>(visible_tokens(p), kChunkTokens)),
          .min_share = c.fixed_chunks ? 1 : 2,  // two block tiles: one is shorter than the start of a block
          .part_out = {}, .part_lse = {}, .leaders = {}};
}

/// All resident blocks, unless there is less work than that at full capacity.
i64 blocks_of(const Problem& p, const DecodePagedConfig& c, const Work& w, const DeviceInfo& device) {
  const i64 units = c.fixed_chunks ? w.max_splits : ceil_div<i64>(visible_tokens(p), c.threads / 32 * kWarpTokens);
  const i64 most = ceil_div(min_of(product(product(p[Axis::batch], w.items), units), i64(1) << 40), w.min_share);
  return min_of(most, min_of<i64>(kMostBlocks, i64(device.sms) * c.min_blocks));
}

/// The parts that `blocks` blocks leave to the second launch.
void add_parts(Plan& plan, const Problem& p, const DecodePagedConfig& c, i64 blocks, Work& w) {
  const i64 rows = (c.fixed_chunks ? p[Axis::batch] * w.items * w.max_splits : 2 * blocks) * c.group_rows;
  w.part_out = plan.scratch("part_out", rows * c.head_dim * 4);
  w.part_lse = plan.scratch("part_lse", rows * 4);
  w.leaders = plan.scratch("leaders", c.fixed_chunks ? 0 : blocks * 16);
}

void set_strides(const A& a, DecodePagedParams& to) {
  to.out_row = a.out.strides[0], to.out_head = a.out.strides[1];
  to.lse_row = a.out_lse.strides[0];
  to.q_row = a.q.strides[0], to.q_head = a.q.strides[1];
  to.table_row = a.page_table.strides[0];
  to.k_page = 2 * a.k_cache.strides[0], to.k_token = 2 * a.k_cache.strides[1], to.k_head = 2 * a.k_cache.strides[2];
  to.v_page = 2 * a.v_cache.strides[0], to.v_token = 2 * a.v_cache.strides[1], to.v_head = 2 * a.v_cache.strides[2];
}

void set_pointers(const Call<A, Work>& c, DecodePagedParams& to) {
  const A& a = c.args;
  to.out = a.out.data;
  to.out_lse = static_cast<float*>(a.out_lse.data);
  to.q = a.q.data;
  to.k_cache = static_cast<const u8*>(a.k_cache.data);
  to.v_cache = static_cast<const u8*>(a.v_cache.data);
  to.page_table = static_cast<const i32*>(a.page_indptr.present() ? a.page_indices.data : a.page_table.data);
  to.seq_lens = static_cast<const i32*>(a.seq_lens.data);
  to.page_indptr = static_cast<const i32*>(a.page_indptr.data);
  to.last_page_len = static_cast<const i32*>(a.last_page_len.data);
  to.sink = static_cast<const float*>(a.sink.data);
  to.part_out = reinterpret_cast<float*>(c.region(c.choice.part_out));
  to.part_lse = reinterpret_cast<float*>(c.region(c.choice.part_lse));
  to.leaders = reinterpret_cast<i32*>(c.region(c.choice.leaders));
}

DecodePagedParams params(const Call<A, Work>& c) {
  const A& a = c.args;
  const Problem& p = c.problem;
  DecodePagedParams to{};
  set_pointers(c, to);
  set_strides(a, to);
  to.batch = p[Axis::batch];
  to.capacity = i32(capacity(p));
  to.heads_q = i32(p[Axis::heads_q]), to.heads_kv = i32(p[Axis::heads_kv]);
  to.group = i32(group_of(p)), to.head_tiles = i32(ceil_div<i64>(group_of(p), 16));
  to.max_splits = i32(c.choice.max_splits), to.min_share = i32(c.choice.min_share);
  to.window_left = a.window_left;
  to.q_pairs = p.tensor(&A::q).alignment >= 4, to.out_pairs = p.tensor(&A::out).alignment >= 4;
  to.scale = a.sm_scale != 0 ? a.sm_scale : float(1 / std::sqrt(double(p[Axis::head_dim])));
  to.soft_cap = a.soft_cap;
  if (a.soft_cap > 0) to.scale /= a.soft_cap;
  to.page_size = divisor(u32(p[Axis::page_size]));
  std::memcpy(to.hook_params, a.hook_params, sizeof to.hook_params);
  set_hook_tensors(a.hook_tensors, to.hook_tensors);
  return to;
}

Plan plan(const Problem& p, const DeviceInfo& device) {
  const DecodePagedConfig config = config_of(p, device);
  Work work = work_of(p, config);
  const i64 blocks = blocks_of(p, config, work, device);
  const bool parts = !config.fixed_chunks || work.max_splits > 1;
  Plan plan;
  if (parts) add_parts(plan, p, config, blocks, work);
  plan.launch<params>(attend, config, {.x = blocks, .smem = decode_paged_smem(config).bytes, .pdl = p.pdl}, work, p.hooks);
  if (!parts) return plan;
  const DecodePagedCombineConfig merge{config.dtype, config.head_dim, config.group_rows, config.fixed_chunks, 128};
  const i64 rows = config.fixed_chunks ? p[Axis::batch] * p[Axis::heads_q] : blocks * min_of<i64>(group_of(p), 16);
  plan.launch<params>(combine, merge, {.x = rows, .smem = decode_paged_combine_smem(merge).bytes, .pdl = 1}, work);
  return plan;
}

/// The table entries, K and V of visible tokens, q and out; a multiply-add for each in q . k and in p v.
Cost cost(const Problem& p, const A& a) {
  const double dim = double(p[Axis::head_dim]), rows = double(p[Axis::batch]) * double(p[Axis::heads_q]);
  double tokens = 0, entries = 0;
  for (i64 b = 0; b < p[Axis::batch]; ++b) {
    const i64 length = request_pages(a, b).length;
    tokens += double(a.window_left < 0 ? length : min_of<i64>(length, i64(a.window_left) + 1));
    entries += double(ceil_div(length, p[Axis::page_size])) + 1;
  }
  return {.bytes = tokens * double(p[Axis::heads_kv]) * dim * 2 * 2 + rows * dim * 2 * 2 + (a.out_lse.present() ? rows * 4 : 0) + entries * 4,
          .flops = 4 * tokens * double(p[Axis::heads_q]) * dim};
}

/// One rounding of each probability before it multiplies v (of_magnitude: of sum p |v|), one of the result; logits in f32 are
/// within 2^-15 of log2 for |logit| <= 64, and beyond logits of 32 the reference adds to the magnitude what the logits' errors move. out_lse has
/// its own budget: what merges splits needs f32's precision; exp2 has 2^-22 and log2 2^-22 of up to 32, the sum's log2. Its magnitude is the
/// largest sum |q k| of a logit, to which the logits' errors are relative: 16 steps of the MMA with 2^-23 each, the soft cap's tanh 2^-20.9,
/// three products 2^-24 each: below 2^-18.
Budget budget(const Problem& p) {
  const double rounding = unit_roundoff(p.dtype(&A::q));
  return {.of_value = rounding, .of_magnitude = probability_error(p.dtype(&A::q)), .absolute = 0x1p-18};
}

constexpr std::initializer_list<DType> kDTypes = {DType::bf16, DType::f16};

/// Shapes of the measured peers: length tokens in each request.
Case shape(i64 batch, i64 length, i64 heads_kv = 8, i64 gqa = 4, i64 page_size = 16) {
  return {{"batch", double(batch)},       {"capacity", double(length)},   {"length", double(length)}, {"heads_kv", double(heads_kv)},
          {"gqa", double(gqa)},           {"page_size", double(page_size)}, {"head_dim", 128},        {"spare_pages", 0}};
}

}  // namespace

QN_OP(decode_paged, DecodePagedArgs, "attention.decode_paged")
    .doc("out = softmax(sm_scale * q k^T) v for one query token a request over a paged KV cache, by split KV")
    .source("Dao et al., Flash-Decoding, 2023; Milakov and Gimelshein, Online normalizer calculation, arXiv 1805.02867")
    .in("q", &A::q, "batch heads_q head_dim", kDTypes)
    .in("k_cache", &A::k_cache, "pages page_size heads_kv head_dim", like("q"))
    .meaning("HND, or K and V in one tensor, are strides; head_dim is dense")
    .in("v_cache", &A::v_cache, "pages page_size heads_kv head_dim", like("q"))
    .in("page_table", &A::page_table, "batch max_pages", {DType::i32})
    .optional()
    .values(generated())
    .contents(each_below("pages").if_read())
    .meaning("dense form, with seq_lens; entries that no token needs are not read")
    .in("seq_lens", &A::seq_lens, "batch", {DType::i32})
    .optional()
    .values(generated())
    .contents(each_within("0", "min(max_pages*page_size,1073741824)"))
    .meaning("tokens of each request; cut to [0, max_pages * page_size]")
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
    .in("sink", &A::sink, "heads_q", {DType::f32})
    .optional()
    .meaning("a logit in natural units that joins the denominator")
    .out("out", &A::out, "batch heads_q head_dim", like("q"))
    .out("out_lse", &A::out_lse, "batch heads_q", {DType::f32})
    .optional()
    .within({.of_magnitude = kLogitError, .absolute = 0x1p-13})
    .meaning("log2 of the sum of exp of the logits, sink included; -inf for a request without tokens")
    .attr("sm_scale", &A::sm_scale)
    .meaning("factor of logits, from -1e6 to 1e6; 0: 1 / sqrt(head_dim)")
    .attr("window_left", &A::window_left)
    .meaning("tokens before the last one that are visible; -1: all")
    .attr("soft_cap", &A::soft_cap)
    .meaning("logit = soft_cap * tanh(logit / soft_cap), from 1e-6 to 1e6; 0: none")
    .attr("max_seq_kv", &A::max_seq_kv)
    .meaning("CSR form: the longest request; 0: page_indices * page_size")
    .hooks(&A::hooks, &A::hook_params, &A::hook_tensors, kHookPoints)
    .require(head_dim_fits)
    .require(heads_divide)
    .require(page_size_valid)
    .require(one_table)
    .require(window_valid)
    .require(scale_valid)
    .require(cap_valid)
    .require(longest_valid)
    .require(sizes_fit)
    .rows(Axis::batch)
    .plan(plan)
    .reference<decode_paged_ref<double>, decode_paged_ref<OrderFree>>()
    .generate<generate_decode_paged>()
    .contract<decode_paged_contract>()
    .cost<cost>()
    .budget(budget)
    .cases({{"batch", {3, 1, 0, 7}},
            {"heads_kv", {2, 1, 5}},
            {"gqa", {4, 1, 7, 8, 20}, "query heads of a head of the cache"},
            {"head_dim", {128, 64, 80, 96, 160, 192, 256}},
            {"page_size", {16, 1, 3, 7, 64}},
            {"capacity", {600, 200, 1, 1500}, "tokens that a request has room for"},
            {"length", {}, "tokens of each request, at most capacity; without it they differ"},
            {"spare_pages", {}, "pages that no request has; 2 without it"},
            {"csr", {false, true}, "the page table is page_indptr, page_indices and last_page_len, else dense"},
            {"q.dtype", {DType::bf16, DType::f16}},
            {"k_cache.swap", {false, true}},
            {"v_cache.pad", {0, 8, 4, 2, 1}},
            {"q.shift", {0, 1}},
            {"out.pad", {0, 3}},
            {"out_lse.present", {true, false}},
            {"sink.present", {false, true}},
            {"window_left", {-1, 0, 100, 700}},
            {"sm_scale", {0, 1, -0.25, 3000, 1e6}},
            {"soft_cap", {0, 30, 1e-6, 1e4, 1e6}},
            {"batch_invariant", {false, true}}},
           derive_decode_paged)
    .bench({shape(1, 8192), shape(16, 1024), shape(64, 1024), shape(64, 8192), shape(64, 8192, 8, 4, 64), shape(128, 8192),
            shape(16, 32768), shape(64, 8192, 8, 8), shape(64, 2048, 32, 1), shape(256, 1024), shape(1, 131072)});

}  // namespace quern::attention
