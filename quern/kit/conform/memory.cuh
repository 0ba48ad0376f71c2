// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/conform/params.h"
#include "quern/kit/world.cuh"

namespace quern::conform {

/// Copies n bytes with accesses of T by every policy in turn: out[policy][n]
template <class T>
QN_DEVICE void copy_by_policy(const Params& p, u8* out) {
  QN_SMEM(smem);
  const u8* in = static_cast<const u8*>(p.in);
  for (int i = int(threadIdx.x) * int(sizeof(T)); i < p.n; i += int(blockDim.x * sizeof(T))) {
    ptx::prefetch_l2(in + i);
    ptx::st_global(out + i, ptx::ld_global<T>(in + i));
    ptx::st_global_streaming(out + p.n + i, ptx::ld_global_nc<T>(in + i));
    ptx::st_shared(smem + i, ptx::ld_global_nc_no_allocate<T>(in + i));
  }
  ptx::sync_block();
  // Backwards, so that each thread reads what others wrote.
  for (int i = int(threadIdx.x) * int(sizeof(T)); i < p.n; i += int(blockDim.x * sizeof(T))) {
    const int from = p.n - int(sizeof(T)) - i;
    ptx::st_global(out + 2 * p.n + from, ptx::ld_shared<T>(smem + from));
  }
  ptx::sync_block();
}
/// With accesses of each type: out[type][policy][n]
QN_DEVICE void copies_of_every_size(const Params& p) {
  u8* out = static_cast<u8*>(p.out);
  copy_by_policy<u8>(p, out);
  copy_by_policy<u16>(p, out + 3 * p.n);
  copy_by_policy<u32>(p, out + 6 * p.n);
  copy_by_policy<u32x2>(p, out + 9 * p.n);
  copy_by_policy<u32x4>(p, out + 12 * p.n);
  copy_by_policy<bf16>(p, out + 15 * p.n);
}

/// Each of 32 threads copies 16, 8, 4 bytes and 16 bytes past L1, of which `thread % 17` (at most the size) are read:
/// out [32, 44]
QN_DEVICE void cp_async_all(const Params& p) {
  QN_SMEM(smem);
  const u32 t = threadIdx.x;
  const u8* in = static_cast<const u8*>(p.in) + 16 * t;
  u8* mine = smem + 48 * t;
  const int limit = int(t % 17);
  ptx::cp_async<16>(ptx::smem_address(mine), in, limit);
  ptx::cp_async_commit();
  ptx::cp_async<8>(ptx::smem_address(mine + 16), in, min_of(limit, 8));
  ptx::cp_async<4>(ptx::smem_address(mine + 24), in, min_of(limit, 4));
  ptx::cp_async_commit();
  ptx::cp_async_cg(ptx::smem_address(mine + 32), in);
  ptx::cp_async_commit();
  ptx::cp_async_wait<1>();
  ptx::cp_async_wait_all();
  ptx::sync_block();
  const u32 other = 31 - t;
  u8* out = static_cast<u8*>(p.out) + 44 * other;
  for (int i = 0; i < 44; ++i) out[i] = smem[48 * other + (i < 28 ? i : i + 4)];
}

/// 8 atomics by every thread of every block on words that start at 0 (and one f32): out u32 [10]
QN_DEVICE void atomics_all(const Params& p) {
  u32* out = static_cast<u32*>(p.out);
  const u32 id = blockIdx.x * blockDim.x + threadIdx.x;
  ptx::atomic_add(out + 0, 3u);
  ptx::atomic_add(reinterpret_cast<i32*>(out + 1), -2);
  ptx::atomic_add(reinterpret_cast<f32*>(out + 2), 0.5f);
  ptx::atomic_max(out + 3, id);
  ptx::atomic_min(reinterpret_cast<i32*>(out + 4), -i32(id));
  ptx::atomic_add(reinterpret_cast<u64*>(out + 6), u64(1) << 31);
  // A lock by compare-and-swap and exchange around a plain counter.
  for (bool done = false; !done;) {
    if (ptx::atomic_cas_acq_rel_gpu(out + 8, 0, 1) == 0) {
      out[9] += 1;
      ptx::atomic_exch_acq_rel_gpu(out + 8, 0);
      done = true;
    }
  }
  ptx::red_add_release_gpu(out + 5, 1);
}

/// 64 threads. out u32 [66]: a word of shared memory after each thread's two additions, another after one that returns a ticket; the
/// tickets.
QN_DEVICE void atomics_shared(const Params& p) {
  QN_SMEM(smem);
  u32* const words = reinterpret_cast<u32*>(smem);
  u32* out = static_cast<u32*>(p.out);
  if (threadIdx.x < 2) words[threadIdx.x] = 0;
  ptx::sync_block();
  ptx::red_add_shared(words, threadIdx.x);
  ptx::red_add_shared(words, 0xffffffff);
  out[2 + threadIdx.x] = ptx::atomic_add_shared(words + 1, 3);
  ptx::sync_block();
  if (threadIdx.x < 2) out[threadIdx.x] = words[threadIdx.x];
}

/// 64 threads. out u32 [16 + 2 * 64]: what each kind of addition leaves; the last exchanged value, the winner of a
/// compare-and-swap, a message behind a fence of each scope; then what each thread's exchange and compare-and-swap returned.
QN_DEVICE void atomics_by_order(const Params& p) {
  u32* out = static_cast<u32*>(p.out);
  const u32 t = threadIdx.x;
  ptx::atomic_add_acq_rel_gpu(out + 0, 1);
  ptx::atomic_add_acquire_gpu(out + 1, 2);
  ptx::atomic_add_release_gpu(out + 2, 3);
  ptx::red_add(out + 3, 4);
  ptx::red_add(reinterpret_cast<f32*>(out + 4), 0.25f);
  out[16 + t] = ptx::atomic_exch(out + 5, t + 1);
  out[16 + 64 + t] = ptx::atomic_cas(out + 6, 0, t + 1);
  if (t == 0) {
    out[7] = 77;
    ptx::fence_gpu();
    ptx::st_relaxed_gpu(out + 8, 1);
    out[10] = 99;
    ptx::fence_block();
    ptx::st_relaxed_gpu(out + 11, 1);
  } else if (t == 32) {
    while (ptx::ld_relaxed_gpu(out + 8) == 0) {}
    ptx::fence_gpu();
    out[9] = out[7];
    while (ptx::ld_relaxed_gpu(out + 11) == 0) {}
    ptx::fence_block();
    out[12] = out[10];
    const u64 before = ptx::clock64(), after = ptx::clock64();
    out[13] = u32(after >= before && after != 0);
  }
}

/// Blocks pass a token in order of their number: block b waits until out[0] == b, then appends b to out[1..].
QN_DEVICE void token_ring(const Params& p) {
  u32* out = static_cast<u32*>(p.out);
  if (threadIdx.x == 0) {
    // The last block starts last, the first one waits for it: needs every block resident.
    const u32 turn = gridDim.x - 1 - blockIdx.x;
    while (ptx::ld_acquire_gpu(out) != turn) {}
    out[1 + turn] = blockIdx.x;
    ptx::st_release_gpu(out, turn + 1);
  }
}

/// Thread t writes smem[t]; after a barrier everybody votes whether its neighbour's value is right: out[t]. Two halves
/// then meet at named barriers: the first half arrives, the second waits and reads.
QN_DEVICE void barriers_all(const Params& p) {
  QN_SMEM(smem);
  u32* shared = reinterpret_cast<u32*>(smem);
  u32* out = static_cast<u32*>(p.out);
  const u32 t = threadIdx.x, threads = blockDim.x;
  shared[t] = t * t;
  ptx::sync_block();
  const u32 next = (t + 33) % threads;
  const bool wrong = ptx::sync_block_or(shared[next] != next * next);
  const bool someone = ptx::sync_block_or(t == threads - 1);
  const bool nobody = ptx::sync_block_or(false);
  if (t < threads / 2) {
    shared[t] = t + 7;
    ptx::bar_arrive(1, int(threads));
    out[t] = u32(wrong) + 2 * u32(someone) + 4 * u32(nobody);
  } else {
    ptx::bar_sync(1, int(threads));
    out[t] = shared[t - threads / 2];
  }
}

/// in: f32 [n]; out [n, 6]: max and min with 1.5, quotient by 3, nearest integer, sine, cosine
QN_DEVICE void math_more(const Params& p) {
  for (int i = int(threadIdx.x); i < p.n; i += int(blockDim.x)) {
    const f32 x = static_cast<const f32*>(p.in)[i];
    f32* out = static_cast<f32*>(p.out) + 6 * i;
    out[0] = ptx::fmax(x, f32(1.5f));
    out[1] = ptx::fmin(x, f32(1.5f));
    out[2] = ptx::div(x, f32(3.0f));
    out[3] = ptx::round(x);
    out[4] = ptx::sin_approx(x);
    out[5] = ptx::cos_approx(x);
  }
}

/// in: f32 [n]; out [n, 6]: max, min and max.NaN with 1.5 on either side, the power of two above |x|
QN_DEVICE void math_extremes(const Params& p) {
  for (int i = int(threadIdx.x); i < p.n; i += int(blockDim.x)) {
    const f32 x = static_cast<const f32*>(p.in)[i];
    f32* out = static_cast<f32*>(p.out) + 6 * i;
    out[0] = ptx::fmax(x, f32(1.5f));
    out[1] = ptx::fmin(f32(1.5f), x);
    out[2] = ptx::fmax_nan(x, f32(1.5f));
    out[3] = ptx::fmax_nan(f32(1.5f), x);
    out[4] = ptx::power_of_two_above(ptx::fabs(x));
    out[5] = ptx::fmax(f32(1.5f), x);
  }
}

/// in: f32 [n]; out [n, 9]: exp2, log2, rcp, rsqrt, tanh, sqrt, sin, cos, fma(x, x, 1)
QN_DEVICE void math_all(const Params& p) {
  for (int i = int(threadIdx.x); i < p.n; i += int(blockDim.x)) {
    const f32 x = static_cast<const f32*>(p.in)[i];
    f32* out = static_cast<f32*>(p.out) + 9 * i;
    out[0] = ptx::exp2_approx(x);
    out[1] = ptx::log2_approx(ptx::fabs(x));
    out[2] = ptx::rcp_approx(x);
    out[3] = ptx::rsqrt_approx(ptx::fabs(x));
    out[4] = ptx::tanh_approx(x);
    out[5] = ptx::sqrt(ptx::fabs(x));
    ptx::sincos(x, out[6], out[7]);
    out[8] = ptx::fma(x, x, f32(1.0f));
  }
}

}  // namespace quern::conform
