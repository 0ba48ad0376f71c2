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
  int sms = 0;  ///< of the emulated device, where that decides the plan
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
      {"ops/norm/norm_row.cuh",
       "norm.rms_norm",
       "tokens=560 hidden=2056",
       {{"one scratch slot for neighbouring rows", "row += step, slot ^= 1", "row += step", {"RACE"}}}},
      {"ops/norm/norm_row.cuh",
       "norm.rms_norm",
       "tokens=17 hidden=96",
       {{"rows taken by two warps", "i64(gridDim.x) * kRows;", "i64(gridDim.x);", {"RACE"}}}},
      {"ops/norm/norm_row.cuh",
       "norm.fused_add_rms_norm",
       "tokens=3 hidden=2056",
       {{"load past the row's end",
         "if (h + a * C.vector < hidden) unit.access",
         "unit.access",
         {"GLOBAL-OOB", "RACE"}},
        {"store past the row's end", "if (h + a * C.vector < hidden) store", "store", {"GLOBAL-OOB", "RACE"}},
        {"sum stored into x",
         "static_cast<T*>(p.residual) + row * p.residual_stride, h, p.hidden, v",
         "(T*)p.x + row * p.x_stride, h, p.hidden, v",
         {"WRITE-TO-INPUT"}}}},
  };
  return all;
}

inline const std::vector<FaultyCase>& elementwise_faults() {
  static const std::vector<FaultyCase> all = {
      {"ops/activation/silu_and_mul.cuh",
       "activation.silu_and_mul",
       "tokens=3 intermediate=1000",
       {{"load past the row's end",
         "      if (i >= p.intermediate) continue;\n      packed_gate",
         "      packed_gate",
         {"GLOBAL-OOB"}},
        {"a row of the output written by two blocks", "row * p.out_stride", "row / 2 * p.out_stride", {"RACE"}}}},
      {"ops/rope/rope_inplace.cuh",
       "rope.rope_inplace",
       "tokens=4",
       {{"no barrier before the angles are read", "    ptx::sync_block();\n    for", "    for", {"RACE", "UNINIT"}},
        {"the angles overwritten without a barrier",
         "ptx::sync_block();  // the next",
         "for (int i = threadIdx.x; i < p.half; i += C.threads) sines[i] = 0.f;  // the next",
         {"RACE"}},
        {"the last pair's angle not made", "i < p.half; i += C", "i < p.half - 1; i += C", {"UNINIT"}},
        {"heads of k counted from those of q", "(head - p.heads_q)", "head", {"GLOBAL-OOB", "RACE"}}}},
      {"ops/kv_cache/append_paged.cuh",
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
        {"rows stored into k", "(p.k_cache + page", "((char*)p.k + 0 * page", {"WRITE-TO-INPUT"}}}},
      {"ops/kv_cache/append_paged.cuh",
       "kv_cache.append_paged",
       "tokens=5 batch=4 heads_kv=1 head_dim=64 page_size=1 --seed 70",
       {{"a skipped token's request used",
         "    if (request < 0 || request >= p.batch || position < 0) continue;\n",
         "",
         {"GLOBAL-OOB"}}}},
  };
  return all;
}

