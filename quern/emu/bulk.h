// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Copies by the copy engine: bulk and tensor copies, asynchronous stores. One may complete anywhere between its issue
// and the wait for it; the policy chooses where.
#pragma once
#include "quern/emu/tensor_map.h"
#include "quern/emu/worker.h"

namespace quern::emu {

/// A copy between its issue and its completion. A multicast is one for each block.
struct Bulk {
  BulkCall call{};
  EncodedTensorMap map{};   ///< of a tensor copy, as it was at the issue; else its magic is 0
  Block* block = nullptr;   ///< whose shared memory is the destination of a load, the source of a store
  Block* source = nullptr;  ///< of a copy within the cluster
  u32 bytes = 0;
  u32 group = 0;  ///< of a store: the thread's, counted from 1
  bool read = false, done = false;
  std::vector<u8> data;  ///< of a store that has read its source
  // Who issued it.
  Index3 issuer_block = {};
  u32 issuer_thread = 0;
  void* pc = nullptr;

  bool loads() const;
  u32 offset() const { return call.shared & 0xffffff; }
};

/// Does the next part of the copy: a load is one part, a store is two (its source is read, its results are written).
void advance(Worker& worker, Bulk& bulk);
/// Bytes of copies have come.
void complete_bytes(Worker& worker, Mbarrier& barrier, u32 bytes);
/// All threads of the block have exited: its shared memory is about to be given to another.
void finish_bulks(Worker& worker, Block& block);
/// A thread has exited.
void leave_cluster(Fiber& me);

}  // namespace quern::emu
