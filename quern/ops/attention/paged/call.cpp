// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/attention/paged/call.h"

#include "quern/ops/attention/paged/ref.h"

namespace quern::attention {

using A = PagedArgs;

i64 table_tokens(const Problem& p) {
  return product(dense(p) ? product(p[Axis::batch], p[Axis::max_pages]) : p[Axis::page_indices], p[Axis::page_size]);
}

i64 capacity(const Problem& p) {
  if (p[Axis::pages] == 0) return 0;
  i64 tokens = product(dense(p) ? p[Axis::max_pages] : p[Axis::page_indices], p[Axis::page_size]);
  if (p.attr(&A::max_seq_kv) > 0) tokens = min_of(tokens, p.attr(&A::max_seq_kv));
  return min_of(tokens, kMostKeys);
}

i64 visible_tokens(const Problem& p, i32 few_rows) {
  const i64 window = p.attr(&A::window_left), queries = several(p) ? few_rows : 1;
  return max_of<i64>(1, window < 0 ? capacity(p) : min_of(capacity(p), window + queries));
}

void set_paged_params(const A& a, const Problem& p, AttendParams& to) {
  set_attend_params(a, p, to);
  const bool csr = !dense(p);
  to.k = static_cast<const u8*>(a.k_cache.data), to.v = static_cast<const u8*>(a.v_cache.data);
  const i64 size = size_of(a.k_cache.dtype);
  to.k_page = size * a.k_cache.strides[0], to.k_token = size * a.k_cache.strides[1], to.k_head = size * a.k_cache.strides[2];
  to.v_page = size * a.v_cache.strides[0], to.v_token = size * a.v_cache.strides[1], to.v_head = size * a.v_cache.strides[2];
  to.kv_indptr = static_cast<const i32*>(a.page_indptr.data);
  to.seq_lens = a.seq_lens.data;
  to.pages = static_cast<const i32*>(csr ? a.page_indices.data : a.page_table.data);
  to.last_page_len = static_cast<const i32*>(a.last_page_len.data);
  to.table_row = csr ? p[Axis::page_indices] : a.page_table.strides[0];
  to.rows_of_keys = p[Axis::pages], to.last_page = u32(max_of<i64>(1, min_of<i64>(p[Axis::pages], i64(1) << 31)) - 1),
  to.capacity = i32(capacity(p));
  to.page_size = divisor(u32(p[Axis::page_size]));
}

PrefillShape paged_prefill_shape(const Problem& p, i32 few_rows) {
  PrefillShape shape = prefill_shape<A>(p, p.tensor(&A::k_cache), p.tensor(&A::v_cache), p[Axis::head_dim], capacity(p));
  shape.places = places_of(p), shape.lens = lens_dtype(p), shape.leave_few_rows = few_rows;
  if (!several(p)) shape.max_seq_q = 1;
  return shape;
}

static PrefillParams prefill_params(const Call<A, PrefillWork>& c) {
  PrefillParams to{};
  set_paged_params(c.args, c.problem, to);
  to.row_tiles = c.choice.row_tiles;
  return to;
}

static PrefillSm90Params prefill_sm90_params(const Call<A, PrefillSm90Work>& c) {
  PrefillSm90Params to{};
  set_paged_params(c.args, c.problem, to);
  set_prefill_sm90_params(c, c.args.k_cache, c.args.v_cache, c.problem[Axis::page_size], to);
  return to;
}

Rejection paged_prefill_sm90_rejects(const Problem& p, const DeviceInfo& device, i32 few_rows) {
  if (p[Axis::pages] >= i64(1) << 31) return {"pages", p[Axis::pages], "less than 2^31"};
  return prefill_sm90_rejects(paged_prefill_shape(p, few_rows), device, p.tensor(&A::k_cache), p.tensor(&A::v_cache));
}

PagedPrefill begin_prefill(Plan& plan, const Problem& p, const DeviceInfo& device, i32 few_rows, bool native) {
  PagedPrefill prefill{paged_prefill_shape(p, few_rows), native && !paged_prefill_sm90_rejects(p, device, few_rows), {}};
  if (prefill.native) prefill.sm90 = begin_prefill_sm90(plan, prefill.shape, device, p[Axis::page_size]);
  return prefill;
}

void add_prefill(Plan& plan, const Problem& p, const DeviceInfo& device, const PagedPrefill& prefill) {
  const PrefillShape& shape = prefill.shape;
  const i32 pdl = shape.leave_few_rows > 0 ? 1 : p.pdl;
  if (prefill.native) {
    add_prefill_sm90<prefill_sm90_params>(plan, prefill.sm90, pdl, p.hooks);
    return;
  }
  const PrefillConfig config = prefill_config(shape, device);
  const PrefillWork work = prefill_work(shape, config);
  plan.launch<prefill_params>(prefill_kernel, config, {.x = prefill_blocks(shape, work), .smem = prefill_smem(config).bytes, .pdl = pdl},
                              work, p.hooks);
}

}  // namespace quern::attention
