// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "tests/planted_faults.h"

namespace quern::planted {

static const Checked checked{{
    // Tiles of 256 rows, the last of which have fewer than 128 of their own
    {"ops/gemm/grouped/warp_specialised_sm90/scaled_kernel.cuh",
     "gemm.grouped_masked",
     "hopper=4 bits8=1 out_f32=0 k=300 spread=1 a.pad=0 out.pad=0",
     {{"rows of the second warpgroup 64 behind the first's",
       "warpgroup * u32(C.block.tiles.tile_m / 2)",
       "warpgroup * 64",
       {"RACE", "UNINIT", kWrongResult}},
      {"the first half's sums for both", "place.column, total[half]", "place.column, total[0]", {kWrongResult}}},
     1},
    {"ops/gemm/grouped/warp_specialised_sm90/scaled_kernel.cuh",
     "gemm.grouped_masked",
     "hopper=3 bits8=1 out_f32=0 k=1300 n=264 spread=1 a.pad=0 out.pad=0",
     {{"a tile read before its slot has come", "    begin_read(slots);\n    begin_together", "    begin_together", {"RACE", "UNINIT"}},
      {"a slot kept", "    end_read(slots);\n    const DenseTile", "    skip_read(slots);\n    const DenseTile", {"DEADLOCK"}}},
     1},
    // Scales of a by the warps that copy them, which are told the tiles
    {"ops/gemm/grouped/warp_specialised_sm90/scaled_kernel.cuh",
     "gemm.grouped_masked",
     "hopper=3 bits8=1 out_f32=0 k=1300 n=264 spread=1 a.pad=0 out.pad=0 scales_a.transposed=0",
     {{"slots filled again while scales are copied by them",
       "p.boxes.used != 0 ? 0 : scale_stages(C.product).warps",
       "0",
       {"RACE", "MBARRIER", "DEADLOCK"}},
      {"a slot kept by the warps that copy scales",
       "    end_read(slots);\n  }\n  finish_scales();",
       "    skip_read(slots);\n  }\n  finish_scales();",
       {"DEADLOCK"}}},
     1},
    {"ops/gemm/grouped/warp_specialised_sm90/scaled_kernel.cuh",
     "gemm.grouped_masked",
     "hopper=6 bits8=1 out_f32=0 k=300 spread=1 a.pad=0 out.pad=0",
     {{"columns behind a tile of the tail stored",
       "i32(tile.tail) * (C.block.tiles.tile_n - C.block.tiles.tail)",
       "0",
       {kWrongResult, "RACE"}}},
     1},
    // A tile a block: in a ring that wide tiles have been through, what is read behind a narrower one is theirs, and is not stored
    {"ops/gemm/grouped/warp_specialised_sm90/scaled_kernel.cuh",
     "gemm.grouped_masked",
     "hopper=6 bits8=1 out_f32=0 k=300 spread=1 a.pad=0 out.pad=0",
     {{"a tile of the tail multiplied as a wide one", "ptx::ballot(tile.tail) != 0", "false", {"RACE", "UNINIT"}}}},
    {"ops/gemm/grouped/warp_specialised_sm90/scaled_kernel.cuh",
     "gemm.grouped_masked",
     "hopper=5 bits8=1 out_f32=0 k=300 spread=1 a.pad=0 out.pad=0 scales_a.transposed=1 scales_a.pad=0",
     {{"scales of the first matrix for all", "matrix_of(p.gemm, tile) * p.boxes.columns + step", "step", {kWrongResult}}},
     1},
}};

}  // namespace quern::planted
