// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// mbarriers: counters of arrivals, of threads and of their cp.async, and of bytes that copies of the copy engine bring.
#include <cstring>

#include "quern/emu/bulk.h"
#include "quern/emu/shadow.h"
#include "quern/emu/table.h"

namespace quern::emu {
namespace {

constexpr u32 kMostArrivals = (1 << 20) - 1;
constexpr i64 kMostBytes = (1 << 20) - 1;

const char* name(MbarrierOp op) {
  static const char* const kNames[] = {"mbarrier.init",     "mbarrier.inval",     "mbarrier.arrive",
                                       "mbarrier.arrive",   "mbarrier.expect_tx", "mbarrier.test_wait",
                                       "mbarrier.try_wait", "mbarrier.try_wait",  "cp.async.mbarrier.arrive"};
  return kNames[u32(op)];
}

[[noreturn]] void refuse(Fiber& me, const MbarrierCall& call, const std::string& why, ReportKind kind = ReportKind::mbarrier) {
  me.worker->fatal(kind, me, text_of("%s at smem+0x%x: ", name(call.op), call.address & 0xffffff) + why, call.address & 0xffffff);
}

Block& block_of(Fiber& me, const MbarrierCall& call) {
  const u32 rank = call.address >> 24, offset = call.address & 0xffffff;
  if (offset % 8) refuse(me, call, "no multiple of 8", ReportKind::misaligned);
  if (rank >= me.block->cluster->blocks.size() || offset + 8 > me.thread->smem_bytes)
    refuse(me, call, text_of("outside the %u bytes of block rank %u", me.thread->smem_bytes, rank), ReportKind::smem_oob);
  if (rank != me.block->rank && call.op != MbarrierOp::arrive_cluster)
    refuse(me, call, text_of("in block rank %u, from block rank %u: only an arrival may name another block", rank, me.block->rank));
  return me.block->cluster->blocks[rank];
}

/// Opens the next phase when nothing is missing from this one.
void check_complete(Worker& worker, Mbarrier& barrier) {
  worker.progressed();
  if (barrier.pending || barrier.bytes) return;
  barrier.pending = barrier.count;
  ++barrier.phase;
  if (worker.shadow()) worker.shadow()->phase_completes(barrier);
  std::erase_if(barrier.waiting, [&](Fiber* fiber) {
    if (!barrier.complete(u32(fiber->wait_detail))) return false;
    worker.wake(*fiber);
    return true;
  });
}

void init(Fiber& me, Block& block, const MbarrierCall& call) {
  const u32 offset = call.address & 0xffffff;
  if (call.count == 0 || call.count > kMostArrivals) refuse(me, call, text_of("for %u arrivals", call.count));
  if (block.mbarriers.count(offset)) refuse(me, call, "there is one already");
  Mbarrier barrier;
  barrier.block = &block;
  barrier.offset = offset;
  barrier.count = barrier.pending = call.count;
  barrier.number = ++block.mbarriers_made;
  Mbarrier& placed = block.mbarriers[offset] = std::move(barrier);
  if (me.worker->shadow()) me.worker->shadow()->mbarrier_begins(me, placed);
  const u64 word = placed.word();
  std::memcpy(block.smem + offset, &word, 8);
}

std::string too_many(const Mbarrier& barrier, u32 count) {
  return text_of("%u arrivals, phase %u takes %u more of %u", count, barrier.phase, barrier.pending, barrier.count);
}

void arrive(Fiber& me, Mbarrier& barrier, const MbarrierCall& call) {
  if (call.count == 0 || call.count > barrier.pending) refuse(me, call, too_many(barrier, call.count));
  if (me.worker->shadow()) me.worker->shadow()->arrive(me, barrier, call.scope);
  barrier.pending -= call.count;
}

void expect(Fiber& me, Mbarrier& barrier, const MbarrierCall& call) {
  if (barrier.bytes + i64(call.bytes) > kMostBytes)
    refuse(me, call, text_of("%u bytes, with %lld pending: more than 2^20 - 1", call.bytes, (long long)barrier.bytes));
  barrier.bytes += call.bytes;
}

void judge_parity(Fiber& me, const Mbarrier& barrier, const MbarrierCall& call) {
  if (call.parity > 1)
    me.worker->report(ReportKind::mbarrier, me,
                      text_of("%s at smem+0x%x: parity %u, which is 0 or 1", name(call.op), barrier.offset, call.parity));
}

/// The thread has let others run: they may have ended the mbarrier.
void require_there(Fiber& me, const Block& block, const MbarrierCall& call, u64 number) {
  const auto found = block.mbarriers.find(call.address & 0xffffff);
  if (found == block.mbarriers.end() || found->second.number != number) refuse(me, call, "it was invalidated while the thread waited");
}

void wait(Fiber& me, Block& block, Mbarrier& barrier, const MbarrierCall& call) {
  const u64 number = barrier.number;
  me.denied_at = 0;
  while (!barrier.complete(call.parity)) {
    barrier.waiting.push_back(&me);
    me.worker->wait(me, WaitReason::mbarrier, barrier.offset, call.parity & 1);
    require_there(me, block, call, number);
  }
}

/// A thread that looks again and again lets the others run before each further look.
bool look(Fiber& me, const Block& block, Mbarrier& barrier, const MbarrierCall& call) {
  if (barrier.complete(call.parity)) return true;
  const u64 place = reinterpret_cast<u64>(&barrier);
  if (me.wait_detail == place && me.polled_value == barrier.phase) {
    const u64 number = barrier.number;
    me.worker->poll(me, &barrier);
    require_there(me, block, call, number);
  } else {
    me.worker->progressed();
  }
  me.wait_detail = place;
  me.polled_value = barrier.phase;
  return barrier.complete(call.parity);
}

/// mbarrier.try_wait may say no of a phase that has completed. In checked mode it says no to half of the threads, two to five times: who
/// does not ask in a loop is found out. The others hear yes at once, so that what runs behind a yes is tested too. Of two successive seeds
/// each thread hears both, in every phase.
bool test(Fiber& me, const Block& block, Mbarrier& barrier, const MbarrierCall& call) {
  if (!look(me, block, barrier, call)) return false;
  if (call.op != MbarrierOp::try_wait || !me.worker->shadow()) return true;
  const u64 asked = barrier.number << 32 | (barrier.phase + 1), seed = me.worker->options().seed;
  if (me.denied_at != asked) me.denials = (me.index + barrier.phase + seed) % 2 == 0 ? u32(2 + seed / 2 % 4) : 0;
  me.denied_at = asked;
  if (me.denials == 0) return true;
  --me.denials;
  return false;
}

}  // namespace

void complete_bytes(Worker& worker, Mbarrier& barrier, u32 bytes) {
  barrier.bytes -= bytes;
  if (barrier.bytes < -kMostBytes) {
    worker.report(ReportKind::mbarrier, barrier.block->fibers[0],
                  text_of("mbarrier smem+0x%x was brought %lld bytes more than it expects: the count has 20 bits", barrier.offset,
                          -(long long)barrier.bytes));
    worker.launch().stop();
  }
  check_complete(worker, barrier);
}

void complete_arrival(Worker& worker, const CopyArrival& arrival) {
  Fiber& fiber = *arrival.fiber;
  complete_copies(fiber, arrival.until);
  const auto report = [&](const std::string& text) {
    worker.launch().add({ReportKind::mbarrier, fiber.block->index, i64(fiber.index), arrival.mbarrier,
                         text_of("%s at smem+0x%x: ", name(MbarrierOp::arrive_copies), arrival.mbarrier) + text, arrival.pc});
    worker.launch().stop();
  };
  const auto found = fiber.block->mbarriers.find(arrival.mbarrier);
  if (found == fiber.block->mbarriers.end()) return report("it was invalidated before the copies had come");
  Mbarrier& barrier = found->second;
  if (barrier.pending == 0) return report(too_many(barrier, 1));
  --barrier.pending;
  if (worker.shadow()) worker.shadow()->copies_arrive(fiber, arrival.until, barrier);
  check_complete(worker, barrier);
}

bool run_mbarrier(const MbarrierCall& call) {
  Fiber& me = Worker::me();
  me.pc = __builtin_return_address(0);
  Worker& worker = *me.worker;
  Block& block = block_of(me, call);
  if (&block != me.block) run_cluster_access(call.address >> 24, name(call.op));
  if (call.op == MbarrierOp::init) {
    init(me, block, call);
    return true;
  }
  const auto found = block.mbarriers.find(call.address & 0xffffff);
  if (found == block.mbarriers.end()) refuse(me, call, "none was initialised there");
  Mbarrier& barrier = found->second;
  u64 word;
  std::memcpy(&word, block.smem + barrier.offset, 8);
  if (word != barrier.word()) refuse(me, call, "it was overwritten");
  if (worker.shadow()) worker.shadow()->mbarrier_used(me, barrier, false);
  switch (call.op) {
    case MbarrierOp::init: break;
    case MbarrierOp::inval:
      if (!barrier.waiting.empty()) refuse(me, call, "a thread waits at it");
      if (barrier.bytes > 0) refuse(me, call, text_of("%lld bytes of copies have not come", (long long)barrier.bytes));
      if (worker.shadow()) worker.shadow()->mbarrier_ends(me, barrier);
      std::memset(block.smem + barrier.offset, 0xff, 8);
      block.mbarriers.erase(found);
      break;
    case MbarrierOp::expect_tx:
      expect(me, barrier, call);
      check_complete(worker, barrier);
      break;
    case MbarrierOp::arrive:
    case MbarrierOp::arrive_cluster:
      if (call.bytes) expect(me, barrier, call);
      arrive(me, barrier, call);
      check_complete(worker, barrier);
      break;
    case MbarrierOp::arrive_copies: worker.announce({&me, barrier.offset, me.first_copy + u32(me.copies.size()), me.pc}); break;
    case MbarrierOp::test_wait:
    case MbarrierOp::try_wait:
      judge_parity(me, barrier, call);
      if (!test(me, block, barrier, call)) return false;
      if (worker.shadow()) worker.shadow()->phase_seen(me, barrier, call.scope);
      break;
    case MbarrierOp::wait:
      judge_parity(me, barrier, call);
      wait(me, block, barrier, call);
      if (worker.shadow()) worker.shadow()->phase_seen(me, barrier, call.scope);
      break;
  }
  return true;
}

}  // namespace quern::emu
