// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Where a thread may read and write: the shared memory of its cluster, its own stack, constants, the tensors of the call.
// An access outside ends the launch, since it would damage the process.
#pragma once
#include "quern/emu/memory_map.h"
#include "quern/emu/worker.h"

namespace quern::emu {

/// With asan: where an address lies among the local variables of a function on the stack, "0 bytes past the end of 'acc' (64
/// bytes)" of the nearest; empty when there is none.
std::string nearest_local(u64 address, u64 stack);

class Bounds {
 public:
  explicit Bounds(Worker& worker);

  /// What an access inside touches. None of them: memory without a history.
  struct Place {
    Block* block = nullptr;  ///< whose shared memory
    u32 offset = 0;          ///< there
    MemoryMap::Region* region = nullptr;
    bool own_stack = false;
  };
  /// Does not return when an access by the thread is not allowed; `what` names the instruction.
  Place judge(Fiber& fiber, const void* pointer, u64 bytes, bool write, const char* what);

 private:
  bool judge_shared(Fiber& fiber, u64 address, u64 bytes, const char* what, Place& place);
  bool judge_stack(Fiber& fiber, u64 address, u64 bytes, const char* what, Place& place);
  void judge_local(Fiber& fiber, u64 address, u64 bytes, const char* what);
  MemoryMap::Region* judge_global(Fiber& fiber, u64 address, u64 bytes, bool write, const char* what);

  Worker& worker_;
  const LaunchRequest& request_;
  MemoryMap::Region* last_ = nullptr;  ///< of the last access to global memory: the next one is likely there too
};

}  // namespace quern::emu
