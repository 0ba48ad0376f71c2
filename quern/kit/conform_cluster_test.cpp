// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Shapes of clusters, in every world.
#include <gtest/gtest.h>

#include <algorithm>

#include "quern/kit/conform/runner.h"

namespace quern::conform {
namespace {

class Clusters : public Conform {
 protected:
  void SetUp() override {
    const bool gpu = GetParam().compiler.empty();
    if (gpu && device_of({DeviceType::cuda, 0}).info().arch.number < 90) GTEST_SKIP() << "needs a GPU of sm_90";
  }
};
INSTANTIATE_TEST_SUITE_P(Worlds, Clusters, ::testing::ValuesIn(worlds(2)), world_name);

/// Blocks of a cluster along y and z too: ranks count along x first, then along y. out u32 [blocks, 3]: rank, blocks of the cluster, and
/// what the block with the next rank is.
TEST_P(Clusters, of_three_dimensions) {
  const char* const text = R"(#include "quern/kit/conform/params.h"
#include "quern/kit/world.cuh"
namespace quern::conform {
QN_DEVICE void cluster_shape(const Params& p) {
  QN_SMEM(smem);
  const u32 block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x, base = ptx::smem_address(smem);
  const u32 rank = ptx::cluster_rank(), blocks = ptx::cluster_blocks();
  if (threadIdx.x == 0) *reinterpret_cast<u32*>(smem) = block;
  ptx::cluster_arrive();
  ptx::cluster_wait();
  u32* out = static_cast<u32*>(p.out) + 3 * block;
  if (threadIdx.x == 0) out[0] = rank, out[1] = blocks, out[2] = ptx::ld_shared_cluster<u32>(ptx::cluster_address(base, (rank + 1) % blocks));
  ptx::cluster_arrive();
  ptx::cluster_wait();
}
}
QN_ENTRY(conform, quern::conform::Params, 32, 1, quern::conform::cluster_shape(p))
)";
  const std::vector<u32> in(1);
  Kernel kernel(GetParam(), text, 32, 1024);
  const ClusterShape shapes[] = {{2, 2, 2}, {1, 4, 2}, {2, 1, 4}};
  const u32 grid[3] = {4, 8, 4};
  std::copy(grid, grid + 3, kernel.config.grid);
  const auto linear = [&](u32 x, u32 y, u32 z) { return (z * grid[1] + y) * grid[0] + x; };
  for (const ClusterShape& c : shapes) {
    kernel.config.cluster = c;
    std::vector<u32> out(3 * 4 * 8 * 4, 0xffffffff);
    kernel.run(in, out, 0);
    for (u32 i = 0; i < 4 * 8 * 4; ++i) {
      const u32 x = i % 4, y = i / 4 % 8, z = i / 32;
      const u32 rank = (z % c.z * c.y + y % c.y) * c.x + x % c.x, next = (rank + 1) % 8;
      const u32 theirs = linear(x - x % c.x + next % c.x, y - y % c.y + next / c.x % c.y, z - z % c.z + next / c.x / c.y);
      EXPECT_EQ(std::vector<u32>(&out[3 * i], &out[3 * i] + 3), (std::vector<u32>{rank, 8, theirs}))
          << to_string(c) << " at " << x << " " << y << " " << z;
    }
  }
}

}  // namespace
}  // namespace quern::conform
