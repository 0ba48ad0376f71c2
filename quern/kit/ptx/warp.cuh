// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Collectives of a warp: 9.7.9.6 shfl.sync, 9.7.13.10 vote.sync, 9.7.13.14 elect.sync.
#pragma once
#include "quern/kit/ptx/number.cuh"

namespace quern::ptx {

// 10.3 %laneid, 10.1 %tid (blocks are one-dimensional)
QN_DEVICE u32 lane_id() {
  u32 lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}
QN_DEVICE u32 warp_id() { return threadIdx.x / 32; }

/// Value of lane (own ^ bits), of lane `source`, of lane (own - delta), of lane (own + delta), within segments of
/// `width`. Operand c: segment mask in bits 8-12, clamp in bits 0-4.
QN_DEVICE u32 shfl_xor(u32 value, int bits, int width = 32, u32 mask = kFullMask) {
  u32 out;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, %3, %4;" : "=r"(out) : "r"(value), "r"(bits), "r"(((32 - width) << 8) | 31), "r"(mask));
  return out;
}
QN_DEVICE u32 shfl(u32 value, int source, int width = 32, u32 mask = kFullMask) {
  u32 out;
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, %3, %4;" : "=r"(out) : "r"(value), "r"(source), "r"(((32 - width) << 8) | 31), "r"(mask));
  return out;
}
QN_DEVICE u32 shfl_up(u32 value, int delta, int width = 32, u32 mask = kFullMask) {
  u32 out;
  asm volatile("shfl.sync.up.b32 %0, %1, %2, %3, %4;" : "=r"(out) : "r"(value), "r"(delta), "r"((32 - width) << 8), "r"(mask));
  return out;
}
QN_DEVICE u32 shfl_down(u32 value, int delta, int width = 32, u32 mask = kFullMask) {
  u32 out;
  asm volatile("shfl.sync.down.b32 %0, %1, %2, %3, %4;" : "=r"(out) : "r"(value), "r"(delta), "r"(((32 - width) << 8) | 31), "r"(mask));
  return out;
}
QN_DEVICE f32 shfl_xor(f32 value, int bits, int width = 32, u32 mask = kFullMask) {
  return f32_of_bits(shfl_xor(bits_of(value), bits, width, mask));
}
QN_DEVICE f32 shfl(f32 value, int source, int width = 32, u32 mask = kFullMask) {
  return f32_of_bits(shfl(bits_of(value), source, width, mask));
}
QN_DEVICE f32 shfl_up(f32 value, int delta, int width = 32, u32 mask = kFullMask) {
  return f32_of_bits(shfl_up(bits_of(value), delta, width, mask));
}
QN_DEVICE f32 shfl_down(f32 value, int delta, int width = 32, u32 mask = kFullMask) {
  return f32_of_bits(shfl_down(bits_of(value), delta, width, mask));
}
QN_DEVICE i32 shfl_xor(i32 value, int bits, int width = 32, u32 mask = kFullMask) { return i32(shfl_xor(u32(value), bits, width, mask)); }
QN_DEVICE i32 shfl(i32 value, int source, int width = 32, u32 mask = kFullMask) { return i32(shfl(u32(value), source, width, mask)); }
QN_DEVICE i32 shfl_up(i32 value, int delta, int width = 32, u32 mask = kFullMask) { return i32(shfl_up(u32(value), delta, width, mask)); }
QN_DEVICE i32 shfl_down(i32 value, int delta, int width = 32, u32 mask = kFullMask) {
  return i32(shfl_down(u32(value), delta, width, mask));
}

/// True in one lane of those in `mask`, always the same one; which is not said. sm_90 and above. Behind it ptxas knows that one lane is
/// left and moves operands of TMA to uniform registers; behind `lane_id() == 0` it makes each request a loop over lanes with the same
/// operands (25 instructions instead of 10).
QN_DEVICE bool elect_sync(u32 mask = kFullMask) {
  u32 out;
  asm volatile("{\n.reg .pred p;\nelect.sync _|p, %1;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(out) : "r"(mask));
  return out != 0;
}

/// Mask of the lanes that voted yes; whether any, whether all of those in `mask` did.
QN_DEVICE u32 ballot(bool vote, u32 mask = kFullMask) {
  u32 out;
  asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %1, 0;\nvote.sync.ballot.b32 %0, p, %2;\n}" : "=r"(out) : "r"(u32(vote)), "r"(mask));
  return out;
}
QN_DEVICE bool any(bool vote, u32 mask = kFullMask) {
  u32 out;
  asm volatile("{\n.reg .pred p, q;\nsetp.ne.u32 p, %1, 0;\nvote.sync.any.pred q, p, %2;\nselp.u32 %0, 1, 0, q;\n}"
               : "=r"(out)
               : "r"(u32(vote)), "r"(mask));
  return out != 0;
}
QN_DEVICE bool all(bool vote, u32 mask = kFullMask) {
  u32 out;
  asm volatile("{\n.reg .pred p, q;\nsetp.ne.u32 p, %1, 0;\nvote.sync.all.pred q, p, %2;\nselp.u32 %0, 1, 0, q;\n}"
               : "=r"(out)
               : "r"(u32(vote)), "r"(mask));
  return out != 0;
}

}  // namespace quern::ptx
