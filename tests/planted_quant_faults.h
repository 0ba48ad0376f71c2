// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Textual changes that break quantisers and the packing of bits, see planted_faults.h.
#pragma once
#include "planted_faults.h"

namespace quern::planted {

inline const std::vector<FaultyCase>& quant_faults() {
  static const std::vector<FaultyCase> all = {
      {"ops/quant/per_token_group/kernel.cuh",
       "quant.per_token_group",
       "m=5 k=200 group_size=32 q.dtype=i8",
       {{"the maximum of four groups", "warp_max_nan<fp8_group_lanes(C.group)>", "warp_max_nan<kFp8GroupLanes>", {kWrongResult}},
        {"columns past the end loaded",
         "if (row < p.m && column + a * part.kStep < p.k) part.access[a]",
         "if (row < p.m) part.access[a]",
         {"GLOBAL-OOB"}}}},
      {"ops/quant/segment_packbits/kernel.cuh",
       "quant.segment_packbits",
       "bits=1000 segments=300",
       {{"elements of the next segment", "element_bound<C.indptr_dtype>(p, segment + 1) - begin);", "8);", {"GLOBAL-OOB", kWrongResult}},
        {"the sum of segments before is lost", "before += total;", "", {kWrongResult}}}},
  };
  return all;
}

}  // namespace quern::planted
