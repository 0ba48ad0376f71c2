// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// mbarriers. Their state lies in the runtime; the word in shared memory is a guard that nobody else may touch.
#pragma once
#include "quern/kit/emu/entry.cuh"

namespace quern::emu {

QN_DEVICE bool mbarrier(MbarrierOp op, u32 address, u32 count = 1, u32 bytes = 0, u32 parity = 0, Scope scope = Scope::block) {
  return current()->runtime->mbarrier({op, address, count, bytes, parity, scope});
}

}  // namespace quern::emu

namespace quern::ptx {

/// A phase takes `arrivals` (1 .. 2^20 - 1). Others may use it after a fence_mbarrier_init and a barrier.
QN_DEVICE void mbarrier_init(u32 mbarrier, u32 arrivals) { emu::mbarrier(emu::MbarrierOp::init, mbarrier, arrivals); }
/// The memory is free for other use.
QN_DEVICE void mbarrier_inval(u32 mbarrier) { emu::mbarrier(emu::MbarrierOp::inval, mbarrier); }

/// Releases what the thread did before to those who wait.
QN_DEVICE void mbarrier_arrive(u32 mbarrier) { emu::mbarrier(emu::MbarrierOp::arrive, mbarrier); }
QN_DEVICE void mbarrier_arrive(u32 mbarrier, u32 count) { emu::mbarrier(emu::MbarrierOp::arrive, mbarrier, count); }
/// At an mbarrier of any block of the cluster (an address from cluster_address).
QN_DEVICE void mbarrier_arrive_cluster(u32 mbarrier, u32 count = 1) {
  emu::mbarrier(emu::MbarrierOp::arrive_cluster, mbarrier, count, 0, 0, emu::Scope::cluster);
}
/// The same for who has only read: what the thread wrote is not released to other blocks, for which an H200 takes about
/// 0.5 us (a GEMM that released its stages so took 1.3 to 1.9 times as long).
QN_DEVICE void mbarrier_arrive_remote(u32 mbarrier) { emu::mbarrier(emu::MbarrierOp::arrive_cluster, mbarrier); }
/// The phase also takes `bytes` of copies (below 2^20); then arrives.
QN_DEVICE void mbarrier_arrive_expect_tx(u32 mbarrier, u32 bytes) { emu::mbarrier(emu::MbarrierOp::arrive, mbarrier, 1, bytes); }
QN_DEVICE void mbarrier_arrive_expect_tx_cluster(u32 mbarrier, u32 bytes) {
  emu::mbarrier(emu::MbarrierOp::arrive_cluster, mbarrier, 1, bytes, 0, emu::Scope::cluster);
}
/// Without an arrival.
QN_DEVICE void mbarrier_expect_tx(u32 mbarrier, u32 bytes) { emu::mbarrier(emu::MbarrierOp::expect_tx, mbarrier, 0, bytes); }

/// Whether the phase of that parity has completed; if so, what arrived is visible. For loops, mbarrier_wait.
QN_DEVICE bool mbarrier_test_wait(u32 mbarrier, u32 parity) { return emu::mbarrier(emu::MbarrierOp::test_wait, mbarrier, 0, 0, parity); }
/// The same, after letting others run if it has not; but it may say no of a phase that has completed.
QN_DEVICE bool mbarrier_try_wait(u32 mbarrier, u32 parity) { return emu::mbarrier(emu::MbarrierOp::try_wait, mbarrier, 0, 0, parity); }
/// The same for what other blocks of the cluster wrote before they arrived.
QN_DEVICE bool mbarrier_try_wait_cluster(u32 mbarrier, u32 parity) {
  return emu::mbarrier(emu::MbarrierOp::try_wait, mbarrier, 0, 0, parity, emu::Scope::cluster);
}
/// Waits for the phase of that parity.
QN_DEVICE void mbarrier_wait(u32 mbarrier, u32 parity) { emu::mbarrier(emu::MbarrierOp::wait, mbarrier, 0, 0, parity); }
QN_DEVICE void mbarrier_wait_cluster(u32 mbarrier, u32 parity) {
  emu::mbarrier(emu::MbarrierOp::wait, mbarrier, 0, 0, parity, emu::Scope::cluster);
}

}  // namespace quern::ptx
