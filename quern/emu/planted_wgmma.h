// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Correct kernels of warpgroups and what breaks them, as in planted_kernels.h.
#pragma once
#include "quern/emu/planted_kernels.h"

namespace quern::emu::planted {

inline const std::vector<Sample>& wgmma_samples() {
  static const std::vector<Sample> all = {
      // One warpgroup writes tiles of A [64][16] and B [32][16] in two stages, the other multiplies.
      {"wgmma_ring",
       256,
       2,
       6144,
       R"(
  QN_SMEM(smem);
  const u32 t = threadIdx.x, group = ptx::shfl(warpgroup_id(), 0);
  if (group == 1) {
    for (u32 round = 0; round < 4; ++round) {
      if (round >= 2) ptx::bar_sync(3 + round % 2, 256);
      u8* stage = smem + round % 2 * 3072;
      for (u32 i = t - 128; i < 768; i += 128)
        ptx::st_shared(stage + 4 * i, ptx::pack_bf16(p.in[i % 64], f32(round)));
      ptx::fence_proxy_async_shared();
      ptx::bar_arrive(1 + round % 2, 256);
    }
  } else {
    f32 d[16] = {};
    for (u32 round = 0; round < 4; ++round) {
      ptx::bar_sync(1 + round % 2, 256);
      const u32 stage = ptx::smem_address(smem) + round % 2 * 3072;
      const MatrixDescriptor a = k_major_descriptor(stage, Swizzle::none, 256, 128);
      const MatrixDescriptor b = k_major_descriptor(stage + 2048, Swizzle::none, 256, 128);
      ptx::wgmma_hold(d);
      ptx::wgmma_fence();
      ptx::wgmma<bf16>(d, a, b, true);
      ptx::wgmma_commit();
      ptx::wgmma_wait<0>();
      ptx::wgmma_hold(d);
      if (round < 2) ptx::bar_arrive(3 + round % 2, 256);
    }
    if (t == 0) p.out[blockIdx.x] = d[0];
  }
)",
       {{"no proxy fence behind the stores", "      ptx::fence_proxy_async_shared();\n", "", {"PROXY"}},
        {"one of the writers fences", "      ptx::fence_proxy", "      if (t == 128) ptx::fence_proxy", {"PROXY"}},
        {"the proxy fence behind the arrival",
         "ptx::fence_proxy_async_shared();\n      ptx::bar_arrive(1 + round % 2, 256);",
         "ptx::bar_arrive(1 + round % 2, 256);\n      ptx::fence_proxy_async_shared();",
         {"PROXY"}},
        {"a fence of global memory only", "async_shared()", "async_global()", {"PROXY"}},
        {"a stage released before it is read",
         "ptx::wgmma_wait<0>();\n      ptx::wgmma_hold(d);\n      if (round < 2) ptx::bar_arrive(3 + round % 2, 256);",
         "if (round < 2) ptx::bar_arrive(3 + round % 2, 256);\n      ptx::wgmma_wait<0>();\n      ptx::wgmma_hold(d);",
         {"RACE"}},
        {"the wait leaves the product in flight", "ptx::wgmma_wait<0>", "ptx::wgmma_wait<1>", {"RACE", "WGMMA"}},
        {"never waited for", "      ptx::wgmma_wait<0>();\n", "", {"RACE", "WGMMA"}},
        {"never committed", "      ptx::wgmma_commit();\n", "", {"RACE", "WGMMA"}},
        {"committed behind the wait",
         "ptx::wgmma_commit();\n      ptx::wgmma_wait<0>();",
         "ptx::wgmma_wait<0>();\n      ptx::wgmma_commit();",
         {"RACE", "WGMMA"}},
        {"no wgmma_fence", "      ptx::wgmma_fence();\n", "", {"WGMMA"}},
        {"accumulators written behind the fence", "ptx::wgmma_fence();", "ptx::wgmma_fence();\n      d[0] += 1;", {"WGMMA"}},
        {"an accumulator read before the wait",
         "ptx::wgmma_wait<0>();",
         "if (d[0] == 77) p.out[blockIdx.x] = 1;\n      ptx::wgmma_wait<0>();",
         {"WGMMA"}},
        {"an accumulator written before the wait", "ptx::wgmma_wait<0>();", "d[3] = 0;\n      ptx::wgmma_wait<0>();", {"WGMMA"}},
        {"no wait before the thread exits",
         "ptx::wgmma_wait<0>();\n      ptx::wgmma_hold(d);\n      if",
         "if (round == 3) return;\n      ptx::wgmma_wait<0>();\n      ptx::wgmma_hold(d);\n      if",
         {"WGMMA"}},
        {"the tile is not waited for",
         "      ptx::bar_sync(1 + round % 2, 256);\n",
         "",
         {"RACE", "UNINIT", "PROXY", "DEADLOCK", "BARRIER"}},
        {"the stage is not waited for", "      if (round >= 2) ptx::bar_sync(3 + round % 2, 256);\n", "", {"RACE", "DEADLOCK", "BARRIER"}},
        {"rows of B not written", "i < 768", "i < 700", {"UNINIT"}},
        {"B past shared memory", "stage + 2048", "stage + 6016", {"SMEM-OOB"}},
        {"strides of another layout",
         "stage + 2048, Swizzle::none, 256, 128",
         "stage + 2048, Swizzle::none, 256, 4096",
         {"SMEM-OOB", "UNINIT"}},
        {"a warp takes no part", "ptx::wgmma<bf16>", "if (t / 32 != 3) ptx::wgmma<bf16>", {"DEADLOCK"}},
        {"a lane takes no part", "ptx::wgmma<bf16>", "if (t != 77) ptx::wgmma<bf16>", {"DIVERGENCE", "DEADLOCK"}},
        {"warps with tiles of their own", "k_major_descriptor(stage,", "k_major_descriptor(stage + t / 32 * 16,", {"DIVERGENCE"}}},
       1,
       0,
       "quern/kit/wgmma.cuh"},
      // A from registers, two sums in turn, one product in flight.
      {"wgmma_fragments",
       128,
       2,
       1024,
       R"(
  QN_SMEM(smem);
  const u32 t = threadIdx.x;
  for (u32 i = t; i < 256; i += 128) ptx::st_shared(smem + 4 * i, ptx::pack_bf16(f32(i % 7), p.in[i % 64]));
  ptx::fence_proxy_async_shared();
  ptx::sync_block();
  const MatrixDescriptor b = k_major_descriptor(ptx::smem_address(smem), Swizzle::b32);
  f32 d[2][8] = {};
  u32 fragments[2][4];
  for (u32 step = 0; step < 6; ++step) {
    f32 (&sum)[8] = d[step % 2];
    u32 (&a)[4] = fragments[step % 2];
    for (u32 i = 0; i < 4; ++i) a[i] = ptx::pack_bf16(f32(step), p.in[(t + i) % 64]);
    ptx::wgmma_hold(a);
    ptx::wgmma_hold(sum);
    ptx::wgmma_fence();
    ptx::wgmma<bf16>(sum, a, b, step > 1);
    ptx::wgmma_commit();
    ptx::wgmma_wait<1>();
    ptx::wgmma_hold(d[0]);
    ptx::wgmma_hold(d[1]);
  }
  ptx::wgmma_wait<0>();
  ptx::wgmma_hold(d[0]);
  ptx::wgmma_hold(d[1]);
  if (t == 0) p.out[blockIdx.x] = d[0][0] + d[1][0];
)",
       {{"a fragment overwritten while it is read", "fragments[step % 2]", "fragments[0]", {"WGMMA"}},
        {"the wait leaves the sum in flight", "ptx::wgmma_wait<1>", "ptx::wgmma_wait<2>", {"WGMMA"}},
        {"no wait for the last product", "ptx::wgmma_wait<0>();", "", {"WGMMA"}},
        {"a fragment made behind the fence",
         "ptx::wgmma_fence();",
         "ptx::wgmma_fence();\n    a[0] = ptx::pack_bf16(f32(step), 1);",
         {"WGMMA"}},
        {"the fence before the fragments",
         "    ptx::wgmma_fence();\n    ptx::wgmma<bf16>(sum, a, b, step > 1);",
         "    if (step == 0) ptx::wgmma_fence();\n    ptx::wgmma<bf16>(sum, a, b, step > 1);",
         {"WGMMA"}},
        {"a fragment read while it is held",
         "ptx::wgmma_wait<1>();",
         "if (a[1] == 3) p.out[blockIdx.x] = 1;\n    ptx::wgmma_wait<1>();",
         {"WGMMA"}},
        {"a fragment loaded by ldmatrix while it is held",
         "ptx::wgmma_wait<1>();",
         "ptx::ldmatrix_x4(a, ptx::smem_address(smem) + 16 * ptx::lane_id());\n    ptx::wgmma_wait<1>();",
         {"WGMMA"}},
        {"another shape into the same sum",
         "ptx::wgmma_commit();",
         "ptx::wgmma<bf16>(reinterpret_cast<f32(&)[4]>(sum), a, b, true);\n    ptx::wgmma_commit();",
         {"WGMMA"}},
        {"B overwritten while it is read",
         "ptx::wgmma_wait<1>();",
         "ptx::st_shared(smem + 4 * t, 0u);\n    ptx::wgmma_wait<1>();",
         {"RACE"}},
        {"no barrier behind the stores", "  ptx::sync_block();\n", "", {"RACE", "UNINIT", "PROXY"}},
        {"no proxy fence", "  ptx::fence_proxy_async_shared();\n", "", {"PROXY"}}},
       1,
       0,
       "quern/kit/wgmma.cuh"},
      // 384 threads are launched with 168 registers each.
      {"register_pool",
       384,
       2,
       0,
       R"(
  const u32 group = ptx::shfl(warpgroup_id(), 0);
  if (group == 2) {
    ptx::decrease_registers<40>();
  } else {
    ptx::increase_registers<232>();
    if (threadIdx.x == 0) p.out[blockIdx.x] = 1;
  }
)",
       {{"more than the pool will ever have", "increase_registers<232>", "increase_registers<240>", {"DEADLOCK"}},
        {"nothing given back", "ptx::decrease_registers<40>();", "", {"DEADLOCK"}},
        {"a warp gives nothing back",
         "ptx::decrease_registers<40>();",
         "if (ptx::warp_id() != 9) ptx::decrease_registers<40>();",
         {"DEADLOCK", "REGISTERS"}},
        {"a warp takes nothing",
         "ptx::increase_registers<232>();",
         "if (ptx::warp_id() != 1) ptx::increase_registers<232>();",
         {"REGISTERS"}},
        {"warps of a warpgroup take different numbers",
         "ptx::increase_registers<232>();",
         "if (ptx::warp_id() != 1) ptx::increase_registers<232>(); else ptx::increase_registers<224>();",
         {"REGISTERS"}},
        {"a lane takes no part",
         "ptx::increase_registers<232>();",
         "if (threadIdx.x != 5) ptx::increase_registers<232>();",
         {"DEADLOCK", "DIVERGENCE"}},
        {"an increase to fewer", "increase_registers<232>", "increase_registers<160>", {"REGISTERS"}},
        {"a decrease to more", "decrease_registers<40>", "decrease_registers<176>", {"REGISTERS"}}},
       1,
       0,
       "quern/kit/wgmma.cuh"},
      {"stmatrix_store",
       32,
       2,
       512,
       R"(
  QN_SMEM(smem);
  const u32 lane = ptx::lane_id();
  u32 words[4];
  for (u32 i = 0; i < 4; ++i) words[i] = ptx::pack_bf16(p.in[lane], f32(i));
  ptx::stmatrix_x4(ptx::smem_address(smem) + 16 * lane, words);
  ptx::sync_warp();
  f32 low, high;
  ptx::unpack_bf16(ptx::ld_shared<u32>(smem + 16 * (31 - lane)), low, high);
  if (ptx::elect_sync()) p.out[blockIdx.x] = low + high;
)",
       {{"no sync_warp behind the store", "  ptx::sync_warp();\n", "", {"RACE", "UNINIT"}},
        {"half of the matrices stored",
         "stmatrix_x4(ptx::smem_address(smem) + 16 * lane, words)",
         "stmatrix_x2(ptx::smem_address(smem) + 16 * lane, reinterpret_cast<u32(&)[2]>(words))",
         {"UNINIT"}},
        {"a row misaligned", "ptx::smem_address(smem) + 16 * lane", "ptx::smem_address(smem) + 16 * lane + 8", {"MISALIGNED", "SMEM-OOB"}},
        {"rows past shared memory", "ptx::smem_address(smem) + 16 * lane", "ptx::smem_address(smem) + 16 * lane + 256", {"SMEM-OOB"}},
        {"stored by some lanes", "ptx::stmatrix_x4", "if (lane < 31) ptx::stmatrix_x4", {"DIVERGENCE", "DEADLOCK"}},
        {"every lane elected", "if (ptx::elect_sync()) ", "", {"RACE"}}}},
  };
  return all;
}

}  // namespace quern::emu::planted
