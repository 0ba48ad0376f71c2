// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Small correct kernels and, for each, textual changes that break it: what asan must report. Parameters and prelude are
// those of planted_kernels.h; values that the compiler does not know are n = 64, in = 0.5, flags = 0.
#pragma once
#include "quern/emu/planted_kernels.h"

namespace quern::emu::planted {

inline const std::vector<Sample>& asan_samples() {
  static const std::vector<Sample> all = {
      {"local_arrays",
       32,
       2,
       0,
       R"(
  const f32* row = p.in + 80 * blockIdx.x;
  const u32 t = threadIdx.x;
  f32 held[8];
  for (int i = 0; i < 8; ++i) held[i] = ptx::ld_global<f32>(row + 8 * (t % 8) + i);
  f32* taken = held + p.n / 64;
  f32 sum = 0;
  for (int i = 0; i < p.n / 10; ++i) sum += taken[i];
  struct { u32 first[3]; u32 second; } pair = {{t, 2, 3}, 4};
  const u32 chosen = pair.first[p.n / 32];
  const f32* kept = held;
  if (p.n > 0) {
    f32 inner[4] = {sum, 1, 2, 3};
    inner[p.n / 32] += sum;
    const f32* from = inner;
    sum += from[p.n / 64] + inner[p.n / 32];
  }
  taken[p.n / 16] = sum;
  sum += kept[p.n / 16];
  ptx::sync_warp();
  if (t == 0) p.out[blockIdx.x] = sum + f32(chosen);
)",
       {{"local array read past its end", "i < p.n / 10", "i < p.n / 8", {"LOCAL-OOB", "INDEX-OOB"}},
        {"local array read before its begin", "held + p.n / 64", "held - p.n / 64", {"LOCAL-OOB", "INDEX-OOB"}},
        {"local array written past its end", "taken[p.n / 16] = sum", "taken[p.n / 8] = sum", {"LOCAL-OOB"}},
        {"index past a local array", "sum += from[p.n / 64] + inner[p.n / 32]", "sum += inner[p.n / 16]", {"INDEX-OOB"}},
        {"index before a local array", "inner[p.n / 32] += sum", "inner[p.n / 32 - 3] += sum", {"INDEX-OOB", "LOCAL-OOB"}},
        {"index past an array, within its struct", "pair.first[p.n / 32]", "pair.first[p.n / 16 - 1]", {"INDEX-OOB"}},
        {"a variable used after its scope", "const f32* from = inner;", "const f32* from = inner; kept = from - 4;", {"LOCAL-OOB"}},
        {"another thread's variable",
         "  ptx::sync_warp();",
         R"(
  if (t == 0) *reinterpret_cast<f32**>(p.scratch) = held;
  ptx::sync_warp();
  if (t == 1) p.out[blockIdx.x] = (*reinterpret_cast<f32**>(p.scratch))[1];)",
         {"STACK"}}}},
      {"arithmetic",
       32,
       2,
       0,
       R"(
  enum Mode { none, some, all };
  const i32 n = p.n, t = i32(threadIdx.x);
  const i32 shifted = 1 << (n / 4);
  const i32 grown = n * (33000000 + t);
  const i32 far = 0x7fffffff - n, sum = far + (n - t);
  const i32 least = t - 0x7fffffff, difference = least - n / 64;
  const i32 quotient = n / (n - 60 + t);
  const i32 whole = i32(p.in[80 * blockIdx.x] * 4e9f);
  const bool yes = reinterpret_cast<const bool*>(p.flags)[3];
  const Mode mode = *reinterpret_cast<const Mode*>(p.flags);
  const f32 mean = f32(n) / p.in[80 * blockIdx.x];
  if (t == 0) p.out[blockIdx.x] = f32(shifted) + f32(grown) + f32(sum) + f32(difference) + f32(quotient) + f32(whole) + f32(mode) + mean + (yes ? 1 : 0);
)",
       {{"shift by the width", "1 << (n / 4)", "1 << (n / 2)", {"UNDEFINED"}},
        {"shift by a negative number", "1 << (n / 4)", "1 << (n / 4 - 20)", {"UNDEFINED"}},
        {"overflow of a product", "33000000", "34000000", {"UNDEFINED"}},
        {"overflow of a sum", "far + (n - t)", "far + (n + t + 1)", {"UNDEFINED"}},
        {"overflow of a difference", "least - n / 64", "least - n / 16", {"UNDEFINED"}},
        {"division by zero", "n - 60 + t", "n - 64 + t", {"UNDEFINED"}},
        {"float too large for an integer", "* 4e9f", "* 4.4e9f", {"UNDEFINED"}},
        {"NaN to an integer", "* 4e9f", "* (4e9f / f32(n - 64) * 0)", {"UNDEFINED"}},
        {"a bool that is neither", "const bool*>(p.flags)", "const bool*>(p.in)", {"UNDEFINED"}},
        {"an enum without that value", "const Mode*>(p.flags)", "const Mode*>(p.in)", {"UNDEFINED"}}}},
      {"memory",
       64,
       2,
       2048,
       R"(
  QN_SMEM(smem);
  struct Parts { f32 left[64]; f32 right[64]; };
  Parts& parts = *reinterpret_cast<Parts*>(smem + 1024);
  f32* words = reinterpret_cast<f32*>(smem);
  const u32 t = threadIdx.x;
  const f32* row = p.in + 80 * blockIdx.x;
  ptx::cp_async<16>(ptx::smem_address(smem) + 16 * t, row + t % 16 * 4);
  ptx::cp_async_commit();
  ptx::cp_async_wait<0>();
  words[384 + t] = 1;
  parts.left[t] = row[t];
  ptx::sync_block();
  u32 fragment[4];
  ptx::ldmatrix_x4(fragment, ptx::smem_address(smem) + 16 * (63 - t));
  const u32x4 four = ptx::ld_global<u32x4>(row + t % 16 * 4);
  const f32* maybe = p.n > 0 ? row : nullptr;
  const f32* odd = reinterpret_cast<const f32*>(reinterpret_cast<const u8*>(row) + p.n / 16);
  f32 sum = words[384 + 63 - t] + parts.left[63 - t] + ptx::f32_of_bits(fragment[0]) + ptx::f32_of_bits(four.y);
  sum += maybe[t] + odd[0] + ptx::ld_shared<f32>(smem + 4 * t);
  ptx::atomic_add(p.flags + t, 1u);
  ptx::sync_block();
  if (t == 0) ptx::st_global<f32>(p.out + blockIdx.x, sum);
)",
       {{"cp.async from past the row",
         "row + t % 16 * 4);\n  ptx::cp_async_commit",
         "row + t % 16 * 4 + 4);\n  ptx::cp_async_commit",
         {"GLOBAL-OOB"}},
        {"vector load past the row", "<u32x4>(row + t % 16 * 4)", "<u32x4>(row + t % 16 * 4 + 4)", {"GLOBAL-OOB"}},
        {"load from between the rows", "= row[t]", "= row[t + 1]", {"GLOBAL-OOB"}},
        {"store past the output", "p.out + blockIdx.x", "p.out + blockIdx.x + 1", {"GLOBAL-OOB"}},
        {"atomic past the tensor", "p.flags + t", "p.flags + t + 1", {"GLOBAL-OOB"}},
        {"store into an input", "p.out + blockIdx.x", "const_cast<f32*>(row)", {"WRITE-TO-INPUT"}},
        {"shared memory written past its end", "words[384 + t] = 1", "words[449 + t] = 1", {"SMEM-OOB"}},
        {"shared memory read before its begin", "words[384 + 63 - t]", "words[i32(t) - 1]", {"SMEM-OOB"}},
        {"shared memory read past its end by the kit", "ld_shared<f32>(smem + 4 * t)", "ld_shared<f32>(smem + 1800 + 4 * t)", {"SMEM-OOB"}},
        {"one array of shared memory overrun into the next",
         "parts.left[t] = ",
         "if (t == 63) parts.left[t + 1] = 0; parts.left[t] = ",
         {"INDEX-OOB"}},
        {"pointer that is no multiple of its type", "p.n / 16)", "p.n / 32)", {"MISALIGNED"}},
        {"null pointer", "p.n > 0 ? row", "p.n > 64 ? row", {"FAULT", "UNDEFINED"}}}},
  };
  return all;
}

}  // namespace quern::emu::planted
