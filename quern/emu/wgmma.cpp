// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// wgmma. The threads of a warpgroup issue the same sequence; a product may be computed anywhere between the moment when all
// have issued it and the first wait for it, in the order of the sequence. The policy chooses where.
#include <cstring>
#include <utility>

#include "quern/emu/shadow.h"
#include "quern/emu/table.h"
#include "quern/emu/worker.h"

namespace quern::emu {
namespace {

constexpr u32 kThreads = 128;
/// What registers of A hold while they belong to a wgmma: NaN in 16 bits, and a number that data rarely has.
constexpr u32 kHeldPoison = 0xfff7fff5;

/// Where an operand's 16-byte chunks lie: PTX ISA 9.7.15.5.1.2, strides as in kit/matrix_descriptor.cuh.
struct Layout {
  u32 start, leading, stride, base_offset, swizzle_bits, width;

  explicit Layout(u64 descriptor) {
    const auto field = [&](int bit) { return u32(descriptor >> bit & 0x3fff) << 4; };
    start = field(0), leading = field(16), stride = field(32);
    base_offset = u32(descriptor >> 49 & 7);
    const u32 mode = u32(descriptor >> 62);
    swizzle_bits = mode ? 4 - mode : 0;
    width = 16u << swizzle_bits;
  }
  /// The pattern exchanges chunks by the number of 128 bytes since it began.
  u32 exchanged(u32 linear) const {
    const u32 phase = ((linear >> 7) - base_offset) & ((1u << swizzle_bits) - 1);
    return linear ^ phase << 4;
  }
  /// K-major: 16 bytes of K of a row, half 0 or 1.
  u32 of_row(u32 row, u32 half) const {
    const u32 in_atom = start + row / 8 * stride + row % 8 * width;
    return exchanged(in_atom + half * (swizzle_bits ? 16 : leading));
  }
  /// MN-major, 16 bits: rows 8 m to 8 m + 7 at k.
  u32 of_column(u32 m, u32 k) const {
    const u32 per_atom = width / 16;
    const u32 step_mn = swizzle_bits ? leading : stride, step_k = swizzle_bits ? stride : leading;
    return exchanged(start + m / per_atom * step_mn + m % per_atom * 16 + k / 8 * step_k + k % 8 * width);
  }
};

/// Calls visit(offset, row, place) for each chunk: K-major a half of a row (place 0, 1), MN-major eight rows at k = place.
template <class Visit> void each_chunk(u64 descriptor, u32 rows, bool mn_major, Visit visit) {
  const Layout layout(descriptor);
  if (mn_major) {
    for (u32 m = 0; m < rows / 8; ++m)
      for (u32 k = 0; k < 16; ++k) visit(layout.of_column(m, k), 8 * m, k);
  } else {
    for (u32 row = 0; row < rows; ++row)
      for (u32 half = 0; half < 2; ++half) visit(layout.of_row(row, half), row, half);
  }
}

void gather(const Block& block, u64 descriptor, u32 rows, bool mn_major, u8 (*to)[kWgmmaRowBytes]) {
  each_chunk(descriptor, rows, mn_major, [&](u32 offset, u32 row, u32 place) {
    if (!mn_major) {
      std::memcpy(to[row] + 16 * place, block.smem + offset, 16);
    } else {
      for (u32 i = 0; i < 8; ++i) std::memcpy(to[row + i] + 2 * place, block.smem + offset + 2 * i, 2);
    }
  });
}

void check_inside(Worker& worker, Fiber& me, u64 descriptor, u32 rows, bool mn_major, const char* operand) {
  each_chunk(descriptor, rows, mn_major, [&](u32 offset, u32 row, u32) {
    if (offset + 16 > me.thread->smem_bytes)
      worker.fatal(ReportKind::smem_oob, me,
                   text_of("wgmma reads row %u of %s at smem+0x%x, the block has %u bytes", row, operand, offset, me.thread->smem_bytes),
                   offset);
  });
}

Warpgroup& group_of(Fiber& me) {
  const u32 number = me.index / kThreads;
  if ((number + 1) * kThreads > me.thread->block_size.x)
    me.worker->fatal(ReportKind::wgmma, me, text_of("warpgroup %u of a block of %u threads is not whole", number, me.thread->block_size.x));
  return me.block->warpgroups[number];
}

/// The four registers of A that a thread gives go to their place; whoever reads them now reads poison.
void take_fragment(Fiber& me, WgmmaOp& op, u64 number, u32* registers) {
  if (op.a.empty()) op.a.resize(64 * kWgmmaRowBytes);
  const u32 thread = me.index % kThreads, row = thread / 32 * 16 + thread % 32 / 4;
  HeldRegisters mine{reinterpret_cast<u8*>(registers), 16, number, 0, {}, me.pc};
  for (u32 i = 0; i < 4; ++i) {
    mine.values[i] = registers[i];
    for (HeldRegisters& held : me.wgmma.held)  // it may still be with an earlier wgmma
      if (held.n == 0 && u64(mine.first + 4 * i - held.first) < held.bytes) mine.values[i] = held.values[(mine.first - held.first) / 4 + i];
    std::memcpy(&op.a[(row + i % 2 * 8) * kWgmmaRowBytes + 4 * (thread % 4) + i / 2 * 16], &mine.values[i], 4);
  }
  for (HeldRegisters& held : me.wgmma.held)
    if (held.n == 0 && held.first == mine.first) {
      held.until = number;
      return;
    }
  for (u32 i = 0; i < 4; ++i) registers[i] = kHeldPoison;
  me.wgmma.held.push_back(mine);
}

void give_back(Fiber& me, const HeldRegisters& held) {
  if (held.n) return;
  u32* registers = reinterpret_cast<u32*>(held.first);
  for (u32 i = 0; i < 4; ++i) {
    if (registers[i] == kHeldPoison) {
      registers[i] = held.values[i];
    } else if (!me.worker->shadow()) {
      me.worker->report(ReportKind::wgmma, me, "a register of A was written before the wgmma that reads it was waited for");
    }
  }
}

bool same(const WgmmaCall& a, const WgmmaCall& b) {
  return a.meaning == b.meaning && a.a == b.a && a.b == b.b && a.add == b.add && !a.a_registers == !b.a_registers;
}

void wake_waiting(Worker& worker, Warpgroup& group) {
  for (Fiber* fiber : group.waiting) worker.wake(*fiber);
  group.waiting.clear();
}

void all_arrived(Worker& worker, Block& block, Warpgroup& group) {
  ++group.arrived;
  worker.progressed();
  if (worker.options().async == AsyncPolicy::eager) {
    while (group.done < group.arrived) complete_product(worker, block, group);
  } else if (worker.options().async == AsyncPolicy::random && !group.pending) {
    group.pending = true;
    worker.products_pending(block, group);
  }
  wake_waiting(worker, group);
}

}  // namespace

void complete_product(Worker& worker, Block& block, Warpgroup& group) {
  WgmmaOp& op = group.ops[group.done - group.first];
  Worker::Scratch& scratch = worker.scratch();
  const WgmmaCall& call = op.call;
  if (!call.a_registers) gather(block, call.a, 64, call.a_mn_major, scratch.a);
  gather(block, call.b, call.n, call.b_mn_major, scratch.b);
  const auto* a = call.a_registers ? reinterpret_cast<const u8(*)[kWgmmaRowBytes]>(op.a.data()) : scratch.a;
  worker.meaning_runs = true;
  // Its stores are the tensor cores', not the thread's that happens to run it: under clang++ those of 28 sums counted as accesses since the
  // fence
  ThreadContext& thread = *Worker::me().thread;
  RegisterWatch* const watch = std::exchange(thread.watch, nullptr);
  call.meaning({a, scratch.b, op.d, scratch.of_meaning, call.add});
  thread.watch = watch;
  worker.meaning_runs = false;
  op.done = true;
  ++group.done;
  while (!group.ops.empty() && group.ops.front().done) {
    group.ops.pop_front();
    ++group.first;
  }
}

void run_wgmma(const WgmmaCall& call) {
  Fiber& me = Worker::me();
  me.pc = __builtin_return_address(0);
  Worker& worker = *me.worker;
  Warpgroup& group = group_of(me);
  execute_aligned(me, "wgmma", call.line);
  const u64 number = me.wgmma.issued++;
  if (number - group.first == group.ops.size()) group.ops.emplace_back();
  WgmmaOp& op = group.ops[number - group.first];
  if (op.arrived == 0) {
    op.call = call;
    op.first = &me;
    op.pc = me.pc;
    if (!call.a_registers) check_inside(worker, me, call.a, 64, call.a_mn_major, "A");
    check_inside(worker, me, call.b, call.n, call.b_mn_major, "B");
  } else if (!same(op.call, call)) {
    worker.fatal(ReportKind::divergence, me,
                 text_of("another wgmma than thread %u of the warpgroup: descriptors, shape, types or addition differ", op.first->index));
  }
  if (Shadow* shadow = worker.shadow()) {
    shadow->wgmma_takes_registers(me, call);
    if (op.checked >> me.index % kThreads / 32 & 1) {
      // Its warp's view of shared memory has been judged.
    } else if (const u32 agent = shadow->wgmma_agent(me, group); shadow->wgmma_view_is_new(me, op)) {
      const Epoch epoch(me.block->linear, agent, u32(number) + 1);
      const auto judge = [&](u32 offset, u32, u32) {
        shadow->async_access(me, me.block->smem + offset, 16, AccessKind::read, epoch, "wgmma");
      };
      if (!call.a_registers) each_chunk(call.a, 64, call.a_mn_major, judge);
      each_chunk(call.b, call.n, call.b_mn_major, judge);
    }
    shadow->wgmma_holds(me, call, number);
  }
  op.d[me.index % kThreads] = call.d;
  if (call.a_registers) take_fragment(me, op, number, call.a_registers);
  if (++op.arrived == kThreads) all_arrived(worker, *me.block, group);
}

void run_wgmma_fence(u32 line) {
  Fiber& me = Worker::me();
  me.pc = __builtin_return_address(0);
  execute_aligned(me, "wgmma_fence", line);
  me.wgmma.fenced = true;
  if (me.worker->shadow()) me.worker->shadow()->wgmma_fence(me);
}

void run_wgmma_commit(u32 line) {
  Fiber& me = Worker::me();
  me.pc = __builtin_return_address(0);
  execute_aligned(me, "wgmma_commit", line);
  me.wgmma.groups.push_back(me.wgmma.issued);
}

void run_wgmma_wait(u32 groups_left, u32 line) {
  Fiber& me = Worker::me();
  me.pc = __builtin_return_address(0);
  Worker& worker = *me.worker;
  execute_aligned(me, "wgmma_wait", line);
  WgmmaThread& mine = me.wgmma;
  if (mine.groups.size() <= groups_left) return;
  const size_t count = mine.groups.size() - groups_left;
  const u64 end = mine.groups[count - 1];
  Warpgroup& group = group_of(me);
  while (group.arrived < end) {
    group.waiting.push_back(&me);
    worker.wait(me, WaitReason::wgmma, 0, end);
  }
  while (group.done < end) complete_product(worker, *me.block, group);
  mine.groups.erase(mine.groups.begin(), mine.groups.begin() + std::ptrdiff_t(count));
  mine.waited = max_of(mine.waited, end);
  if (worker.shadow()) worker.shadow()->wgmma_waited(me, group);
  std::erase_if(mine.held, [&](const HeldRegisters& held) {
    if (held.until >= end) return false;
    give_back(me, held);
    return true;
  });
}

void run_wgmma_hold(const void* registers, u32 bytes) {
  Fiber& me = Worker::me();
  if (me.worker->shadow()) me.worker->shadow()->wgmma_hold(me, registers, bytes);
}

/// Its accumulators are gone: nothing may be computed into them, so the launch ends.
void leave_wgmma(Fiber& me) {
  const WgmmaThread& mine = me.wgmma;
  if (mine.issued == mine.waited) return;
  if (!mine.held.empty()) me.pc = mine.held.back().pc;
  me.worker->fatal(ReportKind::wgmma, me, text_of("exits, and has not waited for %llu wgmma", mine.issued - mine.waited));
}

}  // namespace quern::emu
