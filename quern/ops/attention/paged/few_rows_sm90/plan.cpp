// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/bricks/paged/boxes.h"
#include "quern/op/variants.h"
#include "quern/ops/attention/paged/call.h"
#include "quern/ops/attention/paged/few_rows_sm90/spec.h"

namespace quern::attention {

namespace {

using A = PagedArgs;

const jit::Kernel<FewRowsConfig, FewRowsParams> few_rows{"quern/ops/attention/paged/few_rows_sm90/kernel.cuh", "paged_few_rows_sm90"};

/// Rows of an item, so that the products have as few columns as may be: of one query token the group's, of several those of the longest
/// request, in steps that keep kernels few. Wider heads than 128 take 32 at most: 64 would be 128 sums a thread at head_dim 256.
i32 group_rows(const Problem& p) {
  const i64 most = p[Axis::head_dim] > 128 ? 32 : kFewRowsSm90, group = max_of<i64>(1, group_of(p)), queries = p.attr(&A::max_seq_q);
  if (!several(p)) return i32(min_of<i64>(most, round_up<i64>(group, 8)));
  i32 rows = 8;
  while (rows < most && (queries == 0 || rows < queries * group)) rows *= 2;
  return rows;
}

/// Most keys that a request's tiles have: the first begins where a box does.
i64 tile_keys(const Problem& p) {
  return min_of(max_of<i64>(1, capacity(p)), visible_tokens(p, kFewRowsSm90) + paged::box_rows(p[Axis::page_size], kTileTokens) - 1);
}

FewRowsConfig config_of(const Problem& p, const DeviceInfo& device) {
  const DType kv = p.dtype(&A::k_cache);
  // FP8 comes twice as fast and takes longer to multiply, as it becomes f16 first; 160 registers a thread suffice for 16 rows, but not with
  // a soft cap beside several query tokens
  const i32 rows = group_rows(p), warpgroups = is_fp8(kv) && rows <= 16 && !(p.attr(&A::soft_cap) > 0 && several(p)) ? 3 : 2;
  FewRowsConfig c{.dtype = is_fp8(kv) ? DType::f16 : p.dtype(&A::q),
                  .q_dtype = p.dtype(&A::q),
                  .kv_dtype = kv,
                  .out_dtype = p.dtype(&A::out),
                  .lens_dtype = lens_dtype(p),
                  .head_dim = i32(p[Axis::head_dim]),
                  .group_rows = rows,
                  .warpgroups = warpgroups,
                  .stages = 2,
                  .soft_cap = p.attr(&A::soft_cap) > 0,
                  .scales = p.tensor(&A::q_scale).present || p.tensor(&A::k_scale).present,
                  .places = places_of(p),
                  .several = several(p),
                  // A row that one chunk holds needs no parts
                  .fixed_chunks = p.batch_invariant || tile_keys(p) <= kChunkTokens,
                  .threads = (warpgroups + 1) * 128,  // of the last 128 one warp loads: registers are given by the warpgroup
                  .min_blocks = 1};
  // A multiple of two for each warpgroup, so that a stage always holds tiles of the same one. A parity tells a filling of a stage from the
  // next one, but not from the next but one: a warpgroup that waited for its own filling before another warpgroup's had come to the same
  // stage would find it complete.
  const i32 step = 2 * warpgroups;
  c.stages = step;
  while (c.stages + step <= 16) {
    FewRowsConfig more = c;
    more.stages += step;
    if (few_rows_smem(more).bytes > device.smem_block) break;
    c = more;
  }
  return c;
}

/// How work is laid out.
struct FewRowsWork {
  i64 row_tiles, max_splits, min_share;
  Region part_sums, part_states, counters;  ///< none where each item is one part
};

FewRowsWork work_of(const Problem& p, const FewRowsConfig& c) {
  const i64 rows = several(p) ? max_of<i64>(kFewRowsSm90, group_of(p)) : group_of(p);
  return {.row_tiles = max_of<i64>(1, ceil_div<i64>(rows, c.group_rows)),
          .max_splits = min_of<i64>(kMostChunks, ceil_div<i64>(tile_keys(p), kChunkTokens)),
          .min_share = c.fixed_chunks ? 1 : c.warpgroups,  // a tile for each warpgroup
          .part_sums = {},
          .part_states = {},
          .counters = {}};
}

FewRowsParams few_rows_params(const Call<A, FewRowsWork>& c) {
  FewRowsParams to{};
  set_paged_params(c.args, c.problem, to);
  to.boxes.k = c.device.make_tensor_map(paged::paged_boxes(c.args.k_cache, kTileTokens));
  to.boxes.v = c.device.make_tensor_map(paged::paged_boxes(c.args.v_cache, kTileTokens));
  to.boxes.rows = paged::box_rows(c.problem[Axis::page_size], kTileTokens),
  to.boxes.no_page = c.problem[Axis::pages] < i64(1) << 31 ? i32(c.problem[Axis::pages]) : -1;
  to.part_sums = reinterpret_cast<float*>(c.region(c.choice.part_sums));
  to.part_states = reinterpret_cast<float*>(c.region(c.choice.part_states));
  to.counters = reinterpret_cast<u32*>(c.region(c.choice.counters));
  to.row_tiles = i32(c.choice.row_tiles), to.max_splits = i32(c.choice.max_splits), to.min_share = i32(c.choice.min_share);
  return to;
}

Rejection rejects(const Problem& p, const DeviceInfo& device) {
  if (device.arch.number != 90) return {"arch", device.arch.number, "{}", 90};
  if (p.hooks != nullptr) return {"hooks", "given", "none: they are called by the portable kernels"};
  if (p.tensor(&A::mask).present) return {"mask", "given", "none: its bits are read by the portable kernels"};
  if (p[Axis::head_dim] > 256) return {"head_dim", p[Axis::head_dim], "at most {}", 256};
  if (const Rejection r = paged::no_boxes("alignment of k_cache", p.tensor(&A::k_cache))) return r;
  if (const Rejection r = paged::no_boxes("alignment of v_cache", p.tensor(&A::v_cache))) return r;
  if (const Rejection r = paged::no_boxes_of_pages(p[Axis::page_size], kTileTokens)) return r;
  if (p[Axis::tokens] == 0) return {"tokens", 0, "at least {}", 1};
  if (capacity(p) == 0) return {"pages", p[Axis::pages], "room for a key"};  // a tensor map is of some memory
  const FewRowsConfig c = config_of(p, device);
  if (few_rows_smem(c).bytes > device.smem_block)
    return {"shared memory of a block", device.smem_block, "{} bytes", few_rows_smem(c).bytes};
  if (work_of(p, c).row_tiles > 8)
    return {"heads_q", p[Axis::heads_q], "at most {} heads of a KV head", 8 * c.group_rows};  // units are counted in 32 bits
  return several(p) ? prefill_rejects(paged_prefill_shape(p, kFewRowsSm90), device) : Rejection{};
}

/// Measured on an H200: split KV reads 16-bit caches 1.03 to 1.12 times as fast as this kernel where a call takes 70 us or more, and FP8
/// caches 3 to 7 times as slowly. Of 16-bit caches 64 rows took this kernel as long as 256 rows took prefill_sm90, to which they go
/// instead; 17 to 64 rows by prefill_sm90 have not been measured.
Rejection slower(const Problem& p, const DeviceInfo&) {
  if (is_fp8(p.dtype(&A::k_cache)) || group_of(p) > 16) return {};
  return {"k_cache", name(p.dtype(&A::k_cache)), "FP8, or more than 16 query heads a KV head"};
}

Plan plan(const Problem& p, const DeviceInfo& device) {
  const FewRowsConfig c = config_of(p, device);
  FewRowsWork work = work_of(p, c);
  const i64 items = p[Axis::heads_kv] * work.row_tiles;
  const i64 units = c.fixed_chunks ? work.max_splits : ceil_div<i64>(tile_keys(p), kTileTokens);
  const i64 most = ceil_div(min_of(product(product(p[Axis::batch], items), units), i64(1) << 40), work.min_share);
  const i64 blocks = max_of<i64>(1, min_of<i64>(most, device.sms));
  Plan plan;
  const PagedPrefill prefill = several(p) ? begin_prefill(plan, p, device, kFewRowsSm90, true) : PagedPrefill{};
  if (!c.fixed_chunks || work.max_splits > 1) {
    const i64 slots = c.fixed_chunks ? p[Axis::batch] * items * work.max_splits : 2 * blocks;
    work.part_sums = plan.scratch("part_sums", slots * part_floats(c) * 4);
    work.part_states = plan.scratch("part_states", slots * c.group_rows * 8);
    work.counters = plan.zeroed("counters", blocks * 4);
  }
  plan.launch<few_rows_params>(few_rows, c, {.x = blocks, .smem = few_rows_smem(c).bytes, .pdl = p.pdl}, work);
  if (several(p)) add_prefill(plan, p, device, prefill);
  return plan;
}

const JoinVariant join("attention.paged", 10, {"few_rows_sm90", rejects, plan, slower});

}  // namespace

}  // namespace quern::attention
