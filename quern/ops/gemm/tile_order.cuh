// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/kit.cuh"

namespace quern::gemm {

/// A tile's place among the tiles of a matrix.
struct TilePlace {
  u32 m, n;
};

/// The place of tile `index`: groups of 8 along m, then along n, so that blocks that run together share rows of a and b in the L2.
template <class Index>
QN_DEVICE TilePlace tile_in_order(Index index, u32 tiles_m, u32 tiles_n) {
  constexpr u32 kGroup = 8;
  const Index group_tiles = Index(kGroup) * tiles_n;
  const u32 group = u32(index / group_tiles), inside = u32(index - group * group_tiles);
  const u32 rows = min_of(kGroup, tiles_m - group * kGroup), column = inside / rows;
  return {group * kGroup + inside - column * rows, column};
}

}  // namespace quern::gemm
