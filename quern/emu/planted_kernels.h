// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Small correct kernels and, for each, textual changes that break it: what checked mode must report.
#pragma once
#include <string>
#include <vector>

namespace quern::emu::planted {

/// An order in which blocks may start that hides a fault: that of their numbers, or the opposite one.
enum class HiddenBy { none, first_first, last_first };

/// Replaces the first occurrence of `from`.
struct Mutation {
  const char* name;
  const char* from;
  const char* to;
  std::vector<std::string> kinds;  ///< any of these reports is right
  HiddenBy order = HiddenBy::none;
};
struct Sample {
  const char* name;
  unsigned threads, blocks, smem;
  const char* body;  ///< of void body(const P& p)
  std::vector<Mutation> mutations;
  unsigned cluster = 1;
  int dependent_launches = 0;  ///< 0: one ordinary launch
  const char* header = "quern/kit/world.cuh";
};

inline const char* const kPrelude = R"(
using namespace quern;
struct P { const f32* in; f32* out; f32* scratch; u32* flags; i32 n, which; TensorMap rows, results; };
)";
/// Kernel of several bodies, of which the launch's parameter `which` chooses one.
inline std::string text_of(const Sample& sample, const std::vector<std::string>& bodies) {
  std::string text = "#include \"" + std::string(sample.header) + "\"" + kPrelude, cases;
  for (const std::string& body : bodies) {
    const std::string number = std::to_string(&body - bodies.data());
    text += "QN_DEVICE void body" + number + "(const P& p) {\n" + body + "\n}\n";
    cases += "case " + number + ": return body" + number + "(p); ";
  }
  return text + "QN_DEVICE void body(const P& p) { switch (p.which) { " + cases + "} }\nQN_ENTRY(planted, P, " +
         std::to_string(sample.threads) + ", 1, body(p))\n";
}
inline std::string text_of(const Sample& sample, const std::string& body) { return text_of(sample, std::vector<std::string>{body}); }

