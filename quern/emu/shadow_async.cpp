// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Checked mode of what goes on beside the threads: mbarriers, the copy engine, clusters, launches that overlap.
#include "quern/emu/footprint.h"
#include "quern/emu/shadow.h"

namespace quern::emu {

void Shadow::async_access(Fiber& issuer, const void* address, u64 bytes, AccessKind kind, Epoch epoch, const char* what, Through through) {
  const bool shared = worker_.arena().holds_smem(address);
  const AsyncAccess async{epoch,
                          through == Through::tensor_maps ? Proxy::tensormap
                          : shared                        ? Proxy::shared
                                                          : Proxy::global,
                          through == Through::threads ? 0 : first_agent_};
  judge(issuer, reinterpret_cast<u64>(address), bytes, kind, kind != AccessKind::write, what, &async);
}

// ---- mbarriers ------------------------------------------------------------------------------------------------------

void Shadow::mbarrier_begins(Fiber& fiber, Mbarrier& barrier) {
  access(fiber, barrier.block->smem + barrier.offset, 8, true, "mbarrier.init");
  for (u32 i = 0; i < 8; ++i) barrier.block->shadow->states[barrier.offset + i] |= kGuarded;
  barrier.agent = new_agent(*barrier.block, text_of("a bulk copy that completes at mbarrier smem+0x%x", barrier.offset));
  barrier.initialised = fiber.clock.epoch();
  for (Knowledge* known : {&barrier.arrived, &barrier.published, &barrier.arrived_far, &barrier.published_far, &barrier.arrived_reads,
                           &barrier.published_reads})
    known->block = barrier.block->linear;
}

void Shadow::mbarrier_used(Fiber& fiber, Mbarrier& barrier, bool by_engine, const Epoch* copy) {
  const ThreadClock& clock = fiber.clock;
  const bool fenced = clock.known.fenced(Proxy::mbarrier, barrier.initialised);
  const std::string what = text_of("uses mbarrier smem+0x%x of block rank %u", barrier.offset, barrier.block->rank);
  if (!fenced && !clock.covers(barrier.initialised)) {
    worker_.report(ReportKind::race, fiber, what + ", not ordered after the mbarrier.init by " + name_of(fiber, barrier.initialised));
  } else if (by_engine && !fenced) {
    worker_.report(
        ReportKind::proxy, fiber,
        "a bulk copy " + what + ": no fence_mbarrier_init lies behind the mbarrier.init by " + name_of(fiber, barrier.initialised));
  }
  // For who reuses the memory: a copy uses it when it completes.
  const AsyncAccess at_completion{copy ? *copy : Epoch(), Proxy::mbarrier, 0};
  touch(shared_span(*barrier.block, barrier.offset, 8), clock, AccessKind::atomic_read, code_of(fiber), worker_.random(),
        copy ? &at_completion : nullptr);
}

void Shadow::mbarrier_ends(Fiber& fiber, Mbarrier& barrier) {
  u8* states = &barrier.block->shadow->states[barrier.offset];
  for (u32 i = 0; i < 8; ++i) states[i] &= u8(~kGuarded);
  access(fiber, barrier.block->smem + barrier.offset, 8, true, "mbarrier.inval");
  free_agent(*barrier.block, barrier.agent, barrier.moment(barrier.agent));
  free_agent(*barrier.block, barrier.storer, barrier.moment(barrier.storer));
  for (u32 i = 0; i < 8; ++i) states[i] &= u8(~kInitialised);
}

/// A thread of another block may release with the scope of its own block only. Then the waiting thread learns that its reads are done, and
/// nothing of its writes.
void Shadow::arrive(Fiber& fiber, Mbarrier& barrier, Scope scope) {
  const Knowledge news = fiber.clock.published();
  if (fiber.block == barrier.block) {
    barrier.arrived.join(news);
  } else if (scope == Scope::block) {
    barrier.arrived_reads.join(news);
    barrier.has_reads = true;
  } else {
    barrier.arrived_far.join(news);
    barrier.has_far = true;
  }
  ++fiber.clock.now;
}

void Shadow::phase_completes(Mbarrier& barrier) {
  barrier.arrived.learn(barrier.agent.number, barrier.agent.before + barrier.phase);
  if (barrier.storer) barrier.arrived.learn(barrier.storer.number, barrier.storer.before + barrier.phase);
  barrier.published = barrier.arrived;
  if (barrier.has_far) barrier.published_far = barrier.arrived_far;
  if (barrier.has_reads) barrier.published_reads = barrier.arrived_reads;
}

/// Of what others tell: what they have read, and what they were told.
static void learn_reads(Knowledge& known, const Knowledge& told) {
  known.fence(Proxy::reads, told);
  if (told.proxies) known.fence(Proxy::reads, told.proxies->known[u32(Proxy::reads)]);
}

/// A wait of the block's scope does not see what other blocks released to the cluster, but for their reads.
void Shadow::phase_seen(Fiber& fiber, const Mbarrier& barrier, Scope scope) {
  Knowledge& known = fiber.clock.known;
  known.join(barrier.published);
  if (barrier.has_reads) learn_reads(known, barrier.published_reads);
  if (!barrier.has_far) return;
  if (scope == Scope::block) learn_reads(known, barrier.published_far);
  else known.join(barrier.published_far);
}

// ---- the copy engine ------------------------------------------------------------------------------------------------

/// st.async stores as threads do: who reads by the copy engine needs a fence.
Epoch Shadow::moment_of_load(const Bulk& bulk, Mbarrier& barrier) {
  Agent* agent = &barrier.agent;
  if (bulk.call.op == BulkOp::store_async) {
    agent = &barrier.storer;
    if (!*agent) *agent = new_agent(*barrier.block, text_of("an st.async that completes at mbarrier smem+0x%x", barrier.offset), true);
  }
  return Epoch(barrier.block->linear, agent->number, barrier.moment(*agent));
}

/// Whatever the policy, nobody may touch the destination before the phase in which the copy lands is seen to be
/// complete. The check against earlier accesses belongs to the issue.
void Shadow::load_issued(Fiber& issuer, const Bulk& bulk, Mbarrier& barrier, const char* what) {
  const BulkCall& call = bulk.call;
  const bool by_engine = call.op != BulkOp::store_async;
  const Epoch epoch = moment_of_load(bulk, barrier);
  mbarrier_used(issuer, barrier, by_engine, &epoch);
  if (call.op == BulkOp::copy_cluster) {
    async_access(issuer, bulk.source->smem + (call.source & 0xffffff), bulk.bytes, AccessKind::read, epoch, what);
    visit(*bulk.source, epoch);
  } else if (bulk.map.magic) {
    async_access(issuer, call.global, sizeof(TensorMap), AccessKind::read, epoch, what, Through::tensor_maps);
    for_each_run(bulk.map, call.at, BoxUse::load,
                 [&](const u8* from, u32, u32 bytes) { async_access(issuer, from, bytes, AccessKind::read, epoch, what); });
  } else if (by_engine) {
    async_access(issuer, call.global, bulk.bytes, AccessKind::read, epoch, what);
  }
  async_access(issuer, bulk.block->smem + bulk.offset(), bulk.bytes, AccessKind::write, epoch, what,
               by_engine ? Through::engine : Through::threads);
  visit(*bulk.block, epoch);
  const CellSpan span = shared_span(*bulk.block, bulk.offset(), bulk.bytes);
  set_writer(span, epoch, code_of(issuer));
  change(span.states, span.bytes, kInFlight);
}

void Shadow::load_landed(const Bulk& bulk, Mbarrier& barrier) {
  const Epoch epoch = moment_of_load(bulk, barrier);
  const CellSpan span = shared_span(*bulk.block, bulk.offset(), bulk.bytes);
  set_writer(span, epoch);
  change(span.states, span.bytes, kInitialised, kInFlight);
  visit(*bulk.block, epoch);
}

/// Two agents of the thread: one reads the sources, one writes the results, since a thread may wait for the reads
/// alone.
void Shadow::store_issued(Fiber& issuer, const Bulk& bulk, const char* what) {
  const BulkCall& call = bulk.call;
  if (!issuer.read_agent) {
    issuer.read_agent = new_agent(*issuer.block, text_of("a bulk store of thread %u", issuer.index)).number;
    issuer.write_agent = new_agent(*issuer.block, text_of("a bulk store of thread %u", issuer.index)).number;
  }
  const bool reduces = call.op == BulkOp::tensor_reduce_add || call.op == BulkOp::reduce_add;
  const AccessKind kind = reduces ? AccessKind::atomic_write : AccessKind::write;
  const Epoch reading(issuer.block->linear, issuer.read_agent, bulk.group);
  const Epoch writing(issuer.block->linear, issuer.write_agent, bulk.group, reduces);
  const u8* source = issuer.block->smem + bulk.offset();
  visit(*issuer.block, reading);
  if (!bulk.map.magic) {
    async_access(issuer, source, bulk.bytes, AccessKind::read, reading, what);
    async_access(issuer, call.global, bulk.bytes, kind, writing, what);
    return;
  }
  async_access(issuer, call.global, sizeof(TensorMap), AccessKind::read, writing, what, Through::tensor_maps);
  u32 inside = 0;
  for_each_run(bulk.map, call.at, BoxUse::store, [&](const u8*, u32, u32 bytes) { inside += bytes; });
  if (inside == bulk.bytes) async_access(issuer, source, bulk.bytes, AccessKind::read, reading, what);
  for_each_run(bulk.map, call.at, BoxUse::store, [&](const u8* to, u32 at, u32 bytes) {
    async_access(issuer, to, bytes, kind, writing, what);
    if (inside == bulk.bytes) return;
    // What the store clips need not have been written.
    for (u32 i = at / 16 * 16; i < at + bytes; i += 16) {
      const u32 from = max_of(i, at), until = min_of(i + 16, at + bytes);
      const u32 offset = swizzled(Swizzle(bulk.map.swizzle), bulk.offset() + i) + (from - i);
      async_access(issuer, issuer.block->smem + offset, until - from, AccessKind::read, reading, what);
    }
  });
}

void Shadow::stores_waited(Fiber& fiber, u32 last_group, bool read) {
  if (!fiber.read_agent) return;
  fiber.clock.known.learn(fiber.read_agent, last_group);
  if (!read) fiber.clock.known.learn(fiber.write_agent, last_group);
}

// ---- clusters -------------------------------------------------------------------------------------------------------

void Shadow::arrive(Fiber& fiber, Cluster& cluster, bool release) {
  ThreadClock& clock = fiber.clock;
  cluster.gathered.block = ~u64(0);  // nobody's: all it knows is of other blocks
  if (release) {
    cluster.gathered.join(clock.published());
  } else {
    Knowledge fenced;
    fenced.block = clock.known.block;
    for (const u32 scope : {u32(Scope::cluster), u32(Scope::gpu)})
      if (clock.fenced[scope].some) fenced.join(clock.fenced[scope].known);
    if (clock.known.proxies) fenced.fence(Proxy::mbarrier, clock.known.proxies->known[u32(Proxy::mbarrier)]);
    cluster.gathered.join(fenced);
  }
  ++clock.now;
}

void Shadow::visit(Block& block, Epoch epoch, bool wrote) {
  for (BlockShadow::Visit& known : block.shadow->visits)
    if (known.epoch.same_thread(epoch) && known.wrote == wrote) {
      if (known.epoch.clock() < epoch.clock()) known.epoch = epoch;
      return;
    }
  block.shadow->visits.push_back({epoch, wrote});
}

void Shadow::block_exits(Block& block) {
  for (const auto& [visit, wrote] : block.shadow->visits) {
    bool known = false;
    for (const Fiber& fiber : block.fibers)
      known |= fiber.index < request_.threads && (fiber.clock.covers(visit) || (!wrote && fiber.clock.known.fenced(Proxy::reads, visit)));
    if (known) continue;
    const bool foreign = visit.block() != block.linear;
    Report report{foreign ? ReportKind::cluster : ReportKind::async, block.index, i64(block.fibers[0].index), 0,
                  "the block exits, not ordered after an access to its shared memory by " + name_of(block.fibers[0], visit)};
    worker_.launch().add(std::move(report));
  }
}

// ---- launches that overlap ------------------------------------------------------------------------------------------

void Shadow::dependency_wait(Fiber& fiber) {
  fiber.block->shadow->dependency_waits.push_back(fiber.clock.epoch());
  ++fiber.clock.now;
}

/// A dependent launch may begin as soon as the launch before it has begun. So until the thread is ordered after a
/// griddepcontrol.wait of its block, what that launch touches is not its own.
void Shadow::judge_overlap(Fiber& fiber, u64 address, u64 bytes, AccessKind kind, const char* what) {
  if (request_.footprint) request_.footprint->add(address, bytes, writes(kind));
  if (request_.overlapped.empty()) return;
  bool waited = fiber.dependency_waited;
  for (const Epoch wait : fiber.block->shadow->dependency_waits) waited |= fiber.clock.covers(wait);
  for (const auto& other : waited ? request_.overlapped_after_wait : request_.overlapped) {
    const Footprint::Conflict conflict = other->find(address, bytes, writes(kind));
    if (!conflict.found) continue;
    worker_.report(ReportKind::race, fiber,
                   std::string(what) + (writes(kind) ? " writes " : " reads ") + request_.memory->describe(address + conflict.byte) +
                       ", not ordered after the " + (conflict.written ? "write" : "read") +
                       " by a kernel launched before: no griddepcontrol.wait that covers it lies between",
                   address);
    return;
  }
}

}  // namespace quern::emu
