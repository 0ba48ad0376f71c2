// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/norm/norm_row_backward/norm_row_backward.h"

namespace quern::norm {

const jit::Kernel<NormRowBackwardConfig, NormRowBackwardParams> norm_row_backward_kernel{"quern/ops/norm/norm_row_backward/kernel.cuh",
                                                                                         "norm_row_backward"};

void lay_rows(NormRowBackwardConfig& c, i64 hidden) {
  const i64 units = ceil_div<i64>(max_of<i64>(hidden, 1) * size_of(c.dtype), 16);
  while (hidden % c.vector) c.vector /= 2;
  const bool narrow = c.vector * size_of(c.dtype) < 16;
  c.held = 1, c.row_threads = 32, c.threads = 256, c.min_blocks = 2;
  // A warp a row while 4 units a lane hold dy and x of it; then a block a row with 2 units a thread, which of the 128 registers
  // that 512 threads an SM may have leave some for the next row (4 units, or 1024 threads, spill 16 to 200 bytes). Longer rows are
  // read for each pass.
  if (units <= 32 * 4) {
    while (32 * c.held < units) c.held *= 2;
    // Each element of a narrow access takes a register; a sum over rows beside 4 units of bf16 takes 8 more than the 128 that two blocks
    // leave a thread.
    const bool full = c.dtype == DType::bf16 || row_sums(c) == 2 || c.centred != 0 || c.add_gradient != 0;
    if (narrow || (c.held == 4 && row_sums(c) > 0 && full)) c.min_blocks = 1;
    return;
  }
  c.held = 2;
  c.threads = 128;
  while (c.threads < 512 && i64(c.threads) * c.held < units) c.threads *= 2;
  // Centred rows of 16 bits have no room for 1024 threads (they spill 16 bytes), those of f32 none for 768 (8 bytes)
  if (i64(c.threads) * c.held < units) c.threads = !c.centred ? 1024 : c.dtype == DType::f32 ? 640 : 768, c.held = 0;
  if (narrow) c.held = 0;
  c.row_threads = c.threads;
  c.min_blocks = max_of(1, 512 / c.threads);
}

i64 backward_blocks(const NormRowBackwardConfig& c, i64 tokens, i32 sms) {
  return min_of(ceil_div<i64>(tokens, c.threads / c.row_threads), i64(sms) * max_of(1, 512 / c.threads));
}

}  // namespace quern::norm
