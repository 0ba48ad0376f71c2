// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// cp.async. A copy may complete anywhere between its issue and the wait for its group, or the arrival that announces it;
// the policy chooses where.
#include <cstring>

#include "quern/emu/shadow.h"
#include "quern/emu/table.h"
#include "quern/emu/worker.h"

namespace quern::emu {

void complete_copy(Fiber& fiber, AsyncCopy& copy) {
  u8* destination = fiber.block->smem + copy.destination;
  std::memcpy(destination, copy.source, copy.source_bytes);
  std::memset(destination + copy.source_bytes, 0, copy.bytes - copy.source_bytes);
  copy.done = true;
}

void complete_copies(Fiber& fiber, u32 until) {
  u32 count = 0;
  for (; count < fiber.copies.size() && fiber.first_copy + count < until; ++count) {
    AsyncCopy& copy = fiber.copies[count];
    if (!copy.done) complete_copy(fiber, copy);
    if (fiber.worker->shadow()) fiber.worker->shadow()->copy_landed(fiber, copy);
  }
  fiber.copies.erase(fiber.copies.begin(), fiber.copies.begin() + count);
  fiber.first_copy += count;
}

void run_cp_async(u32 destination, const void* source, u32 bytes, u32 source_bytes) {
  Fiber& me = Worker::me();
  me.pc = __builtin_return_address(0);
  Worker& worker = *me.worker;
  const u32 offset = destination & 0xffffff;
  if (destination >> 24 != me.block->rank || offset + bytes > me.thread->smem_bytes)
    worker.fatal(ReportKind::smem_oob, me,
                 text_of("cp.async of %u bytes to smem+0x%x, the block has %u bytes", bytes, offset, me.thread->smem_bytes), offset);
  if (offset % bytes || (source_bytes && reinterpret_cast<u64>(source) % bytes))
    worker.fatal(ReportKind::misaligned, me, text_of("cp.async of %u bytes from %p to smem+0x%x", bytes, source, offset), offset);
  if (source_bytes > bytes) worker.fatal(ReportKind::async, me, text_of("cp.async of %u bytes reads %u", bytes, source_bytes));
  AsyncCopy copy{offset, bytes, source_bytes, source, false, me.pc};
  if (worker.shadow()) {
    worker.shadow()->copy_issued(me, copy);
  } else {
    worker.access(me, source, source_bytes, false, "cp.async");
  }
  if (worker.options().async == AsyncPolicy::eager) complete_copy(me, copy);
  if (copy.done && !worker.shadow()) return;
  me.copies.push_back(copy);
  if (worker.options().async == AsyncPolicy::random) worker.copies_pending(me);
}

void run_cp_async_commit() {
  Fiber& me = Worker::me();
  me.copy_groups.push_back(me.first_copy + u32(me.copies.size()));
}

void run_cp_async_wait(u32 groups_left) {
  Fiber& me = Worker::me();
  me.pc = __builtin_return_address(0);
  Worker& worker = *me.worker;
  if (me.copy_groups.size() <= groups_left) return;
  const size_t groups = me.copy_groups.size() - groups_left;
  const u32 until = me.copy_groups[groups - 1];
  complete_copies(me, until);
  if (worker.shadow()) worker.shadow()->copies_waited(me, until);
  me.copy_groups.erase(me.copy_groups.begin(), me.copy_groups.begin() + std::ptrdiff_t(groups));
}

}  // namespace quern::emu
