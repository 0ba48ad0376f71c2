// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/emu/table.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <ctime>
#include <iterator>

#include "quern/base/error.h"
#include "quern/emu/graph.h"
#include "quern/emu/memory_map.h"
#include "quern/emu/shadow.h"
#include "quern/emu/worker.h"

namespace quern::emu {
namespace {

// Programmatic dependent launch: launches run one after the other here, so there is nothing to wait for. Checked mode judges
// accesses as if the launches before had been overlapped from their begin, each trigger being as early as it may be.
void run_grid_event(GridEvent event) {
  Fiber& me = Worker::me();
  if (event != GridEvent::wait || me.dependency_waited) return;
  me.dependency_waited = true;
  me.worker->launch().waited = true;
  if (me.worker->shadow()) me.worker->shadow()->dependency_wait(me);
}

void run_access(u32 lane, const void* address, u32 bytes, bool write, const char* what) {
  Fiber& me = Worker::me();
  me.worker->access(me.warp->fibers[lane], address, bytes, write, what);
}

/// "'flags' i32 [4] + 0x8" where somebody may write during the launch, empty elsewhere: parameters, inputs, the stack.
std::string name_if_writable(Worker& worker, const void* address) {
  if (worker.arena().holds_smem(address)) return "a word of shared memory";
  MemoryMap* const memory = worker.launch().request.memory;
  const u64 at = reinterpret_cast<u64>(address);
  const MemoryMap::Region* const region = memory ? memory->find(at) : nullptr;
  return region && region->cells ? memory->describe(at) : "";
}

/// A loop that reads words by ordinary loads until they change never ends here, as no other thread runs meanwhile; on a GPU it may not end
/// either. Counted are loads of up to four words, with no store and no other call of the runtime between.
void judge_repeats(Fiber& me, const void* address, bool write, void* pc) {
  constexpr u32 kMost = 1 << 22;
  const bool follows = !write && me.pc == me.last_access;
  me.last_access = pc;
  if (!follows) {
    me.repeats = 0;
    return;
  }
  if (std::find(std::begin(me.repeated), std::end(me.repeated), address) == std::end(me.repeated)) {
    if (name_if_writable(*me.worker, address).empty()) return;
    me.repeated[me.next_repeated++ % std::size(me.repeated)] = address;
    me.repeats = 0;
  } else if (++me.repeats == kMost) {
    me.worker->fatal(
        ReportKind::livelock, me,
        "reads " + name_if_writable(*me.worker, address) + " again and again by an ordinary load: a loop that waits takes ld_acquire_gpu",
        reinterpret_cast<u64>(address));
  }
}

void run_plain_access(const void* address, u64 bytes, bool write, void* pc) {
  Fiber& me = Worker::me();
  if (me.worker->meaning_runs) return;
  if (me.worker->shadow()) judge_repeats(me, address, write, pc);
  me.pc = pc;
  me.worker->access(me, address, bytes, write, write ? "store" : "load");
}

void run_misaligned(const void* address, u32 bytes) {
  Fiber& me = Worker::me();
  me.pc = __builtin_return_address(0);
  me.worker->fatal(ReportKind::misaligned, me, text_of("access of %u bytes at %p", bytes, address), reinterpret_cast<u64>(address));
}

void run_bad_shared_address(u32 address, u32 bytes, const char* what) {
  Fiber& me = Worker::me();
  me.pc = __builtin_return_address(0);
  const u32 offset = address & 0xffffff;
  const ReportKind kind = offset % bytes ? ReportKind::misaligned : ReportKind::smem_oob;
  me.worker->fatal(kind, me,
                   text_of("%s of %u bytes at smem+0x%x of block rank %u; the block has %u bytes", what, bytes, offset, address >> 24,
                           me.thread->smem_bytes),
                   offset);
}

void run_bad_read(BadRead what, const void* tensor, i64 got, i64 expected, u32 dim) {
  Fiber& me = Worker::me();
  me.pc = __builtin_return_address(0);
  const MemoryMap* memory = me.worker->launch().request.memory;
  std::string text = memory && tensor ? memory->describe(reinterpret_cast<u64>(tensor)) : "a tensor of the hooks";
  if (text.ends_with(" + 0x0")) text.resize(text.size() - 6);
  const long long is = got, limit = expected;
  switch (what) {
    case BadRead::dims:
      text += text_of(" is read with %lld %s, expected %lld, one for each dim", is, is == 1 ? "index" : "indices", limit);
      break;
    case BadRead::index: text += text_of(" is read at index %lld of dim %u, expected one in [0, %lld)", is, dim, limit); break;
    case BadRead::dtype: text += " is read by integer_at, expected a tensor of i32, i64 or u8"; break;
    case BadRead::tensor: text = text_of("hooks read at.tensors[%lld], expected an index in [0, %lld)", is, limit); break;
  }
  me.worker->fatal(ReportKind::hook, me, std::move(text), reinterpret_cast<u64>(tensor));
}

u64 run_clock() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return u64(now.tv_sec) * 1000000000u + u64(now.tv_nsec);
}

__attribute__((format(printf, 1, 2))) void run_print(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vprintf(format, arguments);
  va_end(arguments);
}

u32 run_number(NumberOp op, u32 a, u32 b) {
  Fiber& me = Worker::me();
  try {
    return me.worker->options().graph->word(op, a, b);
  } catch (const Error& e) { me.worker->fatal(ReportKind::fault, me, e.what()); }
}

}  // namespace

const Runtime kRuntime = {
    sizeof(Runtime),
    run_collective,
    run_barrier,
    run_cp_async,
    run_cp_async_commit,
    run_cp_async_wait,
    run_atomic,
    run_fence,
    run_grid_event,
    run_access,
    run_plain_access,
    run_misaligned,
    run_bad_shared_address,
    run_clock,
    run_print,
    run_number,

    run_proxy_fence,
    run_mbarrier,
    run_bulk,
    run_bulk_commit,
    run_bulk_wait,
    run_cluster_arrive,
    run_cluster_wait,
    run_cluster_access,
    run_tensormap_replace,

    run_wgmma,
    run_wgmma_fence,
    run_wgmma_commit,
    run_wgmma_wait,
    run_set_registers,

    run_read_only,
    run_wgmma_hold,

    run_undefined,

    run_bad_read,
};

}  // namespace quern::emu
