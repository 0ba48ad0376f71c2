// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/op/plan.h"

#include "quern/base/error.h"

namespace quern {

[[gnu::cold, gnu::noinline]] void fail_grid(const jit::KernelInfo& kernel, const Grid& grid) {
  const auto extents = [](i64 x, i64 y, i64 z) { return std::to_string(x) + " x " + std::to_string(y) + " x " + std::to_string(z); };
  const std::string wanted = kernel.name + " would need a grid of " + extents(grid.x, grid.y, grid.z) + " blocks";
  const ClusterShape& c = grid.cluster;
  const bool whole = c.blocks() != 0 && grid.x % c.x == 0 && grid.y % c.y == 0 && grid.z % c.z == 0;
  if (whole) throw Error(ErrorKind::unsupported, wanted + ", a GPU launches 1 to 2147483647 x 65535 x 65535");
  throw Error(ErrorKind::internal, wanted + " in clusters of " + extents(c.x, c.y, c.z) + ", expected a multiple of them along each axis");
}

[[gnu::cold, gnu::noinline]] void fail_count(const char* what, int most) {
  throw Error(ErrorKind::internal,
              "plan adds " + std::string(what) + " " + std::to_string(most + 1) + ", expected at most " + std::to_string(most));
}

Region Plan::add_region(const char* name, RegionKind kind, i64 bytes) {
  constexpr i64 kAlignment = 256;
  if (region_count >= kMaxRegions) fail_count("region", kMaxRegions);
  if (bytes < 0)
    throw Error(ErrorKind::internal,
                "plan's region `" + std::string(name) + "` has " + std::to_string(bytes) + " bytes, expected 0 or more");
  RegionFacts& r = regions[region_count];
  r = {name, kind, 0, bytes};
  if (kind != RegionKind::kept) {
    r.offset = round_up<i64>(workspace, kAlignment);
    workspace = r.offset + bytes;
  }
  return {region_count++};
}

void Plan::fill(Region region, u8 byte) {
  // A Fill without a region is one of an output
  if (!region) throw Error(ErrorKind::internal, "plan fills a region that is none, expected one that it added");
  add_fill({region, 0, count, byte});
}

void Plan::add_fill(const Fill& f) {
  if (count + fill_count >= kMaxSteps) fail_count("step", kMaxSteps);
  fills[fill_count++] = f;
}

}  // namespace quern
