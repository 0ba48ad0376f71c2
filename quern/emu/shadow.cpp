// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/emu/shadow.h"

#include <algorithm>
#include <cstring>

#include "quern/emu/module.h"

namespace quern::emu {
namespace {

const char* verb(bool write) { return write ? "writes" : "reads"; }

}  // namespace

Shadow::Shadow(Worker& worker)
    : worker_(worker),
      bounds_(*worker.bounds()),
      request_(worker.launch().request),
      first_copier_(round_up<u32>(request_.threads, 32)),
      first_agent_(2 * first_copier_) {
  if (request_.memory) request_.memory->begin_launch();
}

void Shadow::block_started(Block& block) {
  if (!block.shadow) block.shadow = std::make_unique<BlockShadow>();
  if (block.shadow->cells.size() < request_.smem) {
    block.shadow->cells.resize(request_.smem);
    block.shadow->groups.resize(request_.smem / kGroup + 1);
  }
  block.shadow->states.assign(request_.smem, kInside | kWritable);
  block.shadow->agents.clear();
  for (u32 i = 0; i < 2; ++i) block.shadow->numbers[i] = {first_agent_ + i, {}};
  block.shadow->visits.clear();
  block.shadow->dependency_waits.clear();
  for (u32 i = 0; i < block.fibers.size(); ++i) {
    ThreadClock& clock = block.fibers[i].clock;
    clock = ThreadClock{};
    clock.thread = i;
    clock.first_agent = first_agent_;
    clock.known.block = block.linear;
    for (u32 scope = 0; scope < kScopes; ++scope) clock.fenced[scope].known.block = clock.unfenced[scope].known.block = block.linear;
  }
}

// ---- order ----------------------------------------------------------------------------------------------------------

void Shadow::arrive(Fiber& fiber, Barrier& barrier) {
  if (!barrier.has_published) barrier.published.block = fiber.clock.known.block;
  barrier.has_published = true;
  barrier.published.join(fiber.clock.published());
  ++fiber.clock.now;
}

void Shadow::barrier_opens(Barrier& barrier) {
  meeting_.clear();
  for (Fiber* fiber : barrier.waiting) meeting_.push_back(&fiber->clock);
  if (barrier.has_published && !meeting_.empty()) meeting_[0]->known.join(barrier.published);
  barrier.published = {};
  barrier.has_published = false;
  synchronise(meeting_.data(), meeting_.size(), request_.threads);
}

void Shadow::join_lanes(Warp& warp, u32 lanes) {
  meeting_.clear();
  for (u32 lane = 0; lane < 32; ++lane)
    if (lanes >> lane & 1) meeting_.push_back(&warp.fibers[lane].clock);
  synchronise(meeting_.data(), meeting_.size(), request_.threads);
}

void Shadow::fence(Fiber& fiber, Scope scope) {
  ThreadClock& clock = fiber.clock;
  for (u32 s = 0; s <= u32(scope); ++s) {
    Scoped& seen = clock.unfenced[s];
    if (!seen.some) continue;
    clock.known.join(seen.known);
    seen = Scoped{};
    seen.known.block = clock.known.block;
  }
  for (u32 s = 0; s < u32(scope); ++s) clock.fenced[s].some = false;
  clock.fenced[u32(scope)] = {clock.published(), true};
  ++clock.now;
}

void Shadow::proxy_fence(Fiber& fiber, ProxyFence fence) {
  ThreadClock& clock = fiber.clock;
  Knowledge before = clock.published();
  switch (fence) {
    case ProxyFence::async:
      clock.known.fence(Proxy::shared, before);
      clock.known.fence(Proxy::global, before);
      clock.known.fence(Proxy::mbarrier, before);
      break;
    case ProxyFence::async_shared:
      clock.known.fence(Proxy::shared, before);
      clock.known.fence(Proxy::mbarrier, before);
      break;
    case ProxyFence::async_global: clock.known.fence(Proxy::global, before); break;
    case ProxyFence::mbarrier_init: {
      // Only what the thread itself initialised.
      Knowledge own;
      own.block = clock.known.block;
      own.learn(clock.thread, clock.now);
      clock.known.fence(Proxy::mbarrier, own);
      break;
    }
    case ProxyFence::tensormap_release: clock.known.fence(Proxy::tensormap_released, before); break;
    case ProxyFence::tensormap_acquire:
      // What its writers have not released stays unseen.
      if (clock.known.proxies) {
        const Knowledge released = clock.known.proxies->known[u32(Proxy::tensormap_released)];
        clock.known.fence(Proxy::tensormap, released);
      }
      break;
  }
  ++clock.now;
}

/// Numbers go up by two: every second one is of an agent in the threads' own proxy.
Agent Shadow::new_agent(Block& block, std::string name, bool in_own_proxy) {
  BlockShadow::Numbers& numbers = block.shadow->numbers[in_own_proxy];
  Agent agent;
  if (!numbers.free.empty()) {
    agent = numbers.free.back();
    numbers.free.pop_back();
  } else {
    if (numbers.next >= Epoch::kThreads)
      worker_.fatal(
          ReportKind::async, Worker::me(),
          text_of("a block with more than %u mbarriers and threads with bulk copies at once", (Epoch::kThreads - first_agent_) / 2));
    agent.number = numbers.next;
    numbers.next += 2;
  }
  block.shadow->agents[agent.number] = std::move(name);
  return agent;
}

void Shadow::free_agent(Block& block, Agent agent, u32 last) {
  if (agent) block.shadow->numbers[(agent.number - first_agent_) % 2].free.push_back({agent.number, last});
}

/// Adds to what atomics have released at an address.
void Shadow::publish(const Fiber& fiber, u64 address, Scope scope, const Knowledge& news) {
  Publication& all = published_[address];
  const auto add = [&](Scope to, u64 of) {
    for (Publication::Near& near : all.near)
      if (near.scope == to && near.of == of) return near.known.join(news);
    all.near.push_back({to, of, news});
  };
  add(Scope::block, fiber.block->linear);
  if (scope != Scope::block && fiber.block->cluster->blocks.size() > 1) add(Scope::cluster, fiber.block->cluster->blocks[0].linear);
  if (scope != Scope::gpu) return;
  if (all.has_device) {
    all.of_device.join(news);
  } else {
    all.of_device = news;
    all.has_device = true;
  }
}

/// The memory model's synchronises-with: a release (or a fence before a relaxed write) publishes at the address, an
/// acquire (or a relaxed read before a fence) learns, if the scope of each includes the other's thread. Atomics are of the device's scope.
/// Read-modify-writes continue what was published; a plain store replaces it. `stores`: a compare-and-swap that fails does not.
void Shadow::order(Fiber& fiber, const AtomicCall& call, bool stores) {
  ThreadClock& clock = fiber.clock;
  const bool acquires = call.order == Order::acquire || call.order == Order::acq_rel;
  const bool releases = call.order == Order::release || call.order == Order::acq_rel;
  const u64 address = reinterpret_cast<u64>(call.address);
  const auto found = published_.find(address);
  if (call.op != AtomicOp::store && found != published_.end()) {
    const auto learn = [&](Scope needed, const Knowledge& news) {
      if (acquires) {
        clock.known.join(news);
      } else {
        clock.unfenced[u32(needed)].known.join(news);
        clock.unfenced[u32(needed)].some = true;
      }
    };
    const u64 own_block = fiber.block->linear, own_cluster = fiber.block->cluster->blocks[0].linear;
    for (const Publication::Near& near : found->second.near)
      if (near.of == (near.scope == Scope::block ? own_block : own_cluster)) learn(near.scope, near.known);
    if (found->second.has_device) learn(Scope::gpu, found->second.of_device);
  }
  if (!stores) return;
  if (call.op == AtomicOp::store && found != published_.end()) published_.erase(found);
  if (releases) {
    publish(fiber, address, Scope::gpu, clock.published());
    ++clock.now;
    return;
  }
  for (u32 scope = 0; scope < kScopes; ++scope)
    if (clock.fenced[scope].some) publish(fiber, address, Scope(scope), clock.fenced[scope].known);
}

void Shadow::before_atomic(Fiber& fiber, const AtomicCall& call) {
  bool stores = call.op != AtomicOp::load;
  if (call.op == AtomicOp::cas) {
    u64 stored = 0;
    bounds_.judge(fiber, call.address, call.bytes, true, "atomic access");
    std::memcpy(&stored, call.address, call.bytes);  // one OS thread runs a checked launch
    stores = stored == call.compare;
  }
  const AccessKind kind = stores ? AccessKind::atomic_write : AccessKind::atomic_read;
  judge(fiber, reinterpret_cast<u64>(call.address), call.bytes, kind, call.op != AtomicOp::store, "atomic access");
  order(fiber, call, stores);
}

// ---- accesses -------------------------------------------------------------------------------------------------------

u32 Shadow::code_of(const Fiber& fiber) const { return request_.module && fiber.pc ? u32(request_.module->offset_of(fiber.pc)) : 0; }

CellSpan Shadow::shared_span(Block& block, u32 offset, u64 bytes) {
  BlockShadow& shadow = *block.shadow;
  return {shadow.cells.data() + offset, shadow.groups.data() + offset / kGroup, shadow.states.data() + offset, bytes};
}

std::string Shadow::name_of(const Fiber& fiber, Epoch other) const {
  const bool same_block = other.block() == fiber.block->linear;
  std::string block = same_block ? "" : text_of("block %llu ", other.block());
  if (other.thread() < first_agent_) {
    const u32 thread = other.thread() % first_copier_;
    return (other.thread() < first_copier_ ? block : "a cp.async of " + block) +
           text_of("thread %u (warp %u lane %u)", thread, thread / 32, thread % 32);
  }
  for (const Block& b : fiber.block->cluster->blocks)
    if (b.linear == other.block()) return block + b.shadow->agents[other.thread()];
  return block + "a bulk copy";
}

void Shadow::report_race(Fiber& fiber, const char* what, bool write, const std::string& place, const Conflict& conflict) {
  const std::string other = name_of(fiber, conflict.other);
  std::string text = std::string(what) + " " + verb(write) + " " + place;
  if (conflict.in_flight) {
    text += ", the destination of " + other +
            (conflict.other.thread() < first_agent_ ? " that has not been waited for" : " that is still in flight");
  } else if (conflict.unfenced) {
    text += ", which " + other + " wrote by an ordinary store, and no proxy fence lies between";
  } else {
    if (conflict.sizes_differ) text += " by an atomic of another size";
    text += std::string(", not ordered after the ") + (conflict.other.atomic() ? "atomic " : "") +
            (conflict.other_writes ? "write" : "read") + " by " + other;
  }
  const ReportKind kind = conflict.unfenced ? ReportKind::proxy : ReportKind::race;
  Report report{kind, fiber.block->index, i64(fiber.index), 0, std::move(text), fiber.pc};
  if (request_.module && conflict.other_at) report.other_pc = request_.module->address_of(conflict.other_at);
  worker_.launch().add(std::move(report));
}

void Shadow::report_uninitialised(Fiber& fiber, const char* what, const std::string& place) {
  worker_.report(ReportKind::uninit, fiber, std::string(what) + " reads " + place + ", which was never written");
}

void Shadow::judge_shared(Fiber& fiber, const Bounds::Place& at, u64 bytes, AccessKind kind, bool reads, const char* what,
                          const AsyncAccess* async) {
  if (at.block != fiber.block) visit(*at.block, async ? async->epoch : fiber.clock.epoch(), !async && writes(kind));
  const CellSpan span = shared_span(*at.block, at.offset, bytes);
  const auto place = [&](u64 byte) { return text_of("smem+0x%llx", u64(at.offset) + byte); };
  if (const u64 guarded = first_with(span.states, bytes, kGuarded); guarded < bytes) {
    worker_.report(ReportKind::mbarrier, fiber,
                   std::string(what) + " " + verb(writes(kind)) + " " + place(guarded) + ", which holds an mbarrier",
                   reinterpret_cast<u64>(at.block->smem) + at.offset);
    return;
  }
  if (reads) {
    if (const u64 unknown = first_without(span.states, bytes, kInitialised | kInFlight); unknown < bytes) {
      report_uninitialised(fiber, what, place(unknown));
      change(span.states, bytes, kInitialised);
    }
  }
  const u32 code = code_of(fiber) | (is_atomic(kind) && bytes == 8 ? Cell::kWide : 0);
  if (const Conflict conflict = touch(span, fiber.clock, kind, code, worker_.random(), async))
    report_race(fiber, what, writes(kind), place(conflict.byte), conflict);
  if (writes(kind)) change(span.states, bytes, kInitialised);
}

void Shadow::judge_global(Fiber& fiber, MemoryMap::Region& region, u64 address, u64 bytes, AccessKind kind, bool reads, const char* what,
                          const AsyncAccess* async) {
  judge_overlap(fiber, address, bytes, kind, what);
  const MemoryMap& memory = *request_.memory;
  const CellSpan span = region.span(address, bytes);
  if (reads) {
    if (const u64 unknown = first_without(span.states, bytes, kInitialised); unknown < bytes) {
      report_uninitialised(fiber, what, memory.describe(address + unknown));
      change(span.states, bytes, kInitialised);
    }
  }
  if (!span.cells) return;
  const u32 code = code_of(fiber) | (is_atomic(kind) && bytes == 8 ? Cell::kWide : 0);
  if (const Conflict conflict = touch(span, fiber.clock, kind, code, worker_.random(), async))
    report_race(fiber, what, writes(kind), memory.describe(address + conflict.byte), conflict);
  if (!writes(kind)) return;
  if (const u64 read = first_with(span.states, bytes, kReadOnly); read < bytes)
    report_read_only(fiber, std::string(what) + " writes " + memory.describe(address + read) + ", which the launch reads by ld.global.nc");
  change(span.states, bytes, kInitialised);
}

/// ld.global.nc may return what the memory held at any time since the launch began.
void Shadow::read_only(Fiber& fiber, const void* address, u64 bytes) {
  const u64 first = reinterpret_cast<u64>(address);
  MemoryMap::Region* const region = request_.memory ? request_.memory->find(first) : nullptr;
  if (!region || !region->cells || first + bytes > region->high) return;
  const CellSpan span = region->span(first, bytes);
  change(span.states, bytes, kReadOnly);
  if (const u64 written = first_written(span); written < bytes)
    report_read_only(fiber, "ld.global.nc reads " + request_.memory->describe(first + written) + ", which the launch has written");
}

void Shadow::report_read_only(const Fiber& fiber, std::string text) { worker_.report(ReportKind::race, fiber, std::move(text)); }

void Shadow::judge(Fiber& fiber, u64 address, u64 bytes, AccessKind kind, bool reads, const char* what, const AsyncAccess* async) {
  if (bytes == 0) return;
  const Bounds::Place place = bounds_.judge(fiber, reinterpret_cast<void*>(address), bytes, writes(kind), what);
  if (place.block) judge_shared(fiber, place, bytes, kind, reads, what, async);
  if (place.region) judge_global(fiber, *place.region, address, bytes, kind, reads, what, async);
  if (place.own_stack) judge_registers(fiber, address, bytes, writes(kind), what);
}

void Shadow::access(Fiber& fiber, const void* address, u64 bytes, bool write, const char* what) {
  judge(fiber, reinterpret_cast<u64>(address), bytes, write ? AccessKind::write : AccessKind::read, !write, what);
}

// ---- cp.async -------------------------------------------------------------------------------------------------------

/// Whatever the policy, nobody may touch the destination until the issuer has waited, or a phase is seen to be complete at
/// which the copy arrived: it is in flight from here. The check against earlier accesses belongs to the issue, not to the
/// completion, which may hide it.
void Shadow::copy_issued(Fiber& fiber, const AsyncCopy& copy) {
  const Epoch epoch(fiber.block->linear, first_copier_ + fiber.index, fiber.first_copy + u32(fiber.copies.size()) + 1);
  judge(fiber, reinterpret_cast<u64>(copy.source), copy.source_bytes, AccessKind::read, true, "cp.async");
  const CellSpan span = shared_span(*fiber.block, copy.destination, copy.bytes);
  const u32 code = code_of(fiber);
  if (const Conflict conflict = touch(span, fiber.clock, AccessKind::write, code, worker_.random()))
    report_race(fiber, "cp.async", true, text_of("smem+0x%llx", copy.destination + conflict.byte), conflict);
  set_writer(span, epoch, code);
  change(span.states, span.bytes, kInFlight);
}

void Shadow::copy_landed(Fiber& fiber, const AsyncCopy& copy) {
  const CellSpan span = shared_span(*fiber.block, copy.destination, copy.bytes);
  change(span.states, span.bytes, kInitialised, kInFlight);
}

void Shadow::copies_waited(Fiber& fiber, u32 until) { fiber.clock.known.learn(first_copier_ + fiber.index, until); }

void Shadow::copies_arrive(const Fiber& fiber, u32 until, Mbarrier& barrier) { barrier.arrived.learn(first_copier_ + fiber.index, until); }

}  // namespace quern::emu