// in [blocks, 64] in rows of 80, out [blocks]; scratch [64], flags [64] (zero before each launch)
inline const std::vector<Sample>& samples() {
  static const std::vector<Sample> all = {
      {"block_sum",
       64,
       3,
       64,
       R"(
  QN_SMEM(smem);
  f32* partial = reinterpret_cast<f32*>(smem);
  const f32* row = p.in + 80 * blockIdx.x;
  f32 sum = ptx::ld_global<f32>(row + threadIdx.x);
  for (int i = 16; i; i /= 2) sum += ptx::shfl_xor(sum, i);
  if (ptx::lane_id() == 0) partial[ptx::warp_id()] = sum;
  ptx::sync_block();
  const f32 total = partial[0] + partial[1];
  ptx::sync_block();
  if (ptx::lane_id() == 0) partial[ptx::warp_id()] = total * 2;
  ptx::sync_block();
  if (threadIdx.x == 0) p.out[blockIdx.x] = partial[1] - total;
)",
       {{"no barrier before the partial sums are read", "ptx::sync_block();", "", {"RACE", "UNINIT"}},
        {"no barrier before they are overwritten", "partial[1];\n  ptx::sync_block();", "partial[1];", {"RACE"}},
        {"one warp's partial sum not written", "if (ptx::lane_id() == 0) partial", "if (threadIdx.x == 0) partial", {"UNINIT"}},
        {"row read past its end", "row + threadIdx.x", "row + threadIdx.x + 1", {"GLOBAL-OOB"}},
        {"row read before its begin", "row + threadIdx.x", "row + threadIdx.x - 1", {"GLOBAL-OOB"}},
        {"dynamic shared memory overrun", "partial[ptx::warp_id()] = sum", "partial[ptx::warp_id() + 15] = sum", {"SMEM-OOB"}},
        {"input written", "f32 sum = ", "const_cast<f32*>(row)[threadIdx.x] = 1; f32 sum = ", {"WRITE-TO-INPUT"}},
        {"output read before it is written", "f32 sum = ", "f32 sum = p.out[blockIdx.x] + ", {"UNINIT"}},
        {"output written by every block", "p.out[blockIdx.x]", "p.out[0]", {"RACE"}},
        {"output written by every thread", "if (threadIdx.x == 0) p.out", "p.out", {"RACE"}},
        {"barrier in a divergent branch",
         "ptx::sync_block();",
         "if (threadIdx.x < 48) ptx::sync_block();",
         {"BARRIER", "DEADLOCK", "UNINIT", "RACE"}},
        {"shuffle in a divergent branch", "for (int i = 16", "if (ptx::lane_id() != 3) for (int i = 16", {"DEADLOCK", "DIVERGENCE"}},
        {"two collectives in one warp",
         "for (int i = 16",
         "if (ptx::lane_id() & 1) sum = ptx::shfl(sum, 0); else sum = ptx::shfl_up(sum, 1); for (int i = 16",
         {"DIVERGENCE"}},
        {"misaligned vector load", "f32 sum = ", "ptx::ld_global<u32x2>(row + threadIdx.x); f32 sum = ", {"MISALIGNED"}},
        {"stack overflow", "f32 sum = ", "volatile char big[60000]; for (int i = 0; i < 60000; i += 64) big[i] = 1; f32 sum = ", {"STACK"}},
        {"null pointer", "- total", "- total + *(volatile f32*)(blockIdx.x * 4ull)", {"GLOBAL-OOB", "FAULT"}}}},
      {"warp_exchange",
       96,
       2,
       1024,
       R"(
  QN_SMEM(smem);
  f32* mine = reinterpret_cast<f32*>(smem) + 32 * ptx::warp_id();
  const u32 lane = ptx::lane_id();
  mine[lane] = f32(lane);
  ptx::sync_warp();
  f32 v = mine[31 - lane];
  ptx::sync_warp();
  mine[lane] = v * 2;
  ptx::sync_warp(0xffffffffu);
  f32 w = mine[lane ^ 1];
  if (threadIdx.x == 0) p.out[blockIdx.x] = w;
)",
       {{"no sync_warp before reading", "ptx::sync_warp();", "", {"RACE", "UNINIT"}},
        {"no sync_warp before overwriting", "- lane];\n  ptx::sync_warp();", "- lane];", {"RACE"}},
        {"a shuffle in place of sync_warp", "ptx::sync_warp();", "ptx::ballot(true);", {"RACE"}},
        {"sync_warp with the wrong halves", "ptx::sync_warp();", "ptx::sync_warp(lane < 16 ? 0xffffu : 0xffff0000u);", {"RACE", "UNINIT"}},
        {"mask without the caller", "ptx::sync_warp(0xffffffffu)", "ptx::sync_warp(0xfffffffeu)", {"DIVERGENCE"}},
        {"another warp's part", "32 * ptx::warp_id()", "32 * (ptx::warp_id() / 2)", {"RACE"}}}},
      {"copy_pipeline",
       64,
       2,
       2048,
       R"(
  QN_SMEM(smem);
  const u32 t = threadIdx.x, tiles = 6;
  const f32* row = p.in + 80 * blockIdx.x;
  const auto fetch = [&](u32 tile) {
    const u32 slot = ptx::smem_address(smem) + tile % 2 * 1024 + 16 * t;
    ptx::cp_async<16>(slot, row + (t * 4) % 64, tile % 3 == 2 ? 0 : 16);
    ptx::cp_async_commit();
  };
  f32 sum = 0;
  fetch(0);
  for (u32 tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) {
      fetch(tile + 1);
      ptx::cp_async_wait<1>();
    } else {
      ptx::cp_async_wait<0>();
    }
    ptx::sync_block();
    u32 fragment[4];
    ptx::ldmatrix_x4(fragment, ptx::smem_address(smem) + tile % 2 * 1024 + 16 * (63 - t));
    sum += ptx::f32_of_bits(fragment[tile % 4]);
    ptx::sync_block();
  }
  sum += ptx::ld_shared<f32>(smem + 1024 + 4 * t);
  if (t == 0) p.out[blockIdx.x] = sum;
)",
       {{"a stage is overwritten while it is read", "[tile % 4]);\n    ptx::sync_block();", "[tile % 4]);", {"RACE"}},
        {"no barrier after the wait", "    ptx::sync_block();\n    u32 fragment", "    u32 fragment", {"RACE", "UNINIT"}},
        {"the wait leaves the tile in flight", "ptx::cp_async_wait<1>", "ptx::cp_async_wait<2>", {"RACE"}},
        {"no wait for the last tile", "ptx::cp_async_wait<0>", "ptx::cp_async_wait<1>", {"RACE"}},
        {"never committed", "    ptx::cp_async_commit();", "", {"RACE"}},
        {"source past the row", "(t * 4) % 64", "t * 4 + 4", {"GLOBAL-OOB"}},
        {"destination past shared memory", "tile % 2 * 1024 + 16 * t;", "tile % 3 * 1024 + 16 * t;", {"SMEM-OOB", "RACE"}},
        {"own copy read without a wait",
         "ptx::cp_async_wait<0>();\n    }",
         "sum += ptx::ld_shared<f32>(smem + 1024 + 16 * t);\n ptx::cp_async_wait<0>();\n    }",
         {"RACE"}},
        {"matrix row misaligned", "16 * (63 - t)", "16 * (63 - t) + 8", {"MISALIGNED", "SMEM-OOB"}}}},
      {"last_block_sums",
       32,
       4,
       0,
       R"(
  const u32 t = threadIdx.x;
  if (t < 4) p.scratch[4 * blockIdx.x + t] = p.in[80 * blockIdx.x + t];
  ptx::fence_gpu();
  ptx::sync_block();
  u32 ticket = 0;
  if (t == 0) ticket = ptx::atomic_add(p.flags, 1u);
  ptx::fence_gpu();
  ticket = ptx::shfl(ticket, 0);
  ptx::sync_block();
  if (ticket == gridDim.x - 1 && t < 16) {
    f32 v = p.scratch[t];
    p.scratch[32 + t] = v;
  }
  ptx::sync_block();
  if (ticket == gridDim.x - 1 && t == 0) {
    f32 sum = 0;
    for (int i = 0; i < 16; ++i) sum += p.scratch[32 + i];
    p.out[0] = sum;
  }
)",
       {{"no fence by the writers", "  ptx::fence_gpu();\n  ptx::sync_block();\n  u32", "  ptx::sync_block();\n  u32", {"RACE"}},
        {"no fence by the reader", "  ptx::fence_gpu();\n  ticket", "  ticket", {"RACE"}},
        {"the writers' fence is the block's", "ptx::fence_gpu();", "ptx::fence_block();", {"RACE"}},
        {"the reader's fence is the block's", "  ptx::fence_gpu();\n  ticket", "  ptx::fence_block();\n  ticket", {"RACE"}},
        {"the reader's fence is the cluster's", "  ptx::fence_gpu();\n  ticket", "  ptx::fence_cluster();\n  ticket", {"RACE"}},
        {"no barrier before the ticket", "  ptx::sync_block();\n  u32", "  u32", {"RACE"}},
        {"an ordinary counter", "ptx::atomic_add(p.flags, 1u)", "p.flags[0]++", {"RACE"}},
        {"result read without a barrier",
         "    p.scratch[32 + t] = v;\n  }\n  ptx::sync_block();",
         "    p.scratch[32 + t] = v;\n  }",
         {"RACE", "UNINIT"}},
        {"partial sums overlap", "p.scratch[4 * blockIdx.x + t]", "p.scratch[3 * blockIdx.x + t]", {"RACE", "UNINIT"}},
        {"uninitialised workspace", "p.scratch[t];", "p.scratch[t + 1];", {"UNINIT"}}}},
      {"flag_chain",
       32,
       4,
       0,
       R"(
  if (threadIdx.x == 0) {
    const u32 b = blockIdx.x;
    f32 sum = p.in[80 * b];
    if (b > 0) {
      while (ptx::ld_acquire_gpu(p.flags + b - 1) == 0) {}
      sum += p.scratch[b - 1];
    }
    p.scratch[b] = sum;
    ptx::st_release_gpu(p.flags + b, 1u);
    p.out[b] = sum;
  }
)",
       {{"a flag stored without release", "ptx::st_release_gpu", "ptx::st_relaxed_gpu", {"RACE"}},
        {"a flag loaded without acquire", "ptx::ld_acquire_gpu", "ptx::ld_relaxed_gpu", {"RACE"}},
        {"the flag before the data",
         "p.scratch[b] = sum;\n    ptx::st_release_gpu(p.flags + b, 1u);",
         "ptx::st_release_gpu(p.flags + b, 1u);\n    p.scratch[b] = sum;",
         {"RACE", "UNINIT"}},
        {"the flag never set", "ptx::st_release_gpu(p.flags + b, 1u);", "", {"LIVELOCK"}},
        {"an ordinary flag", "ptx::st_release_gpu(p.flags + b, 1u);", "p.flags[b] = 1;", {"RACE"}}}},
      {"named_barriers",
       128,
       2,
       512,
       R"(
  QN_SMEM(smem);
  f32* data = reinterpret_cast<f32*>(smem);
  const u32 t = threadIdx.x;
  f32 sum = 0;
  for (int round = 0; round < 3; ++round) {
    if (t < 64) {
      if (round) ptx::bar_sync(2, 128);
      data[t] = f32(round);
      ptx::bar_arrive(1, 128);
    } else {
      ptx::bar_sync(1, 128);
      sum += data[127 - t];
      if (round < 2) ptx::bar_arrive(2, 128);
    }
  }
  if (t == 64) p.out[blockIdx.x] = sum;
)",
       {{"producer does not arrive", "      ptx::bar_arrive(1, 128);\n", "", {"DEADLOCK"}},
        {"consumer does not release", "      if (round < 2) ptx::bar_arrive(2, 128);\n", "", {"DEADLOCK"}},
        {"producer does not wait for release", "      if (round) ptx::bar_sync(2, 128);\n", "", {"RACE", "DEADLOCK", "BARRIER"}},
        {"consumer does not wait", "      ptx::bar_sync(1, 128);\n", "", {"RACE", "UNINIT", "DEADLOCK", "BARRIER"}},
        {"counts differ", "ptx::bar_sync(1, 128)", "ptx::bar_sync(1, 64)", {"BARRIER"}},
        {"wrong barrier", "ptx::bar_arrive(1, 128)", "ptx::bar_arrive(3, 128)", {"DEADLOCK", "BARRIER"}},
        {"released before it is read",
         "      sum += data[127 - t];\n      if (round < 2) ptx::bar_arrive(2, 128);",
         "      if (round < 2) ptx::bar_arrive(2, 128);\n      sum += data[127 - t];",
         {"RACE"}}}},
  };
  return all;
}

}  // namespace quern::emu::planted
