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
      {"bricks/rows/chunks.cuh",
       "activation.silu_and_mul",
       "tokens=3 intermediate=1000",
       {{"load past the row's end",
         "      if (first + a * kStep < columns) load(",
         "      load(",
         {"GLOBAL-OOB"}},
        {"a chunk taken twice", "at / chunks, first", "at / chunks / 2, first", {"RACE"}},
        {"stored past the row's end",
         "      if (first + a * kStep < columns) store(",
         "      store(",
         {"GLOBAL-OOB", "RACE", "UNINIT"}}}},
      {"ops/activation/activate_row/kernel.cuh",
       "activation.silu_and_mul",
       "tokens=3 intermediate=1000",
       {{"a row of the output written by two blocks", "row * p.out_stride", "row / 2 * p.out_stride", {"RACE"}}}},
      {"ops/activation/activate_row/function.cuh",
       "activation.clamped_swiglu",
       "tokens=3 intermediate=1000 limit=1",
       {{"pairs taken as halves of an access", "const int g = 2 * j, u = 2 * j + 1;", "const int g = j, u = kVector + j;", {kWrongResult}},
        {"up is not cut from below", "ptx::fmax_nan(smaller_nan(up, limit), -limit)", "smaller_nan(up, limit)", {kWrongResult}},
        {"gate is cut from below too", "gate = smaller_nan(gate, limit);", "gate = ptx::fmax_nan(smaller_nan(gate, limit), -limit);", {kWrongResult}}}},
      {"ops/elementwise/map_row/kernel.cuh",
       "elementwise.add",
       "tokens=3 hidden=1025",
       {{"the second input read by the first one's stride", "row * p.y_stride", "row * p.x_stride", {"GLOBAL-OOB", kWrongResult}}}},
      {"ops/elementwise/gather_rows/kernel.cuh",
       "elementwise.gather_rows",
       "tokens=64 beyond=1",
       {{"ids beyond the table are read", "id >= 0 && id < p.rows", "id >= 0", {"GLOBAL-OOB"}},
        {"negative ids take the first row", "if (id >= 0 && id < p.rows) held", "if (id < p.rows) held", {"GLOBAL-OOB", kWrongResult}}}},
      {"ops/kv_cache/copy_pages/kernel.cuh",
       "kv_cache.copy_pages",
       "copies=18 heads_kv=3 page_size=3",
       {{"a skipped copy reads", "src >= 0 && src < p.pages && dst", "src < p.pages && dst", {"GLOBAL-OOB"}},
        {"v stored into k", "store_packed<u8, C.bytes>(address(p.v, dst, access), held.v)", "store_packed<u8, C.bytes>(address(p.k, dst, access), held.v)", {"RACE", kWrongResult}},
        {"slots and heads exchanged", "outer * cache.outer_stride", "outer * cache.inner_stride", {"RACE", kWrongResult}}}},
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

inline const std::vector<FaultyCase>& decode_faults() {
  static const std::vector<FaultyCase> all = {
      {"ops/attention/decode_paged/kernel.cuh",
       "attention.decode_paged",
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
        {"output of a cut item written by its blocks", "complete = s.slot < 0;", "complete = true;", {"RACE"}}}},
      {"ops/attention/decode_paged/tile.cuh",
       "attention.decode_paged",
       "head_dim=64 batch=1",
       {{"page table read past the request's end",
         "token < from.end ? ptx::ld_global_nc<i32>(from.pages + quotient(u32(token), p.page_size)) : 0",
         "ptx::ld_global_nc<i32>(from.pages + quotient(u32(token), p.page_size))",
         {"GLOBAL-OOB"}},
        {"tokens past the end not zeroed",
         "const bool read = token < from.end;",
         "const bool read = true;",
         {kWrongResult}}}},
      {"kit/scan.cuh",
       "attention.decode_paged",
       "head_dim=64",
       {{"no barrier before the sums are read", "  ptx::sync_block();\n  u32 base", "  u32 base", {"RACE", "UNINIT"}},
        {"the next sums written while these are read", "  ptx::sync_block();\n  return", "  return", {"RACE"}}}},
      {"ops/attention/decode_paged/combine.cuh",
       "attention.decode_paged",
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
