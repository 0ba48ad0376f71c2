// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/attention/prefill_sm90/plan.h"

namespace quern::attention {

namespace {

constexpr i32 kStages = 2;

/// Three warpgroups of 64 rows where their sums, logits and probabilities fit into 152 registers: each read of K and V from shared memory
/// serves half as many rows more.
i32 warpgroups_of(const PrefillShape& s) { return s.head_dim <= 64 && s.head_dim_v <= 64 ? 3 : 2; }

/// Pages whose rows come one by one. Tiles of keys are a multiple of 16.
bool gathers(i64 page_size) { return page_size > 0 && paged::no_boxes_of_pages(page_size, 16); }

/// The most tiles of FP8 that are on their way. One is converted while two others come: an item's first keys and its first values. A
/// further one would be of the item before, and the block would wait for it.
constexpr i32 kMostSlots = 3;

PrefillSm90Config config_of(const PrefillShape& s, i32 tile_tokens, i64 page_size, i32 slots) {
  const i32 warpgroups = warpgroups_of(s);
  return {.dtype = is_fp8(s.kv) ? DType::f16 : s.q,
          .q_dtype = s.q,
          .kv_dtype = s.kv,
          .out_dtype = s.out,
          .lens_dtype = s.lens,
          .head_dim = i32(s.head_dim),
          .head_dim_v = i32(s.head_dim_v),
          .warpgroups = warpgroups,
          .tile_tokens = tile_tokens,
          .stages = kStages,
          .turns = s.head_dim_v <= 128,
          .soft_cap = s.soft_cap,
          .bits = s.bits,
          .places = s.places,
          .gather = gathers(page_size) || is_fp8(s.kv),
          .slots = is_fp8(s.kv) ? slots : 0,
          .query_boxes = s.q_alignment >= 16 && 64 % max_of<i64>(1, group_of(s.heads_q, s.heads_kv)) == 0,
          .parts = !s.batch_invariant && s.most_keys >= 2 * kLeastPart * tile_tokens,
          .leave_few_rows = s.leave_few_rows,
          .threads = 128 * (1 + warpgroups)};
}

/// The kernel for a shape that is not rejected.
PrefillSm90Config config_on(const PrefillShape& s, const DeviceInfo& device, i64 page_size) {
  // The tile of keys decides the order of sums, so it follows from what is compiled and the device alone. What does more with a logit than
  // scale it needs registers
  const bool three = warpgroups_of(s) == 3;
  const i32 most = s.soft_cap || s.bits || s.hooks ? 64 : !three ? 128 : gathers(page_size) || is_fp8(s.kv) ? 96 : 112;
  i32 tokens = most;
  const auto fits = [&](i32 slots) { return prefill_sm90_smem(config_of(s, tokens, page_size, slots)).bytes <= device.smem_block; };
  while (tokens > 16 && !fits(2)) tokens -= 16;
  return config_of(s, tokens, page_size, fits(kMostSlots) ? kMostSlots : 2);
}

/// Most row tiles of a call: the last one of each request may be all but empty.
i64 row_tiles_of(const PrefillShape& s, const PrefillSm90Config& c) {
  return (s.tokens * group_of(s.heads_q, s.heads_kv) / block_rows(c) + min_of(s.batch, s.tokens)) * s.heads_kv;
}
/// Most parts of a row tile.
i64 parts_of(const PrefillShape& s, const PrefillSm90Config& c) {
  return c.parts ? ceil_div<i64>(s.most_keys, kLeastPart * c.tile_tokens) : 1;
}

}  // namespace

Rejection prefill_sm90_rejects(const PrefillShape& s, const DeviceInfo& device, const TensorFacts& k, const TensorFacts& v) {
  const bool cache = s.places != KeyPlaces::contiguous;
  if (device.arch.number != 90) return {"arch", device.arch.number, "{}: wgmma", 90};
  if (is_fp8(s.q)) return {"q", name(s.q), "bf16 or f16"};
  if (s.head_dim > 256) return {"head_dim", s.head_dim, "at most {}", 256};
  // A tensor map is of some memory
  if (s.tokens == 0) return {"tokens", 0, "at least {}", 1};
  if (s.most_keys == 0) return {"keys of a request", 0, "at least {}", 1};
  if (const Rejection r = paged::no_boxes(cache ? "alignment of k_cache" : "alignment of k", k)) return r;
  if (const Rejection r = paged::no_boxes(cache ? "alignment of v_cache" : "alignment of v", v)) return r;
  const PrefillSm90Config c = config_on(s, device, 0);
  if (prefill_sm90_smem(c).bytes > device.smem_block)
    return {"shared memory of a block", device.smem_block, "{} bytes", prefill_sm90_smem(c).bytes};
  return {};
}

PrefillSm90Launch begin_prefill_sm90(Plan& plan, const PrefillShape& s, const DeviceInfo& device, i64 page_size) {
  const PrefillSm90Config c = config_on(s, device, page_size);
  const i64 row_tiles = row_tiles_of(s, c), items = row_tiles * parts_of(s, c), blocks = max_of<i64>(1, min_of<i64>(device.sms, items));
  PrefillSm90Work work{};
  if (c.parts) work.part_slots = i32(min_of(kPartSlots * blocks, items));
  // The counters are filled with zeros by a launch more, and up to two row tiles a block are shared out as evenly without them
  if (c.parts || row_tiles > 2 * blocks) work.counters = plan.zeroed("items", 4 * (1 + i64(work.part_slots) * 4 * c.warpgroups));
  if (c.parts) work.parts = plan.scratch("parts", i64(work.part_slots) * 4 * c.warpgroups * part_bytes_of_warp(c));
  return {c, {.x = blocks, .smem = prefill_sm90_smem(c).bytes}, work};
}

TensorMap prefill_sm90_queries(Device& device, const PrefillSm90Config& c, const TensorView& q, i64 group) {
  if (!c.query_boxes) return {};
  const paged::BoxTile tile = query_tile(c);
  const i64 element = size_of(q.dtype), dense = round_up<i64>(row_bytes(tile), 16);  // of a dimension of one the stride may be anything
  return device.make_tensor_map(
      {.dtype = q.dtype,
       .rank = 3,
       .base = q.data,
       .shape = {c.head_dim, max_of<i64>(1, q.shape[1]), max_of<i64>(1, q.shape[0])},
       .stride_bytes = {q.shape[1] > 1 ? q.strides[1] * element : dense, q.shape[0] > 1 ? q.strides[0] * element : dense},
       .box = {i32(column_bytes(tile) / element), i32(group), i32(64 / group)},
       .swizzle = swizzle_of(tile)});
}

paged::BoxParams prefill_sm90_boxes(Device& device, const PrefillSm90Config& c, const TensorView& k, const TensorView& v, i64 page_size) {
  if (c.gather) return {};
  if (page_size == 0)
    return {device.make_tensor_map(paged::contiguous_boxes(k, c.tile_tokens)),
            device.make_tensor_map(paged::contiguous_boxes(v, c.tile_tokens)), c.tile_tokens, 0};
  return {device.make_tensor_map(paged::paged_boxes(k, c.tile_tokens)), device.make_tensor_map(paged::paged_boxes(v, c.tile_tokens)),
          paged::box_rows(page_size, c.tile_tokens), i32(k.shape[0])};
}

}  // namespace quern::attention
