// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/attention/prefill/plan.h"

namespace quern::attention {

i32 smem_room(const DeviceInfo& device, i32 blocks) {
  constexpr i32 kReserved = 1024;  // of each block, by the system
  return min_of(device.smem_block, device.smem_sm / blocks - kReserved);
}

namespace {

/// Two row tiles a warp halve the reads of K and V from shared memory, which bound the kernel with one: mma.sync of a row tile takes as
/// long as ldmatrix of its B operand. Their sums and logits fill 192 of 255 registers at head_dim_v 128. So wider heads have one, and calls
/// that do more with a logit or an element than scale it: these spilled, as did q and k of 112 beside v of 128.
bool has_two_row_tiles(const PrefillShape& s) {
  const i64 group = group_of(s.heads_q, s.heads_kv);
  const bool few = s.max_seq_q > 0 && s.max_seq_q * group <= 64;  // not from tokens: each size of a step would have kernels of its own
  const bool spilled = s.head_dim == 112 && s.head_dim_v > 112;
  return s.head_dim_v <= 128 && s.head_dim <= 192 && !spilled && !few && !s.soft_cap && !s.bits && !s.hooks && s.kv == s.q && !is_fp8(s.kv);
}

}  // namespace

PrefillConfig prefill_config(const PrefillShape& s, const DeviceInfo& device) {
  PrefillConfig c{.dtype = product_dtype(s.q),
                  .q_dtype = s.q,
                  .kv_dtype = s.kv,
                  .out_dtype = s.out,
                  .lens_dtype = s.lens,
                  .head_dim = i32(s.head_dim),
                  .head_dim_v = i32(s.head_dim_v),
                  .row_tiles = has_two_row_tiles(s) ? 2 : 1,
                  .column_parts = s.head_dim_v > 256 ? 2 : 1,
                  .tile_tokens = 64,
                  .copy_bytes = s.alignment,
                  .soft_cap = s.soft_cap,
                  .bits = s.bits,
                  .places = s.places,
                  .leave_few_rows = s.leave_few_rows,
                  .threads = 128,
                  .min_blocks = 1};
  // The tile of keys decides the order of sums, so it follows from head_dim and the device alone
  for (const i32 tokens : {64, 32, 16}) {
    PrefillConfig one = c;
    one.row_tiles = 1;
    c.tile_tokens = one.tile_tokens = tokens;
    if (s.head_dim > 256 && tokens > 32) continue;  // 64 keys of head_dim 512 are 128 KB
    if (prefill_smem(one).bytes > smem_room(device, 1)) continue;
    if (prefill_smem(c).bytes > smem_room(device, 1)) c.row_tiles = 1;
    c.min_blocks = prefill_smem(c).bytes <= smem_room(device, 2) ? 2 : 1;
    return c;
  }
  c.threads = 0;
  return c;
}

Rejection prefill_rejects(const PrefillShape& shape, const DeviceInfo& device) {
  const PrefillConfig c = prefill_config(shape, device);
  if (c.threads != 0) return {};
  PrefillConfig least = c;
  least.threads = 128;
  return {"shared memory of a block", smem_room(device, 1), "{} bytes", prefill_smem(least).bytes};
}

PrefillWork prefill_work(const PrefillShape& s, const PrefillConfig& c) {
  const i64 group = group_of(s.heads_q, s.heads_kv), rows = block_rows(c);
  i64 requests = min_of(s.batch, s.tokens);
  if (s.leave_few_rows > 0) requests = min_of(requests, min_of(s.tokens / 2, s.tokens * group / (s.leave_few_rows + 1)));
  return {s.tokens * group / rows + requests};  // the last tile of each request may be all but empty
}

Rejection head_dims_fit(i64 head_dim, i64 head_dim_v, i64 most) {
  const auto fits = [&](i64 d) { return d % 16 == 0 && d >= 16 && (d <= 256 || d == most); };
  const char* text = most > 256 ? "a multiple of 16 from 16 to 256, or 512" : "a multiple of 16 from 16 to 256";
  if (!fits(head_dim)) return {"head_dim", head_dim, text};
  if (!fits(head_dim_v)) return {"head_dim_v", head_dim_v, text};
  return {};
}

}  // namespace quern::attention
