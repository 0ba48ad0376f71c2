// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/norm/norm_row/norm_row.h"

namespace quern::norm {

const jit::Kernel<NormRowConfig, NormRowParams> norm_row_kernel{"quern/ops/norm/norm_row/kernel.cuh", "norm_row"};
const jit::Kernel<NormRowConfig, NormRowGroupsParams> norm_row_groups_kernel{"quern/ops/norm/norm_row/groups.cuh", "norm_row_groups"};

NormRowConfig norm_row_config(DType dtype, i32 vector, i64 hidden, bool add_residual, bool groups) {
  while (hidden % vector) vector /= 2;
  NormRowConfig c{dtype, add_residual, vector, 0, 32, 256, 4};
  const bool narrow = vector * size_of(dtype) < 16;
  const i64 units = ceil_div<i64>(max_of<i64>(hidden, 1) * size_of(dtype), 16);
  // A warp a row while 4 units a lane hold it (8 rows a block); then a block a row with 2 units a thread, which keeps
  // 32 bytes a thread in flight within the 64 registers that 1024 threads may have (4 units spill 180 bytes). Longer rows, of
  // more than 32 KB, are read twice, the second time from L2.
  if (units <= 32 * 4) {
    c.held = 1;
    while (32 * c.held < units) c.held *= 2;
    if (c.held == 4) c.min_blocks = 2;  // about 100 registers a thread
    if (narrow) c.min_blocks = 1;       // each element of a narrow access takes a register
    return c;
  }
  c.held = 2;
  // A power of two: with 192 threads 471 rows of 3072 took 8.2 us, with 256 5.5 (fused_add_rms_norm, an H100). With groups, whose 72
  // registers leave room for fewer blocks, 448 threads for rows of 7168 are faster than 512.
  c.threads = 128;
  while (i64(c.threads) * c.held < units && c.threads < 1024) c.threads = groups ? c.threads + 64 : 2 * c.threads;
  // Reading twice also serves unaligned rows, whose elements would spill 800 bytes: same threads, same units, same sum.
  if (narrow || i64(c.threads) * c.held < units) c.held = 0;
  c.row_threads = c.threads;
  c.min_blocks = 1024 / c.threads;  // 64 registers a thread; without the limit the compiler takes 72 and a fourth block waits
  return c;
}

/// Of a long list of rows blocks take four each, as multiprocessors become free: 2 to 4 % less time (README), probably as reads of some
/// then fall beside writes of others, where blocks that all walk on to the end do both at once. With fewer threads, or half as many blocks
/// one after another, it loses; rows of less than 4 KB, and those read twice, were not measured.
i64 norm_row_blocks(const NormRowConfig& c, i64 tokens, const DeviceInfo& device) {
  constexpr i64 kRows = 4, kInTurn = 10, kThreads = 768, kOfBlock = 256;
  const i64 resident = i64(device.sms) * c.min_blocks;
  if (block_holds_row(c) && c.threads >= kOfBlock && c.min_blocks > 1 && c.threads * c.min_blocks >= kThreads &&
      tokens >= kRows * kInTurn * resident)
    return ceil_div(tokens, kRows);
  return min_of(ceil_div<i64>(tokens, c.threads / c.row_threads), resident);
}

Budget norm_row_budget(const Problem& p) {
  return {.of_value = unit_roundoff(p.tensors[0].dtype) + 0x1p-19, .of_magnitude = 0x1p-24};  // the sum x + residual is rounded to f32
}

}  // namespace quern::norm
