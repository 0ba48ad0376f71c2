// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/attention/decode_paged.h"

#include <cmath>

#include "quern/ops/attention/decode_paged_ref.h"
#include "quern/ops/attention/decode_paged_spec.h"
#include "quern/ops/attention/decode_paged_values.h"

namespace quern::attention {

namespace {

using A = DecodePagedArgs;

const jit::Kernel<DecodePagedConfig, DecodePagedParams> attend{"quern/ops/attention/decode_paged.cuh", "decode_paged",
                                                               "quern::attention::NoHooks"};
const jit::Kernel<DecodePagedCombineConfig, DecodePagedParams> combine{"quern/ops/attention/decode_paged_combine.cuh",
                                                                       "decode_paged_combine"};

constexpr i64 kMostTokens = i64(1) << 30;  // of a request: positions and their sums with a tile fit an i32

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
Rejection one_table(const Problem& p) {
  const int have_dense = p.tensor(&A::page_table).present + p.tensor(&A::seq_lens).present;
  const int have_csr = p.tensor(&A::page_indptr).present + p.tensor(&A::page_indices).present + p.tensor(&A::last_page_len).present;
  if (have_dense == 2 && have_csr == 0) return {};
  if (have_dense == 0 && have_csr == 3) return {};
  return {"page table", have_dense + have_csr,
          "tensors of exactly one form: page_table and seq_lens, or page_indptr, page_indices and last_page_len"};
}
Rejection window_valid(const Problem& p) {
  if (p.attr(&A::window_left) >= -1) return {};
  return {"window_left", p.attr(&A::window_left), "-1 or more"};
}
Rejection cap_valid(const Problem& p) {
  if (p.attr(&A::soft_cap) >= 0 && std::isfinite(p.attr(&A::soft_cap))) return {};
  return {"soft_cap", i64(-1), "0 or a positive number"};
}
Rejection longest_valid(const Problem& p) {
  if (p.attr(&A::max_seq_kv) >= 0) return {};
  return {"max_seq_kv", p.attr(&A::max_seq_kv), "0 or more"};
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
Residency residency_of(const DeviceInfo& device, i64 head_dim) {
  constexpr i32 kReserved = 1024;  // of each block, by the system
  for (const i32 warps : {4, 2}) {
    for (const i32 blocks : {2, 1}) {
      const i32 room = min_of(device.smem_block, device.smem_sm / blocks - kReserved) - 1024;
      const i32 stages = min_of(6, room / i32(warps * 2 * kWarpTokens * head_dim * 2));
      if (stages >= 3) return {warps, blocks, stages};
    }
  }
  return {2, 1, 2};
}

/// Sizes of a call.
struct Shape {
  DecodePagedConfig config;
  i64 items;       ///< of a row
  i64 max_splits;  ///< parts of an item, fixed_chunks
  i64 min_share;
  i64 blocks;      ///< of the first launch
  i64 slots;       ///< parts in the workspace
  i64 lse_offset, leaders_offset, workspace;
};

i64 group_of(const Problem& p) { return p[Axis::heads_q] / max_of<i64>(1, p[Axis::heads_kv]); }

Shape shape_of(const Problem& p, const DeviceInfo& device) {
  Shape s{};
  const i64 window = p.attr(&A::window_left);
  const i64 visible = max_of<i64>(1, window < 0 ? capacity(p) : min_of(capacity(p), window + 1));
  const i32 alignment = min_of(p.tensor(&A::k_cache).alignment, p.tensor(&A::v_cache).alignment);
  const Residency fit = residency_of(device, p[Axis::head_dim]);
  // A row that one chunk holds needs no parts and no second launch.
  const bool fixed = p.batch_invariant || visible <= kChunkTokens;
  s.config = {p.dtype(&A::q), i32(p[Axis::head_dim]), group_of(p) <= 8 ? 8 : 16, alignment, fit.stages,
              p.attr(&A::soft_cap) > 0, fixed, fit.warps * 32, fit.blocks};
  s.items = p[Axis::heads_kv] * ceil_div<i64>(group_of(p), 16);
  s.max_splits = min_of<i64>(kMostChunks, ceil_div<i64>(visible, kChunkTokens));
  // Two block tiles: fewer are shorter than the start of a block.
  s.min_share = fixed ? 1 : 2;
  const i64 units = fixed ? s.max_splits : ceil_div<i64>(visible, fit.warps * kWarpTokens);
  const i64 all = product(product(p[Axis::batch], s.items), units);
  s.blocks = min_of(ceil_div(min_of(all, i64(1) << 40), s.min_share), min_of<i64>(kMostBlocks, i64(device.sms) * fit.blocks));
  if (fixed && s.max_splits == 1) return s;
  s.slots = fixed ? p[Axis::batch] * s.items * s.max_splits : 2 * s.blocks;
  const i64 rows = s.slots * s.config.group_rows;
  s.lse_offset = round_up<i64>(rows * p[Axis::head_dim] * 4, 256);
  s.leaders_offset = round_up<i64>(s.lse_offset + rows * 4, 256);
  s.workspace = s.leaders_offset + (fixed ? 0 : s.blocks * 16);
  return s;
}

}  // namespace

static DecodePagedParams params(const Call<A>& c) {
  const A& a = c.args;
  const Problem& p = c.problem;
  const Shape s = shape_of(p, *c.plan.device);
  const bool csr = a.page_indptr.present();
  DecodePagedParams to{};
  to.out = a.out.data;
  to.out_lse = static_cast<float*>(a.out_lse.data);
  to.q = a.q.data;
  to.k_cache = static_cast<const u8*>(a.k_cache.data);
  to.v_cache = static_cast<const u8*>(a.v_cache.data);
  to.page_table = static_cast<const i32*>(csr ? a.page_indices.data : a.page_table.data);
  to.seq_lens = static_cast<const i32*>(a.seq_lens.data);
  to.page_indptr = static_cast<const i32*>(a.page_indptr.data);
  to.last_page_len = static_cast<const i32*>(a.last_page_len.data);
  to.sink = static_cast<const float*>(a.sink.data);
  return to;
}

}  // namespace quern::attention
