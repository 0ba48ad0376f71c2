// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// setmaxnreg. A block's pool holds what its warps have given back; the kernel is launched with as many registers a thread as
// its launch bounds leave, so all that a block ever has is threads times that.
#include "quern/emu/table.h"
#include "quern/emu/worker.h"

namespace quern::emu {

/// The warps of a warpgroup make the same changes.
static void check_alike(Worker& worker, Fiber& me, size_t change, u32 registers) {
  Block& block = *me.block;
  const u32 first = me.index / 128 * 4;
  if ((first + 4) * 32 > me.thread->block_size.x)
    worker.fatal(ReportKind::registers, me,
                 text_of("setmaxnreg in a block of %u threads, whose last warpgroup is not whole", me.thread->block_size.x));
  for (u32 w = first; w < first + 4; ++w) {
    const auto& changes = block.warps[w].register_changes;
    if (changes.size() > change && changes[change] != registers)
      worker.fatal(ReportKind::registers, me,
                   text_of("setmaxnreg to %u, but to %u in warp %u of the same warpgroup", registers, changes[change], w));
  }
}

static void change(Fiber& me, u32 registers) {
  Block& block = *me.block;
  block.free_registers += 32 * me.warp->registers;
  block.free_registers -= 32 * registers;
  me.warp->registers = registers;
  me.warp->register_changes.push_back(registers);
  me.worker->progressed();
  for (Fiber& fiber : block.fibers)
    if (fiber.reason == WaitReason::registers && &fiber != &me) {
      fiber.reason = WaitReason::none;
      me.worker->wake(fiber);
    }
}

void run_set_registers(bool increase, u32 registers) {
  Fiber& me = Worker::me();
  void* const pc = __builtin_return_address(0);
  Worker& worker = *me.worker;
  const Collective kind = increase ? Collective::increase_registers : Collective::decrease_registers;
  run_collective(kFullWarp, kind, nullptr, [](void**, u32) {}, 0);
  me.pc = pc;
  Warp& warp = *me.warp;
  const u32 number = me.register_changes++;
  if (warp.register_changes.size() > number) return;  // another lane of the warp has made it
  if (increase ? registers < warp.registers : registers > warp.registers)
    worker.fatal(ReportKind::registers, me,
                 text_of("setmaxnreg.%s to %u, but a thread of the warp has %u", increase ? "inc" : "dec", registers, warp.registers));
  const u32 wanted = 32 * registers;
  while (warp.register_changes.size() == number && me.block->free_registers + 32 * warp.registers < wanted)
    worker.wait(me, WaitReason::registers, registers, wanted - 32 * warp.registers);
  if (warp.register_changes.size() > number) return;
  check_alike(worker, me, number, registers);
  change(me, registers);
}

void check_register_changes(Fiber& me) {
  Block& block = *me.block;
  for (size_t w = 0; w < block.warps.size(); ++w) {
    const size_t first = w / 4 * 4;
    if (block.warps[w].register_changes.size() != block.warps[first].register_changes.size()) {
      me.worker->report(ReportKind::registers, me,
                        text_of("warps %zu and %zu of a warpgroup executed setmaxnreg %zu and %zu times", first, w,
                                block.warps[first].register_changes.size(), block.warps[w].register_changes.size()));
      return;
    }
  }
}

}  // namespace quern::emu
