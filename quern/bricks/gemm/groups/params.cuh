// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Parameters of a tile's own group, for kernels whose blocks make tiles of many groups.
#pragma once
#include "quern/kit/kit.cuh"

namespace quern::gemm {

/// make(params) by the block, with params_of(), which is in shared memory at `memory` as the parameters of a kernel are in constant
/// memory: beside the sums there are no registers for them.
template <class Params, class ParamsOf, class Make>
QN_DEVICE void make_with(u8* memory, const ParamsOf& params_of, const Make& make) {
  Params* const params = reinterpret_cast<Params*>(memory);
  if (threadIdx.x == 0) *params = params_of();
  ptx::sync_block();
  make(*params);
  ptx::sync_block();  // ragged results went through the shared memory that the next tile fills
}

}  // namespace quern::gemm
