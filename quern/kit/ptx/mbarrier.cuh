// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// 9.7.13.15 mbarrier: 8 bytes of shared memory that count arrivals and bytes of asynchronous copies. A phase completes
// when both have come; waits name it by its parity, 0 for the first. Addresses are of the shared window. sm_90 and
// above.
#pragma once
#include "quern/kit/ptx/entry.cuh"

namespace quern::ptx {

/// A phase takes `arrivals` (1 .. 2^20 - 1). Others may use it after a fence_mbarrier_init and a barrier.
QN_DEVICE void mbarrier_init(u32 mbarrier, u32 arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(mbarrier), "r"(arrivals) : "memory");
}
/// The memory is free for other use.
QN_DEVICE void mbarrier_inval(u32 mbarrier) { asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(mbarrier) : "memory"); }

/// Releases what the thread did before to those who wait.
QN_DEVICE void mbarrier_arrive(u32 mbarrier) {
  asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(mbarrier) : "memory");
}
QN_DEVICE void mbarrier_arrive(u32 mbarrier, u32 count) {
  asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(mbarrier), "r"(count) : "memory");
}
/// At an mbarrier of any block of the cluster (an address from cluster_address).
QN_DEVICE void mbarrier_arrive_cluster(u32 mbarrier, u32 count = 1) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0], %1;" ::"r"(mbarrier), "r"(count) : "memory");
}
/// The same for who has only read: what the thread wrote is not released to other blocks, for which an H200 takes about
/// 0.5 us (a GEMM that released its stages so took 1.3 to 1.9 times as long).
QN_DEVICE void mbarrier_arrive_remote(u32 mbarrier) {
  asm volatile("mbarrier.arrive.release.cta.shared::cluster.b64 _, [%0];" ::"r"(mbarrier) : "memory");
}
/// The phase also takes `bytes` of copies (below 2^20); then arrives.
QN_DEVICE void mbarrier_arrive_expect_tx(u32 mbarrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(mbarrier), "r"(bytes) : "memory");
}
QN_DEVICE void mbarrier_arrive_expect_tx_cluster(u32 mbarrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%0], %1;" ::"r"(mbarrier), "r"(bytes) : "memory");
}
/// Without an arrival.
QN_DEVICE void mbarrier_expect_tx(u32 mbarrier, u32 bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(mbarrier), "r"(bytes) : "memory");
}

/// Whether the phase of that parity has completed; if so, what arrived is visible. For loops, mbarrier_wait.
QN_DEVICE bool mbarrier_test_wait(u32 mbarrier, u32 parity) {
  u32 out;
  asm volatile("{\n.reg .pred p;\nmbarrier.test_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
               : "=r"(out)
               : "r"(mbarrier), "r"(parity)
               : "memory");
  return out != 0;
}
/// The same, after sleeping for as long as the hardware likes if it has not. Without a hint, behind which ptxas lets the warp wait for the
/// answer, sleep and ask again at once: so what the warp does next runs meanwhile.
QN_DEVICE bool mbarrier_try_wait(u32 mbarrier, u32 parity) {
  u32 out;
  asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
               : "=r"(out)
               : "r"(mbarrier), "r"(parity)
               : "memory");
  return out != 0;
}
/// The same for what other blocks of the cluster wrote before they arrived. The hint, 10 ms, is an upper bound in nanoseconds.
QN_DEVICE bool mbarrier_try_wait_cluster(u32 mbarrier, u32 parity) {
  u32 out;
  asm volatile(
      "{\n.reg .pred p;\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2, 0x989680;\nselp.u32 %0, "
      "1, "
      "0, p;\n}"
      : "=r"(out)
      : "r"(mbarrier), "r"(parity)
      : "memory");
  return out != 0;
}
/// Waits for the phase of that parity, by try_wait with that hint. Emulated, it lets other threads run.
QN_DEVICE void mbarrier_wait(u32 mbarrier, u32 parity) {
  u32 out;
  do {
    asm volatile(
        "{\n.reg .pred p;\nmbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2, 0x989680;\nselp.u32 %0, 1, "
        "0, "
        "p;\n}"
        : "=r"(out)
        : "r"(mbarrier), "r"(parity)
        : "memory");
  } while (out == 0);
}
QN_DEVICE void mbarrier_wait_cluster(u32 mbarrier, u32 parity) {
  while (!mbarrier_try_wait_cluster(mbarrier, parity)) {}
}

}  // namespace quern::ptx