inline const std::vector<FaultyCase>& gemm_faults() {
  static const std::vector<FaultyCase> all = {
      {"ops/gemm/dense_mma_ring.cuh",
       "gemm.dense",
       "variant=portable m=17 n=128 k=1000",
       {{"no wait for the copies", "ptx::cp_async_wait<kAhead - 1>();", "", {"RACE"}},
        {"the wait leaves a tile in flight", "cp_async_wait<kAhead - 1>", "cp_async_wait<kAhead>", {"RACE"}},
        {"copies never committed", "ptx::cp_async_commit();  //", "//", {"RACE"}},
        {"no barrier of the ring", "ptx::sync_block();\n    }\n    if (next", "}\n    if (next", {"RACE", "UNINIT"}},
        {"the next stage multiplied",
         "multiply_stage<C>(smem + slot * L.stage",
         "multiply_stage<C>(smem + (slot + 1) % C.stages * L.stage",
         {"RACE", "UNINIT"}},
        {"rows past m not zeroed", "S::CopyA::zero_rows(a, smem + slot * L.stage + L.a);", "", {"UNINIT"}},
        {"rows past m stored", "if (row < p.m) store_aligned<Out>", "store_aligned<Out>", {"GLOBAL-OOB"}}}},
      {"kit/copy_tile.cuh",
       "gemm.dense",
       "variant=portable m=17 n=128 k=1000",
       {{"rows past the end copied",
         "if (i * kRowsPerPass < self.rows_left) issue_unit(from, tile, self.to + further(self, i), kUnit)",
         "issue_unit(from, tile, self.to + further(self, i), kUnit)",
         {"GLOBAL-OOB"}},
        {"columns past the end copied", "min_of(kUnit, cols - self.col)", "min_of(kUnit, cols)", {"GLOBAL-OOB"}}}},
      {"ops/gemm/dense_mma_ring.cuh",
       "gemm.dense",
       "variant=portable m=17 n=77 k=600 bias.present=1",
       {{"results staged in a ring that is still read", "ptx::sync_block();  // nobody", "// nobody", {"RACE"}}}},
      {"ops/gemm/dense_warp_specialised_sm90.cuh",
       "gemm.dense",
       "variant=warp_specialised_sm90 m=130 n=136 k=1000 bias.present=1",
       {{"a release that nobody makes", "C.alternate ? 4 : 8,", "C.alternate ? 5 : 9,", {"DEADLOCK"}},
        {"rows of the other half", "i32(first_row) + 64 * m", "i32(64 - first_row) + 64 * m", {kWrongResult}}}},
      {"ops/gemm/tiles_sm90.cuh",
       "gemm.dense",
       "variant=warp_specialised_sm90 m=130 n=136 k=1000 bias.present=1",
       {{"fewer bytes announced", "begin_fill(fill, L.stage)", "begin_fill(fill, L.stage - 128)", {"DEADLOCK", "MBARRIER", "RACE"}},
        {"rows behind the last stored", "if (here && at < p.n && g", "if (at < p.n && g", {"GLOBAL-OOB"}},
        {"the bias read past its end", "if (at >= columns) continue;", "", {"GLOBAL-OOB"}}}},
      {"kit/wgmma_ring.cuh",
       "gemm.dense",
       "variant=warp_specialised_sm90 m=130 n=136 k=1000 bias.present=1",
       {{"a stage released while it is read", "ptx::wgmma_wait<1>();", "", {"RACE"}},
        {"the wait leaves two products in flight", "ptx::wgmma_wait<1>();", "ptx::wgmma_wait<2>();", {"RACE"}},
        {"results read before the last wait", "ptx::wgmma_wait<0>();", "", {"WGMMA"}},
        {"no fence before the products", "ptx::wgmma_fence();", "", {"WGMMA"}},
        {"a stage read before it is full", "    begin_read(read);\n", "", {"RACE", "UNINIT"}}}},
      // Parts of K one after another, of which one is left out
      {"ops/gemm/dense_warp_specialised_sm90.cuh",
       "gemm.dense",
       "variant=warp_specialised_sm90 m=130 n=136 k=4160 batch_invariant=1",
       {{"a part of K not added", "total[m][i] = total[m][i] + sums[m][i]", "total[m][i] = sums[m][i]", {kWrongResult}}}},
      // Several tiles of 11 steps with 5 stages: the warpgroups take them in turn
      {"ops/gemm/dense_warp_specialised_sm90.cuh",
       "gemm.dense",
       "variant=warp_specialised_sm90 m=300 n=176 k=704",
       {{"no wait for the turn", "if (C.alternate && index != blockIdx.x) ptx::bar_sync", "if (false) ptx::bar_sync", {"RACE", "UNINIT", "DEADLOCK"}},
        {"stages of the other's tile not passed over",
         "    if constexpr (C.alternate) skip_reads(read, steps);\n",
         "",
         {"RACE", "UNINIT", "DEADLOCK"}}},
       1},
      {"ops/gemm/swap_ab_sm90.cuh",
       "gemm.dense",
       "variant=swap_ab_sm90 m=5 n=136 k=2000 bias.present=1",
       {{"sums of other blocks read before they are written",
         "    ptx::cluster_arrive();\n    ptx::cluster_wait();\n    add_and_store",
         "    add_and_store",
         {"RACE", "UNINIT"}},
        {"a block leaves while others read its sums",
         "    // The others read this block's sums\n    ptx::cluster_arrive();\n    ptx::cluster_wait();\n",
         "",
         {"RACE", "CLUSTER"}},
        {"barriers used before they are made", "  ptx::sync_block();\n  ptx::grid_launch", "  ptx::grid_launch", {"MBARRIER", "RACE", "UNINIT"}},
        {"every block multiplies by the first part of a", "CachePolicy::evict_last, (part.first_step + step)", "CachePolicy::evict_last, step", {kWrongResult}},
        {"a split left out", "for (u32 i = 1; i < kDenseSwapMaxSplits; ++i)", "for (u32 i = 2; i < kDenseSwapMaxSplits; ++i)", {kWrongResult}},
        {"rows behind the last stored", "min_of(C.tile_m, p.m - part.row)", "C.tile_m", {"GLOBAL-OOB"}},
        {"columns behind the last stored", "    if (part.column + column >= p.n) continue;\n", "", {"GLOBAL-OOB"}}}},
      // Blocks that do not share a tile, and a ring that is filled again
      {"ops/gemm/swap_ab_sm90.cuh",
       "gemm.dense",
       "variant=swap_ab_sm90 m=5 n=136 k=2000 bias.present=1",
       {{"sums of the own block read before they are written",
         "    ptx::sync_block();\n    add_and_store",
         "    add_and_store",
         {"RACE", "UNINIT"}}},
       1},
      {"kit/wgmma_ring.cuh",
       "gemm.dense",
       "variant=swap_ab_sm90 m=5 n=136 k=2000 bias.present=1",
       {{"a stage read before it is full", "    begin_read(read);\n", "", {"RACE", "UNINIT"}},
        {"a stage released while it is read", "ptx::wgmma_wait<1>();", "ptx::wgmma_wait<2>();", {"RACE"}}},
       1},
      {"ops/gemm/swap_ab_sm90.cuh",
       "gemm.dense",
       "variant=swap_ab_sm90 m=5 n=136 k=2000 pdl=1",
       {{"boxes of a one stage on", "smem + u32(step) * L.stage, full_barrier", "smem + u32(step + 1) * L.stage, full_barrier", {"RACE", "UNINIT", "SMEM-OOB"}}}},
      {"ops/gemm/dense_store.cuh",
       "gemm.dense",
       "variant=portable m=17 n=77 k=600 bias.present=1",
       {{"bias read past its end", "if (i < count) load_f32", "load_f32", {"GLOBAL-OOB"}}}},
      {"ops/gemm/dense_mma_ring.cuh",
       "gemm.dense",
       "variant=portable m=1 n=128 k=4104",
       {{"partial sums of a split not written",
         "if (row < p.m) store_aligned<f32>",
         "if (row < p.m && blockIdx.y != 1) store_aligned<f32>",
         {"UNINIT"}},
        {"partial sums of all splits in one place", "i64(blockIdx.y) * p.m", "0 * p.m", {"RACE", "UNINIT"}},
        {"the last split as long as the others", "min_of(p.split_k, p.k - k_begin)", "p.split_k", {"GLOBAL-OOB"}}}},
      {"ops/gemm/dense_sum_splits.cuh",
       "gemm.dense",
       "variant=portable m=1 n=128 k=4104",
       {{"one split too many summed", "s < p.splits", "s <= p.splits", {"GLOBAL-OOB"}}}},
  };
  return all;
}

inline const std::vector<FaultyCase>& decode_faults() {
  static const std::vector<FaultyCase> all = {
      {"ops/attention/decode_paged.cuh",
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
      {"ops/attention/decode_paged_tile.cuh",
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
      {"ops/attention/decode_paged_combine.cuh",
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
