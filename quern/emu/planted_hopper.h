// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Like planted_kernels.h: faults that Hopper kernels in use have had, each in a small kernel of the kind that had it. Most
// runs of such a kernel are right, as the copy or the product is early enough.
#pragma once
#include "quern/emu/planted_kernels.h"

namespace quern::emu::planted {

inline const std::vector<Sample>& hopper_samples() {
  static const std::vector<Sample> all = {
      // Weights become fragments of A in registers while the product of the step before is computed.
      {"converted_fragments",
       128,
       2,
       512,
       R"(
  QN_SMEM(smem);
  const u32 t = threadIdx.x;
  if (t < 64) ptx::st_shared(smem + 4 * t, ptx::pack_bf16(f32(t % 7), p.in[t]));
  ptx::fence_proxy_async_shared();
  ptx::sync_block();
  const MatrixDescriptor b = k_major_descriptor(ptx::smem_address(smem), Swizzle::none, 128, 128);
  f32 d[4] = {};
  constexpr u32 kPlaces = 2;
  u32 fragments[kPlaces][4];
  const auto convert = [&](u32 step) {
    u32 (&a)[4] = fragments[step % kPlaces];
    for (u32 i = 0; i < 4; ++i) a[i] = ptx::pack_bf16(p.in[80 * blockIdx.x + (t + i) % 64], f32(step));
  };
  convert(0);
  for (u32 step = 0; step < 5; ++step) {
    u32 (&a)[4] = fragments[step % kPlaces];
    ptx::wgmma_hold(a);
    ptx::wgmma_fence();
    ptx::wgmma<bf16>(d, a, b, true);
    ptx::wgmma_commit();
    ptx::wgmma_wait<1>();
    if (step < 4) convert(step + 1);
  }
  ptx::wgmma_wait<0>();
  ptx::wgmma_hold(d);
  if (t == 0) p.out[blockIdx.x] = d[0];
)",
       {{"the next fragments in the registers of the product in flight", "kPlaces = 2", "kPlaces = 1", {"WGMMA"}},
        {"converted before the product before was waited for",
         "    ptx::wgmma_wait<1>();\n    if (step < 4) convert(step + 1);",
         "    if (step < 4) convert(step + 1);\n    ptx::wgmma_wait<1>();",
         {"WGMMA"}},
        {"the wait leaves two products in flight", "ptx::wgmma_wait<1>", "ptx::wgmma_wait<2>", {"WGMMA"}}},
       1,
       0,
       "quern/kit/wgmma.cuh"},
      // A tensor map for each group of a grouped product, in two places in turn; the box of a group is read while that of the
      // next is copied.
      {"grouped_maps",
       32,
       1,
       512,
       R"(
  QN_SMEM(smem);
  const u32 t = threadIdx.x, base = ptx::smem_address(smem), boxes = base + 128, full = base + 384;
  TensorMap* maps = reinterpret_cast<TensorMap*>(p.scratch);
  if (t == 0) {
    for (u32 s = 0; s < 2; ++s) ptx::mbarrier_init(full + 8 * s, 1);
    ptx::fence_mbarrier_init();
  }
  ptx::st_shared(smem + 4 * t, reinterpret_cast<const u32*>(&p.rows)[t]);
  ptx::sync_warp();
  f32 sum = 0;
  for (u32 group = 0; group <= 4; ++group) {
    const u32 s = group % 2;
    TensorMap* const map = maps + s;
    if (group < 4) {
      if (t == 0) ptx::tensormap_replace_address(base, p.in + 4 * group);
      ptx::sync_warp();
      ptx::tensormap_publish(map, base);
      ptx::sync_warp();
      if (t == 0) {
        ptx::fence_proxy_tensormap_acquire(map);
        ptx::mbarrier_arrive_expect_tx(full + 8 * s, 128);
        ptx::tma_load(boxes + 128 * s, map, full + 8 * s, CachePolicy::evict_normal, 0, 0);
      }
    }
    if (group > 0) {
      ptx::mbarrier_wait(full + 8 * (s ^ 1), (group - 1) / 2 & 1);
      sum += ptx::ld_shared<f32>(smem + 128 + 128 * (s ^ 1) + 4 * t);
    }
    ptx::sync_warp();
  }
  if (t == 0) p.out[0] = sum;
)",
       {{"a map replaced while the copy of the group before reads it", "map = maps + s", "map = maps", {"RACE"}},
        {"a replaced map used without its acquire",
         "ptx::fence_proxy_tensormap_acquire(map);",
         "if (group < 2) ptx::fence_proxy_tensormap_acquire(map);",
         {"PROXY"}}}},
      // Two warps compute on each stage; a lane of each frees it.
      {"two_math_warps",
       96,
       2,
       512,
       R"(
  QN_SMEM(smem);
  const u32 t = threadIdx.x, warp = ptx::warp_id(), lane = ptx::lane_id();
  const u32 base = ptx::smem_address(smem), full = base + 256, empty = base + 272;
  if (t == 0) {
    for (u32 s = 0; s < 2; ++s) {
      ptx::mbarrier_init(full + 8 * s, 1);
      ptx::mbarrier_init(empty + 8 * s, 2);
    }
    ptx::fence_mbarrier_init();
  }
  ptx::sync_block();
  f32 sum = 0;
  for (u32 tile = 0; tile < 6; ++tile) {
    const u32 s = tile % 2, parity = tile / 2 & 1;
    if (warp == 2) {
      if (lane == 0) {
        ptx::mbarrier_wait(empty + 8 * s, parity ^ 1);
        ptx::mbarrier_arrive_expect_tx(full + 8 * s, 128);
        ptx::tma_load(base + 128 * s, &p.rows, full + 8 * s, CachePolicy::evict_first, 32 * s, blockIdx.x);
      }
    } else {
      ptx::mbarrier_wait(full + 8 * s, parity);
      sum += ptx::ld_shared<f32>(smem + 128 * s + 4 * (31 - lane));
      ptx::sync_warp();
      if (lane == 0) ptx::mbarrier_arrive(empty + 8 * s);
    }
  }
  if (lane == 0 && warp == 0) p.out[blockIdx.x] = sum;
)",
       {{"a stage freed by the first of the math warps",
         "ptx::mbarrier_init(empty + 8 * s, 2)",
         "ptx::mbarrier_init(empty + 8 * s, 1)",
         {"RACE", "MBARRIER", "DEADLOCK"}},
        {"one math warp frees for both",
         "if (lane == 0) ptx::mbarrier_arrive(empty + 8 * s);",
         "if (t == 0) ptx::mbarrier_arrive(empty + 8 * s, 2);",
         {"RACE"}},
        {"freed by a lane before the others have read",
         "      ptx::sync_warp();\n      if (lane",
         "      if (lane",
         {"RACE", "DEADLOCK"}}}},
      // Blocks add their tiles by bulk reductions; the last one reads the sums.
      {"reduced_by_the_last_block",
       32,
       3,
       128,
       R"(
  QN_SMEM(smem);
  const u32 t = threadIdx.x, base = ptx::smem_address(smem);
  ptx::st_shared(smem + 4 * t, p.in[80 * blockIdx.x + t]);
  ptx::fence_proxy_async_shared();
  ptx::sync_warp();
  u32 ticket = 0;
  if (t == 0) {
    ptx::bulk_reduce_add(reinterpret_cast<f32*>(p.flags), base, 128);
    ptx::bulk_commit();
    ptx::bulk_wait<0>();
    ptx::fence_gpu();
    ticket = ptx::atomic_add(p.flags + 32, 1u);
    ptx::fence_gpu();
  }
  ticket = ptx::shfl(ticket, 0);
  ptx::sync_warp();
  const f32 sum = ticket == gridDim.x - 1 ? reinterpret_cast<const f32*>(p.flags)[t] : 0;
  if (ticket == gridDim.x - 1 && t == 7) p.out[0] = sum;
)",
       {{"the load of the sums hoisted over the reduction",
         "  u32 ticket = 0;",
         "  const f32 early = reinterpret_cast<const f32*>(p.flags)[t]; if (early == 77) p.out[1] = early;\n  u32 ticket = 0;",
         {"RACE"}},
        {"no sync_warp behind the ticket", "  ptx::sync_warp();\n  const", "  const", {"RACE"}},
        {"only the reduction's source is waited for", "ptx::bulk_wait<0>", "ptx::bulk_wait_read<0>", {"RACE"}},
        {"no fence before the ticket", "    ptx::fence_gpu();\n    ticket = ", "    ticket = ", {"RACE"}},
        {"no fence behind the ticket", "1u);\n    ptx::fence_gpu();", "1u);", {"RACE"}}}},
      // Weights are fetched while the launch before may still run, activations behind the wait for it.
      {"early_weights",
       32,
       2,
       512,
       R"(
  QN_SMEM(smem);
  const u32 t = threadIdx.x, base = ptx::smem_address(smem), full = base + 256;
  f32* mine = reinterpret_cast<f32*>(p.flags) + 32 * blockIdx.x;
  if (t == 0) {
    ptx::mbarrier_init(full, 1);
    ptx::fence_mbarrier_init();
    ptx::mbarrier_arrive_expect_tx(full, 256);
    ptx::bulk_load(base, p.in, 128, full);
  }
  ptx::sync_warp();
  ptx::grid_dependency_wait();
  if (t == 0) {
    ptx::fence_proxy_async_global();
    ptx::bulk_load(base + 128, mine, 128, full);
  }
  ptx::grid_launch_dependents();
  ptx::mbarrier_wait(full, 0);
  mine[t] = ptx::ld_shared<f32>(smem + 4 * t) + ptx::ld_shared<f32>(smem + 128 + 4 * t);
  if (t == 0) p.out[blockIdx.x] = 1;
)",
       {{"the load of activations hoisted over the wait for the launch before",
         "  ptx::grid_dependency_wait();\n  if (t == 0) {\n    ptx::fence_proxy_async_global();\n    ptx::bulk_load(base + 128, mine, 128, full);\n  }",
         "  if (t == 0) {\n    ptx::fence_proxy_async_global();\n    ptx::bulk_load(base + 128, mine, 128, full);\n  }\n  ptx::grid_dependency_wait();",
         {"RACE"}},
        {"an ordinary load hoisted over the wait for the launch before",
         "  ptx::sync_warp();\n  ptx::grid",
         "  if (mine[t] == 77) p.out[blockIdx.x] = 2;\n  ptx::sync_warp();\n  ptx::grid",
         {"RACE"}},
        {"the issuing thread alone waits for the launch before",
         "  ptx::grid_dependency_wait();",
         "  if (t == 0) ptx::grid_dependency_wait();",
         {"RACE"}}},
       1,
       3},
      // A warp fetches B, a warpgroup multiplies it by A from registers.
      {"fetch_and_multiply",
       160,
       2,
       1024,
       R"(
  QN_SMEM(smem);
  const u32 t = threadIdx.x, base = ptx::smem_address(smem), full = base + 512, empty = base + 528;
  if (t == 0) {
    for (u32 s = 0; s < 2; ++s) {
      ptx::mbarrier_init(full + 8 * s, 1);
      ptx::mbarrier_init(empty + 8 * s, 4);
    }
    ptx::fence_mbarrier_init();
  }
  ptx::sync_block();
  if (t >= 128) {
    for (u32 tile = 0; t == 128 && tile < 6; ++tile) {
      const u32 s = tile % 2, parity = tile / 2 & 1;
      ptx::mbarrier_wait(empty + 8 * s, parity ^ 1);
      ptx::mbarrier_arrive_expect_tx(full + 8 * s, 256);
      ptx::bulk_load(base + 256 * s, p.in + 80 * blockIdx.x, 256, full + 8 * s);
    }
  } else {
    f32 d[4] = {};
    u32 a[4];
    for (u32 i = 0; i < 4; ++i) a[i] = ptx::pack_bf16(f32(i), f32(t));
    ptx::wgmma_hold(a);
    for (u32 tile = 0; tile < 6; ++tile) {
      const u32 s = tile % 2, parity = tile / 2 & 1;
      const MatrixDescriptor b = k_major_descriptor(base + 256 * s, Swizzle::none, 128, 128);
      ptx::mbarrier_wait(full + 8 * s, parity);
      ptx::wgmma_fence();
      ptx::wgmma<bf16>(d, a, b, true);
      ptx::wgmma_commit();
      ptx::wgmma_wait<0>();
      if (t % 32 == 0) ptx::mbarrier_arrive(empty + 8 * s);
    }
    ptx::wgmma_hold(d);
    if (t == 0) p.out[blockIdx.x] = d[0];
  }
)",
       {{"no wait for the copy", "      ptx::mbarrier_wait(full + 8 * s, parity);\n", "", {"RACE", "UNINIT"}},
        {"the wait for the copy behind the product",
         "      ptx::mbarrier_wait(full + 8 * s, parity);\n      ptx::wgmma_fence();\n      ptx::wgmma<bf16>(d, a, b, true);\n      ptx::wgmma_commit();",
         "      ptx::wgmma_fence();\n      ptx::wgmma<bf16>(d, a, b, true);\n      ptx::wgmma_commit();\n      ptx::mbarrier_wait(full + 8 * s, parity);",
         {"RACE", "UNINIT"}},
        {"waited for in the first round alone",
         "ptx::mbarrier_wait(full + 8 * s, parity);",
         "if (tile < 2) ptx::mbarrier_wait(full + 8 * s, parity);",
         {"RACE"}},
        {"one warp waits for all four",
         "ptx::mbarrier_wait(full + 8 * s, parity);",
         "if (t < 32) ptx::mbarrier_wait(full + 8 * s, parity);",
         {"RACE", "UNINIT"}},
        {"freed before the product has read it",
         "      ptx::wgmma_wait<0>();\n      if (t % 32 == 0) ptx::mbarrier_arrive(empty + 8 * s);",
         "      if (t % 32 == 0) ptx::mbarrier_arrive(empty + 8 * s);\n      ptx::wgmma_wait<0>();",
         {"RACE"}}},
       1,
       0,
       "quern/kit/wgmma.cuh"},
  };
  return all;
}

}  // namespace quern::emu::planted
