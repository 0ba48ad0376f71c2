// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include <iterator>
#include <utility>

#include "quern/emu/shadow.h"
#include "quern/emu/table.h"
#include "quern/emu/worker.h"

namespace quern::emu {
namespace {

/// The word that the operation leaves in memory.
u64 result_of(const AtomicCall& call, u64 stored) {
  const u32 a = u32(stored), b = u32(call.operand);
  switch (call.op) {
    case AtomicOp::load: return stored;
    case AtomicOp::store:
    case AtomicOp::exch: return call.operand;
    case AtomicOp::cas: return stored == call.compare ? call.operand : stored;
    case AtomicOp::add: return call.bytes == 4 ? u32(a + b) : stored + call.operand;
    case AtomicOp::max_i32: return u32(max_of(i32(a), i32(b)));
    case AtomicOp::min_i32: return u32(min_of(i32(a), i32(b)));
    case AtomicOp::max_u32: return max_of(a, b);
    case AtomicOp::min_u32: return min_of(a, b);
    case AtomicOp::combine: return call.combine(a, b);
  }
  return stored;
}

/// Blocks run on several OS threads, so the host's atomics are needed.
template <class Word>
u64 apply(const AtomicCall& call) {
  Word* address = static_cast<Word*>(call.address);
  if (call.op == AtomicOp::load) return __atomic_load_n(address, __ATOMIC_ACQUIRE);
  Word stored = __atomic_load_n(address, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(address, &stored, Word(result_of(call, stored)), false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {}
  return stored;
}
u64 apply_any(const AtomicCall& call) { return call.bytes == 8 ? apply<u64>(call) : apply<u32>(call); }

/// Whether one of the thread's last 16 places of atomics that changed nothing had that value when it was last looked at; remembers the
/// value.
bool seen_before(Fiber& me, const void* address, u64 value) {
  const u64 place = reinterpret_cast<u64>(address);
  for (Fiber::Seen& seen : me.seen)
    if (seen.place == place) return std::exchange(seen.value, value) == value;
  me.seen[me.next_seen++ % std::size(me.seen)] = {place, value};
  return false;
}

}  // namespace

u64 run_atomic(const AtomicCall& call) {
  Fiber& me = Worker::me();
  me.pc = __builtin_return_address(0);
  Worker& worker = *me.worker;
  if (worker.shadow()) {
    worker.shadow()->before_atomic(me, call);
  } else {
    worker.access(me, call.address, call.bytes, call.op != AtomicOp::load, "atomic access");
  }
  u64 stored = apply_any(call);
  if (result_of(call, stored) != stored) {
    ++worker.launch().progress;
    // Others may come in between a lock and what it guards.
    if (worker.shadow() && worker.launch().mixes_clusters() && worker.random() % 4 == 0) worker.let_others_run(me);
  } else if (call.op != AtomicOp::store) {
    // The same value at the same place again: a waiting loop, perhaps over several places. Let the others run before looking once more.
    if (seen_before(me, call.address, stored)) {
      worker.poll(me, call.address);
      if (call.op == AtomicOp::load) {
        if (worker.shadow()) worker.shadow()->before_atomic(me, call);
        stored = apply_any(call);
        seen_before(me, call.address, stored);
      }
    } else {
      worker.progressed();
    }
  }
  return stored;
}

void run_fence(Scope scope) {
  Fiber& me = Worker::me();
  if (me.worker->shadow()) me.worker->shadow()->fence(me, scope);
}

void run_read_only(const void* address, u32 bytes) {
  Fiber& me = Worker::me();
  me.pc = __builtin_return_address(0);
  if (me.worker->shadow()) me.worker->shadow()->read_only(me, address, bytes);
}

void run_proxy_fence(ProxyFence fence, const void*) {
  Fiber& me = Worker::me();
  if (me.worker->shadow()) me.worker->shadow()->proxy_fence(me, fence);
}

}  // namespace quern::emu
