// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Textual changes that break a kernel of an op or a brick of the kit, each with a case of the op on which checked mode
// must report it.
#pragma once
#include <string>
#include <vector>

namespace quern::planted {

/// What stands for a kind of report where only the comparison with the reference can tell.
inline const char* const kWrongResult = "wrong result";

struct Fault {
  const char* name;
  const char* from;  ///< occurs once in the file
  const char* to;
  std::vector<std::string> kinds;  ///< any of these reports is right
};
/// Faults of one source, shown on one case.
struct FaultyCase {
  const char* file;   ///< below quern/
  const char* op;     ///< checked with the first values of the parameters that `words` leaves out
  const char* words;  ///< of `quern check`
  std::vector<Fault> faults;
  int sms = 0;  ///< of the emulated device, where that decides the plan, or how many tiles a block makes
};

inline const std::vector<FaultyCase>& norm_faults() {
  static const std::vector<FaultyCase> all = {
      {"kit/reduce.cuh",
       "norm.rms_norm",
       "tokens=3 hidden=2056",
       {{"no barrier before the warps' sums are read",
         "  ptx::sync_block();\n  f32 sum",
         "  f32 sum",
         {"RACE", "UNINIT"}}}},
      {"ops/norm/norm_row/kernel.cuh",
       "norm.rms_norm",
       "tokens=700 hidden=2056",
       {{"one scratch slot for neighbouring rows", "row += step, slot ^= 1", "row += step", {"RACE"}}}},
      {"ops/norm/norm_row/kernel.cuh",
       "norm.rms_norm",
       "tokens=17 hidden=96",
       {{"rows taken by two warps", "i64(gridDim.x) * kRows;", "i64(gridDim.x);", {"RACE"}}}},
      {"ops/norm/norm_row/unit.cuh",
       "norm.fused_add_rms_norm",
       "tokens=3 hidden=2056",
       {{"load past the row's end",
         "if (h + a * C.vector < hidden) unit.access",
         "unit.access",
         {"GLOBAL-OOB", "RACE"}},
        {"store past the row's end", "if (h + a * C.vector < hidden) store", "store", {"GLOBAL-OOB", "RACE"}}}},
      {"ops/norm/norm_row/kernel.cuh",
       "norm.fused_add_rms_norm",
       "tokens=3 hidden=2056",
       {{"sum stored into x",
         "static_cast<T*>(p.residual) + row * p.residual_stride, h, p.hidden, v",
         "(T*)p.x + row * p.x_stride, h, p.hidden, v",
         {"WRITE-TO-INPUT"}}}},
      {"ops/norm/rms_norm_backward/kernel.cuh",
       "norm.rms_norm_backward",
       "tokens=700 hidden=2056",
       {{"both sums of a row in one place", "scratch + C.threads / 32);", "scratch);", {"RACE"}},
        {"a part stored past the row's end", "if (h < p.hidden) store_f32", "store_f32", {"GLOBAL-OOB", "RACE"}},
        {"dx stored into x", "static_cast<T*>(p.dx) + row * p.dx_stride, h", "(T*)p.x + row * p.x_stride, h", {"WRITE-TO-INPUT"}}}},
      {"ops/norm/rms_norm_backward/kernel.cuh",
       "norm.rms_norm_backward",
       "tokens=17 hidden=96",
       {{"no barrier between the turns of the warps", "    ptx::sync_block();\n  }\n}", "  }\n}", {"RACE", "UNINIT"}},
        {"the first warp adds to what lay there", "if (w > 0) dw[i][j]", "dw[i][j]", {"UNINIT"}}}},
      {"ops/norm/rms_norm_backward/kernel.cuh",
       "norm.rms_norm_backward",
       "tokens=3 hidden=20000",
       {{"a block's first row added to what lay there", "row == i64(blockIdx.x), dw", "false, dw", {"UNINIT"}}}},
      {"ops/norm/rms_norm_backward/sum_parts.cuh",
       "norm.rms_norm_backward",
       "tokens=3 hidden=96",
       {{"no barrier before the lanes are added", "  ptx::sync_block();\n  const", "  const", {"RACE", "UNINIT"}},
        {"a part past the last", "b < p.count", "b <= p.count", {"GLOBAL-OOB", "UNINIT"}}}},
  };
  return all;
}

inline const std::vector<FaultyCase>& elementwise_faults() {
  static const std::vector<FaultyCase> all = {
      {"ops/activation/silu_and_mul/kernel.cuh",
       "activation.silu_and_mul",
       "tokens=3 intermediate=1000",
       {{"load past the row's end",
         "      if (i >= p.intermediate) continue;\n      packed_gate",
         "      packed_gate",
         {"GLOBAL-OOB"}},
        {"a row of the output written by two blocks", "row * p.out_stride", "row / 2 * p.out_stride", {"RACE"}}}},
      {"ops/rope/rope_inplace/kernel.cuh",
       "rope.rope_inplace",
       "tokens=4",
       {{"no barrier before the angles are read", "    ptx::sync_block();\n    for", "    for", {"RACE", "UNINIT"}},
        {"the angles overwritten without a barrier",
         "ptx::sync_block();  // the next",
         "for (int i = threadIdx.x; i < p.half; i += C.threads) sines[i] = 0.f;  // the next",
         {"RACE"}},
        {"the last pair's angle not made", "i < p.half; i += C", "i < p.half - 1; i += C", {"UNINIT"}},
        {"heads of k counted from those of q", "(head - p.heads_q)", "head", {"GLOBAL-OOB", "RACE"}}}},
      {"ops/kv_cache/append_paged/kernel.cuh",
       "kv_cache.append_paged",
       "tokens=4 heads_kv=3",
       {{"threads without work load",
         "    if (int(threadIdx.x) < work) first = load",
         "    first = load",
         {"GLOBAL-OOB"}},
        {"every block takes the tokens behind its own", "token += gridDim.x", "token += 1", {"RACE"}},
        {"the page table's row stride doubled",
         "request * p.page_table_stride",
         "2 * request * p.page_table_stride",
         {"GLOBAL-OOB"}},
        {"rows stored into k", "(p.k_cache + to.page", "((char*)p.k + 0 * to.page", {"WRITE-TO-INPUT"}}}},
      {"ops/kv_cache/append_paged/kernel.cuh",
       "kv_cache.append_paged",
       "tokens=5 batch=4 heads_kv=1 head_dim=64 page_size=1 --seed 70",
       {{"a skipped token's request used",
         "    if (request < 0 || request >= p.batch || position < 0) return {-1, 0};\n",
         "",
         {"GLOBAL-OOB"}}}},
      {"ops/kv_cache/append_paged/kernel.cuh",
       "kv_cache.append_paged",
       "tokens=33 slots=1 fp8=1 scales=2 heads_kv=3",
       {{"a negative slot stored to", "if (slot < 0 || i64(slot)", "if (i64(slot)", {"GLOBAL-OOB"}},
        {"the scale left out", "if (scale != nullptr)", "if (scale == nullptr)", {kWrongResult}},
        {"all heads by the scale of the first", "p.k_scale + head", "p.k_scale + 0 * head", {kWrongResult}},
        {"times the scale", "ptx::div(x[i], by)", "x[i] * by", {kWrongResult}},
        {"bytes of the cache counted as those of the rows", "RowElement<C.cache_dtype>::type));", "RowElement<C.dtype>::type));", {"GLOBAL-OOB", "RACE", kWrongResult}}}},
      {"ops/kv_cache/batch_indices_positions/kernel.cuh",
       "kv_cache.batch_indices_positions",
       "nnz=33 padded=1",
       {{"the bisection goes one request too far", "high = p.batch;", "high = p.batch + 2;", {"GLOBAL-OOB", kWrongResult}},
        {"tokens behind the last request belong to it", "if (token < end) position", "if (request >= 0) position", {kWrongResult}},
        {"positions without the tokens that the cache holds", "- (end - token)", "- (end - token) + 1", {kWrongResult}},
        {"threads past the last token store", "token < p.tokens;", "token < p.tokens + 1;", {"GLOBAL-OOB"}}}},
      {"ops/attention/merge_states/kernel.cuh",
       "attention.merge_states",
       "empty=1 other=1 mask.present=1",
       {{"v of empty parts read", "      if (lse == negative_infinity()) continue;\n", "", {kWrongResult}},
        {"the mask ignored", "p.mask_stride) == 0) continue;", "p.mask_stride) == 256) continue;", {kWrongResult}},
        {"v_other left out", "p.parts + (p.v_other != nullptr ? 1 : 0)", "p.parts", {kWrongResult}},
        {"a row past the last", "index < p.rows;", "index < p.rows + 1;", {"GLOBAL-OOB"}},
        {"a head's parts in the place of its neighbour's", "row.head * p.lse_strides[2]", "0 * p.lse_strides[2]", {kWrongResult}}}},
      {"ops/attention/merge_states/kernel.cuh",
       "attention.merge_states",
       "tokens=3 other=1 out_lse.in_place=1 head_dim=512",
       {{"out_lse over lse_other before the other lanes have read it",
         "  ptx::sync_warp();  // out_lse",
         "  // out_lse",
         {"RACE"}}}},
  };
  return all;
}

inline const std::vector<FaultyCase>& prefill_faults() {
  static const std::vector<FaultyCase> all = {
      {"ops/attention/prefill/kernel.cuh",
       "attention.ragged",
       "batch=2 queries=17 keys=150 head_dim=64",
       {{"no wait for the keys", "    ptx::cp_async_wait<0>();\n    ptx::sync_block();  // keys", "    ptx::sync_block();  // keys", {"RACE"}},
        {"no wait for the values", "    ptx::cp_async_wait<0>();\n    ptx::sync_block();  // values", "    ptx::sync_block();  // values", {"RACE"}},
        {"values copied over those that are multiplied", "    ptx::sync_block();  // keys have come; the values before were multiplied\n", "", {"RACE", "UNINIT"}},
        {"keys copied over those that are multiplied", "    ptx::sync_block();  // values have come; the keys were multiplied\n", "", {"RACE", "UNINIT"}},
        {"rows beyond the request's stored", "      if (in_tile >= at.rows) continue;\n", "", {"RACE", "GLOBAL-OOB"}},
        {"the last tile of keys left out", "  while (first < at.end) {", "  while (first + C.tile_tokens < at.end) {", {kWrongResult}}}},
      {"ops/attention/prefill/kernel.cuh",
       "attention.paged",
       "batch=2 heads_kv=1 gqa=2 queries=17 capacity=150 head_dim=64 page_size=3",
       {{"page entries read before they are stored", "    ptx::sync_block();\n    copy_tile<C, C.head_dim>(p, at, pages, first", "    copy_tile<C, C.head_dim>(p, at, pages, first", {"RACE", "UNINIT"}},
        {"page entries stored over those of the values", "    buffer ^= 1;\n", "", {"RACE"}}}},
      {"ops/attention/prefill/request.cuh",
       "attention.ragged",
       "batch=3 queries=17 keys=70 head_dim=64 causal=1",
       {{"no barrier before the tile's request is read", "    ptx::sync_block();\n    tile.request", "    tile.request", {"RACE", "UNINIT"}},
        {"a key past the last that a row sees", "last).last + 1;", "last).last + 2;", {kWrongResult, "UNINIT", "GLOBAL-OOB"}},
        {"a row too many in the last tile", "p.group.value - tile.first_row));", "p.group.value - tile.first_row + 1));", {"RACE", "GLOBAL-OOB", kWrongResult}},
        {"tiles of another request", "tile.request = first + found[0];", "tile.request = first + found[0] / 2;", {kWrongResult, "RACE", "UNINIT"}}}},
      {"ops/attention/prefill/logits.cuh",
       "attention.ragged",
       "batch=2 queries=20 keys=90 head_dim=64 causal=1 window_left=5 bits=1",
       {{"queries see the key behind their last", "key <= span.last", "key <= span.last + 1", {kWrongResult}},
        {"queries see the key before their window", "key >= span.first", "key >= span.first - 1", {kWrongResult}},
        {"the mask's bits ignored", "visible = visible && bit_visible", "visible = visible || bit_visible", {kWrongResult}}}},
      {"ops/attention/prefill/logits.cuh",
       "attention.ragged",
       "batch=1 queries=33 keys=128 heads_kv=1 gqa=2 head_dim=64 causal=1",
       {{"a tile that the last row sees whole taken for one that all do", "first + C.tile_tokens - 1 <= top.last", "first + C.tile_tokens - 1 <= bottom.last", {kWrongResult}}}},
      {"ops/attention/prefill/tile.cuh",
       "attention.ragged",
       "batch=2 queries=20 keys=70 head_dim=64",
       {{"keys that no row sees copied", "const bool read = key >= at.begin && key < at.end;", "const bool read = true;", {"GLOBAL-OOB", kWrongResult, "UNINIT"}},
        {"q of rows beyond the request's read", "const bool read = i32(row) < at.rows;", "const bool read = true;", {"GLOBAL-OOB"}}}},
      {"ops/attention/requests.cuh",
       "attention.ragged",
       "batch=2 queries=20 keys=70 head_dim=64 causal=1",
       {{"positions counted from the first key", "keys.length - queries.count + query;", "query;", {kWrongResult}}}},
  };
  return all;
}

inline const std::vector<FaultyCase>& decode_faults() {
  static const std::vector<FaultyCase> all = {
      {"ops/attention/paged/split_kv/kernel.cuh",
       "attention.paged",
       "head_dim=64",
       {{"no wait for the copies", "ptx::cp_async_wait<C.stages - 2>();", "", {"RACE"}},
        {"the wait leaves the tile in flight", "cp_async_wait<C.stages - 2>", "cp_async_wait<C.stages - 1>", {"RACE"}},
        {"no sync_warp behind the wait", "      ptx::sync_warp();\n    }", "    }", {"RACE"}},
        {"no barrier before the queries are read", "  ptx::sync_block();\n  Queries", "  Queries", {"RACE", "UNINIT"}},
        {"no barrier before the warps are merged",
         "  ptx::sync_block();\n  QN_NO_UNROLL",
         "  QN_NO_UNROLL",
         {"RACE", "UNINIT"}},
        {"a part's lse not written",
         "if (column == 0) ptx::st_global<f32>(p.part_lse + at, finish.lse);",
         "",
         {"UNINIT"}},
        {"a part in the slot of another", "2 * i64(blockIdx.x) + 1;", "2 * i64(blockIdx.x);", {"UNINIT", "RACE"}},
        {"no leader of blocks without a cut item", "if (!led) write_leader(p, -1, 0, 0, 0);", "", {"UNINIT"}},
        {"every block takes a unit of the next one's",
         "at + share);",
         "at + share + 1);",
         {"RACE", "UNINIT", kWrongResult}},
        {"output of a cut item written by its blocks", "    if (s.slot < 0) {", "    if (true) {", {"RACE"}},
        {"the last key of a request left out", "s.end = min_of(r.keys.end, s.begin + taken", "s.end = min_of(r.keys.end - 1, s.begin + taken", {kWrongResult}}}},
      {"ops/attention/paged/split_kv/kernel.cuh",
       "attention.paged",
       "sizes=9 head_dim=64 window_left=100",
       {{"queries see the key behind their last", "key <= span.last", "key <= span.last + 1", {kWrongResult}},
        {"queries see the key before their window", "key >= span.first", "key >= span.first - 1", {kWrongResult}},
        {"blind requests left out", "  write_blind_rows<C>(p);", "", {"UNINIT", kWrongResult}}}},
      {"ops/attention/paged/split_kv/parts.cuh",
       "attention.paged",
       "sizes=8 head_dim=64",
       {{"requests of one query are nobody's", "r.queries.count > 0 && has_few_rows", "r.queries.count > 1 && has_few_rows", {kWrongResult}}}},
      {"ops/attention/paged/split_kv/parts.cuh",
       "attention.paged",
       "sizes=9 head_dim=64 window_left=100",
       {{"keys before the window of the first query left out", "r.keys.length - r.queries.count - p.window_left", "r.keys.length - p.window_left", {kWrongResult}}}},
      {"ops/attention/paged/split_kv/tile.cuh",
       "attention.paged",
       "head_dim=64 batch=1",
       {{"page table read past the request's end",
         "token < from.end ? page_at(p, from.pages, token) : 0",
         "page_at(p, from.pages, token)",
         {"GLOBAL-OOB"}},
        {"tokens past the end not zeroed",
         "const bool read = token < from.end;",
         "const bool read = true;",
         {kWrongResult}}}},
      {"kit/scan.cuh",
       "attention.paged",
       "head_dim=64",
       {{"no barrier before the sums are read", "  ptx::sync_block();\n  u32 base", "  u32 base", {"RACE", "UNINIT"}},
        {"the next sums written while these are read", "  ptx::sync_block();\n  return", "  return", {"RACE"}}}},
      {"ops/attention/paged/split_kv/combine.cuh",
       "attention.paged",
       "head_dim=64",
       {{"no barrier before the maxima are read",
         "  ptx::sync_block();\n  for (int w",
         "  for (int w",
         {"RACE", "UNINIT"}},
        {"sums in the slots of the maxima", "reduce + 8", "reduce", {"RACE"}}}},
  };
  return all;
}

}  // namespace quern::planted
